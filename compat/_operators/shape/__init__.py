"""Concatenation, flattening, flipping, padding, folding, diagonals and triangles."""
