"""Making and copying tensors."""
