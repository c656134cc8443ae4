"""Properties of tensors, and lists of them."""
