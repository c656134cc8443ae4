"""The class of fake tensors, for ``isinstance`` checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat._core.tensor.tensor import Tensor

__all__ = ["FakeTensor", "is_fake", "unset_fake_temporarily"]


class FakeTensor(Tensor):
    """A tensor without values during tracing; compat creates none."""


def is_fake(x: object) -> bool:
    """Whether a tensor is fake: always False."""
    return isinstance(x, FakeTensor)


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """Context in which tensors are not fake: they never are."""
    yield
