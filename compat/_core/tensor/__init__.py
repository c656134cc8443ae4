"""The class of tensors, their construction and ``repr``, and the registry of public names."""
