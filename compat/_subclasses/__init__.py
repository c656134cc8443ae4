"""``torch._subclasses``: fake tensors; compat creates none."""

from compat._subclasses.fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
