"""Reductions of collectives."""

from __future__ import annotations

import enum
from typing import Any


class RedOpType(enum.Enum):
    """The kinds of reductions."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """A reduction over processes: ``ReduceOp.SUM`` and others.

    Args:
        op: the kind.

    Example:
        >>> ReduceOp.SUM
        <RedOpType.SUM: 0>
        >>> ReduceOp(ReduceOp.MAX).op is ReduceOp.MAX
        True
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op: enum.Enum):
        self.op = op

    def __eq__(self, other: Any) -> bool:
        return kind_of(other) is self.op if isinstance(other, (ReduceOp, RedOpType)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.op)


def kind_of(op: Any) -> RedOpType:
    """The kind of a reduction.

    Raises:
        TypeError: for an argument that is not a reduction.
        RuntimeError: for an unsupported one.
    """
    found = op.op if isinstance(op, ReduceOp) else op
    if not isinstance(found, RedOpType):
        raise TypeError(f"op must be a ReduceOp, got {op!r} of type {type(op).__name__}")
    if found is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    return found
