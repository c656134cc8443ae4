"""The classes of nested tensors, and the implementations of functions for them."""
