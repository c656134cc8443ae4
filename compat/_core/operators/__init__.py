"""Declarations of operators, and the plans that run them."""
