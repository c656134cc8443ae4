"""``torch.testing._internal``: the class of test cases that packages' own tests are made of."""
