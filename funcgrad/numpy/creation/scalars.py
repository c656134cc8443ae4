"""Callable dtypes that convert, like NumPy's scalar types, ``float32(x)``; and the class of arrays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import Tracer
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.promotion import astype


class ScalarType:
    """A dtype under its name in ``funcgrad.numpy``.

    It is accepted wherever a dtype is, equals the ``numpy.dtype`` and has its attributes. Calling it converts an array,
    also a traced one, or numbers and lists of them.

    Attributes:
        dtype: the ``numpy.dtype``.

    Raises:
        TypeError: from the call, for operands that are not arrays.

    Example:
        >>> import funcgrad as fg
        >>> half = ScalarType(np.dtype("float16"))
        >>> half(2.5), half([1, 2]).dtype == half, half.itemsize
        (Array(2.5, dtype=float16), True, 2)
        >>> print(fg.jit(half)(70000.0))
        inf
    """

    __slots__ = ("dtype",)
    dtype: np.dtype

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __call__(self, x: Any = 0) -> Any:
        """``x`` in this dtype.

        Args:
            x: an array or number, or a nested sequence of numbers.

        Returns:
            An array of the shape of ``x``; the real part, if ``x`` is complex and the dtype is not.

        Raises:
            TypeError: for operands that are not arrays.
            ValueError: for a string that is not a number, and for a ragged sequence.

        Example:
            >>> print(ScalarType(np.dtype("int8"))(2.7))
            2
        """
        if isinstance(x, Tracer) or hasattr(x, "dtype"):
            return astype(asarray(x), self.dtype)
        # A Python number is converted without losing digits.
        return asarray(np.asarray(x).astype(self.dtype))

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "dtype"), name)

    def __eq__(self, other: object) -> bool:
        return bool(self.dtype == (other.dtype if isinstance(other, ScalarType) else other))

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return str(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return ScalarType, (self.dtype,)


bool_ = ScalarType(dtypes.bool_)
int8, int16, int32, int64 = [ScalarType(d) for d in dtypes.SIGNED]
uint8, uint16, uint32, uint64 = [ScalarType(d) for d in dtypes.UNSIGNED]
float16, bfloat16, float32, float64 = [ScalarType(d) for d in dtypes.FLOATING]
complex64, complex128 = [ScalarType(d) for d in dtypes.COMPLEX]


class _Arrays(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (jax.Array, Tracer))


class ndarray(metaclass=_Arrays):
    """The class of arrays and tracers, but not NumPy's arrays, for ``isinstance`` and annotations.

    Example:
        >>> import funcgrad as fg
        >>> fg.jit(lambda x: x + isinstance(x, ndarray))(1), isinstance(np.ones(2), ndarray)
        (Array(2, dtype=int64), False)
    """

    def __init__(self) -> None:
        raise TypeError("ndarray: arrays are made by functions, such as asarray and zeros")
