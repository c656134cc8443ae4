"""Convolution, pooling, normalization, recurrence, attention."""
