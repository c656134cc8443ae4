"""Joining, flipping, padding, folding."""
