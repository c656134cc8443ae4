"""What operators are called with: signatures, parsing, errors of wrong calls."""
