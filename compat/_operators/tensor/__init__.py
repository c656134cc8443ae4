"""Properties of tensors, and operations on lists of them."""
