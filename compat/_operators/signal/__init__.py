"""Fourier transforms, window functions, finite differences, covariances."""
