"""Python's operators and NumPy's methods on tracers, defined by this package's functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from funcgrad.core import trees
from funcgrad.core.errors import ConcretizationError, explained
from funcgrad.core.tracing import (
    JaxArray,
    Tracer,
    array_classes,
    bind,
    check_constant,
    concrete,
    is_array,
    lost,
    type_of,
)
from funcgrad.numpy import diagonals, nonzero_indices, products, reductions, selecting, shape, sorting
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.elementwise import rounding
from funcgrad.numpy.indexing import getitem as indexing
from funcgrad.numpy.promotion import astype, placed
from funcgrad.primitives import markers
from funcgrad.runtime.deferred import ready
from funcgrad.runtime.process import in_child, process


def _operator(function: Callable[[Any, Any], Any], reflected: bool = False) -> Callable[[Any, Any], Any]:
    #: The primitive itself, for operands of one type.
    primitive = getattr(function, "primitive", None)

    def method(self: Any, other: Any) -> Any:
        if primitive is not None and isinstance(other, Tracer) and isinstance(self, Tracer) and other.type is self.type:
            return bind(primitive, (self, other), {})
        return function(self, other) if other.__class__ in array_classes or is_array(other) else NotImplemented

    def reflected_method(self: Any, other: Any) -> Any:
        return function(other, self) if other.__class__ in array_classes or is_array(other) else NotImplemented

    return reflected_method if reflected else method


_BINARY = {
    "add": e.add, "sub": e.subtract, "mul": e.multiply, "truediv": e.divide, "floordiv": rounding.floor_divide,
    "mod": rounding.remainder, "divmod": rounding.divmod, "pow": e.power, "matmul": products.matmul,
    "and": e.bitwise_and, "or": e.bitwise_or, "xor": e.bitwise_xor, "lshift": e.left_shift, "rshift": e.right_shift,
}  # fmt: skip
_COMPARISON = {
    "eq": e.equal,
    "ne": e.not_equal,
    "lt": e.less,
    "le": e.less_equal,
    "gt": e.greater,
    "ge": e.greater_equal,
}
_UNARY = {"neg": e.negative, "pos": e.positive, "abs": e.absolute, "invert": e.invert}


def _reshape(self: Any, *new: Any) -> Any:
    return shape.reshape(self, new[0] if len(new) == 1 else new)


def _transpose(self: Any, *axes: Any) -> Any:
    return shape.transpose(
        self, None if not axes else axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    )


def _iterate(self: Any) -> Any:
    if self.ndim == 0:
        raise TypeError("iteration over an array without axes")
    return iter([self[i] for i in range(self.shape[0])])


def _assign(self: Any, index: Any, value: Any) -> None:
    message = (
        f"arrays are immutable: x[index] = y was asked of an array of type {type_of(self)}. Write "
        "x = x.at[index].set(y), or .add(y) for x[index] += y; or write to asarray(x, copy=True)"
    )
    raise explained(TypeError(message), "immutable")


def _format(self: Any, spec: str) -> str:
    return repr(self) if not spec else format(np.asarray(self._concrete("format(...)")).item(), spec)


def _round(self: Any, ndigits: Any = None) -> Any:
    """``round(x)`` is an integer, which has no derivative; ``round(x, n)`` would seem to have that of ``x``."""
    if ndigits is not None:
        frame = sys._getframe(1)
        check_constant(self, "round(x, n)", frame)
        try:
            concrete(self)
        except ConcretizationError:  # a value traced now may be differentiated later
            message = lost(self, "round(x, n)", frame, "a transform of the traced function")
            return markers.constant_p(rounding.round(self, ndigits), self, message=message)
    return rounding.round(self, ndigits or 0)


def _itself(self: Any, memo: Any = None) -> Any:
    # The tracer itself: its interpreter would not know a copy.
    return self


def _unpicklable(self: Any, protocol: Any = None) -> NoReturn:
    raise TypeError(f"a traced array of type {self.type} cannot be pickled: it has a meaning only while it is traced")


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    return placed(self, device)


def _device(self: Any) -> Any:
    """The device of the array; None if that is decided when its program runs."""
    try:
        return self._concrete("device").device
    except ConcretizationError:
        return None


def _contains(self: Any, value: Any) -> bool:
    return bool(reductions.any(e.equal(self, value)))


def _length(self: Any) -> int:
    if self.ndim == 0:
        raise TypeError("len() of an array without axes")
    return self.shape[0]


_REDUCING = (
    "sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "argmax", "argmin", "cumsum", "cumprod", "ptp",
)  # fmt: skip
_METHODS: dict[str, Any] = {
    **{name: getattr(reductions, name) for name in _REDUCING},
    "reshape": _reshape,
    "transpose": _transpose,
    "ravel": shape.ravel,
    "flatten": shape.ravel,
    "squeeze": shape.squeeze,
    "swapaxes": shape.swapaxes,
    "repeat": shape.repeat,
    "dot": products.dot,
    "astype": astype,
    "round": rounding.round,
    "clip": e.clip,
    "conj": e.conj,
    "copy": e.positive,
    "take": indexing.take,
    "diagonal": indexing.diagonal,
    "trace": diagonals.trace,
    "at": property(indexing.At),
    "sort": sorting.sort,
    "argsort": sorting.argsort,
    "searchsorted": sorting.searchsorted,
    "partition": sorting.partition,
    "argpartition": sorting.argpartition,
    "__getitem__": indexing.getitem,
    "__setitem__": _assign,
    "__iter__": _iterate,
    "__format__": _format,
    "__copy__": _itself,
    "__deepcopy__": _itself,
    "__reduce_ex__": _unpicklable,
    "__len__": _length,
    "T": property(shape.transpose),
    "mT": property(shape.matrix_transpose),
    "real": property(e.real),
    "imag": property(e.imag),
    "device": property(_device),
    "to_device": _to_device,
    "itemsize": property(lambda self: self.dtype.itemsize),
    "nbytes": property(lambda self: self.size * self.dtype.itemsize),
    "conjugate": e.conj,
    "nonzero": nonzero_indices.nonzero,
    "choose": selecting.choose,
    "compress": lambda self, condition, axis=None: selecting.compress(condition, self, axis),
    "__contains__": _contains,
    "__round__": _round,
}


#: Operators whose JAX version, outside traces, differs from ours in division of infinities or signs of zeros.
_OURS = ("floordiv", "mod", "divmod")
#: Operators whose JAX version gives other dtypes: an integer with a Python float is float32 here, not float64.
_MIXED = ("add", "sub", "mul", "truediv", "pow")


def _outside(ours: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Our operator for JAX's arrays: computes deferred operands for code that requires computed arrays."""

    def method(self: Any, other: Any) -> Any:
        result = ours(self, other)
        if isinstance(other, Tracer):
            return result
        return tuple(map(ready, result)) if isinstance(result, tuple) else ready(result)

    return method


def _mixing(name: str, ours: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """JAX's operator, but ours for integers that become floating, or are raised to large powers."""
    theirs, ours = getattr(JaxArray, name), _outside(ours)
    always = "truediv" in name or "pow" in name

    def method(self: Any, other: Any) -> Any:
        if (always or other.__class__ in _INEXACT) and self.dtype.kind in "biu":
            return ours(self, other)
        return theirs(self, other)

    return method


def _averaging(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's method, but ours for integers; NumPy's functions call it with ``out=None``."""

    def method(self: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None or self.dtype.kind not in "biu":
            return theirs(self, *args, out=out, **kwargs)
        return ready(ours(self, *args, **kwargs))

    return method


def _is_ours(part: Any) -> bool:
    """Whether a part of an index is one that JAX does not support."""
    return isinstance(part, Tracer) or (part.__class__ not in _PARTS and trees.is_other_array(type(part)))


_PARTS = frozenset((int, slice, type(None), type(...), np.ndarray))


def _indexing(theirs: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """JAX's indexing; ours for traced positions and lists; and an error for an integer out of bounds."""

    def method(self: Any, index: Any) -> Any:
        kind = index.__class__
        parts = index if kind is tuple else (index,)
        if any(map(_is_ours, parts)):
            return indexing.getitem(self, index)
        if list in map(type, parts):
            return ready(indexing.getitem(self, index))
        if kind is int and self.ndim and not -self.shape[0] <= index < self.shape[0]:
            message = f"index: {index} is out of bounds for axis 0 of {type_of(self)}, of size {self.shape[0]}"
            raise explained(IndexError(message), "operands")
        return theirs(self, index)

    return method


class _At:
    """``x.at`` of an array outside traces: JAX's, but ours for traced positions and values."""

    __slots__ = ("array", "theirs")

    def __init__(self, array: Any, theirs: Any):
        self.array = array
        self.theirs = theirs

    def __getitem__(self, index: Any) -> Any:
        if any(map(_is_ours, index if isinstance(index, tuple) else (index,))):
            return indexing.Place(self.array, index)
        return _Place(indexing.Place(self.array, index), self.theirs[index])


class _Place:
    __slots__ = ("ours", "theirs")

    def __init__(self, ours: indexing.Place, theirs: Any):
        self.ours = ours
        self.theirs = theirs

    def __getattr__(self, name: str) -> Any:
        def method(*values: Any, **options: Any) -> Any:
            values = tuple(map(trees.array_of, values))
            traced = any(isinstance(value, Tracer) for value in values)
            return getattr(self.ours if traced else self.theirs, name)(*values, **options)

        return method


_INEXACT = frozenset((float, complex))


def install() -> None:
    """Installs the operators and methods of ``Tracer``, and replaces operators of JAX's arrays that would differ.

    So computations outside traces have the same dtypes and values as inside. JAX's other operators are kept, which are
    faster.
    """
    for name, function in _BINARY.items():
        setattr(Tracer, f"__{name}__", _operator(function))
        setattr(Tracer, f"__r{name}__", _operator(function, reflected=True))
    for name, function in _COMPARISON.items():
        setattr(Tracer, f"__{name}__", _operator(function))
    for method in (f"__{side}{name}__" for name in _OURS for side in ("", "r")):
        setattr(JaxArray, method, _outside(getattr(Tracer, method)))
    for method in (f"__{side}{name}__" for name in _MIXED for side in ("", "r")):
        setattr(JaxArray, method, _mixing(method, getattr(Tracer, method)))
    for name in ("mean", "std", "var"):
        setattr(JaxArray, name, _averaging(getattr(JaxArray, name), getattr(reductions, name)))
    JaxArray.__getitem__ = _indexing(JaxArray.__getitem__)
    JaxArray.__setitem__ = _assign
    theirs = JaxArray.at
    JaxArray.at = property(lambda self: _At(self, theirs.__get__(self)))
    for name, unary in _UNARY.items():
        setattr(Tracer, f"__{name}__", unary)
    for name, made in _METHODS.items():
        setattr(Tracer, name, made)


def _in_forked_child() -> None:
    """Uses our operators for JAX's arrays in a forked child, where they run by NumPy and JAX's cannot."""
    if not process.forked:
        return
    for name in (*_BINARY, *_COMPARISON):
        for method in (f"__{name}__", f"__r{name}__"):
            if hasattr(Tracer, method):
                setattr(JaxArray, method, _outside(getattr(Tracer, method)))
    for name, unary in _UNARY.items():
        setattr(JaxArray, f"__{name}__", _due(unary))
    for name in _REDUCING:
        setattr(JaxArray, name, _due(getattr(reductions, name)))
    for name in ("reshape", "transpose", "astype", "ravel"):
        setattr(JaxArray, name, _due(_METHODS[name]))
    JaxArray.__getitem__ = _due(indexing.getitem)


def _due(ours: Callable[..., Any]) -> Callable[..., Any]:
    """Our method for JAX's arrays: computes deferred operands."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ready(ours(self, *args, **kwargs))

    return method


in_child(_in_forked_child)

install()
