"""Creating and copying tensors."""
