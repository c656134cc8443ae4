"""What functions and transforms are given: trees made flat, and checks."""
