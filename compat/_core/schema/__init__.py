"""Schemas of operators: parameters, parsing, signatures, and errors of calls."""
