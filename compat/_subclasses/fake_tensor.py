"""The class of tensors without values, for programs that ask whether they have one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat._core.tensor.tensor import Tensor

__all__ = ["FakeTensor", "is_fake", "unset_fake_temporarily"]


class FakeTensor(Tensor):
    """A tensor without values while a program is traced; nothing here makes any."""


def is_fake(x: object) -> bool:
    """Whether a tensor has no values because a program is being traced: none ever has."""
    return isinstance(x, FakeTensor)


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """A ``with`` block in which tensors have values though a program is being traced: they always do."""
    yield
