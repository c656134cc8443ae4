"""``torch.testing._internal``: the base class of test cases of packages."""
