"""Transforms of functions: derivatives, vectorization, compilation, inspection of programs."""
