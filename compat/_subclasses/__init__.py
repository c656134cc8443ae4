"""``torch._subclasses``: tensors that stand for others while a program is traced; nothing here makes any."""

from compat._subclasses.fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
