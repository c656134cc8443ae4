"""The interpreters, one module each."""
