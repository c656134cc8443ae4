"""The class of tensors, what makes and shows them, and the registry of public names."""
