"""The classes of nested tensors, and what functions do to them."""
