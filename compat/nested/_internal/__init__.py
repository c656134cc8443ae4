"""The classes of nested tensors, and their implementations of functions."""
