"""Dtype objects, the default dtype, and PyTorch's rules for mixing dtypes.

PyTorch promotes by *category* (bool < integer < floating < complex): operands with dimensions decide first, then
zero-dimensional tensors, then Python numbers, and a later group changes the result only when its category is higher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from funcgrad import dtypes as fdtypes

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements, such as ``torch.float32``.

    There is one object per dtype; compare with ``is`` or ``==``.

    Attributes:
        itemsize: bytes an element.
        is_floating_point, is_complex, is_signed: what kind of number it holds.

    Example:
        >>> import compat as torch
        >>> torch.float32, torch.float32.itemsize, torch.float32.to_complex()
        (torch.float32, 4, torch.complex64)
    """

    __slots__ = (
        "_name",
        "numpy",
        "itemsize",
        "category",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "scalar_name",
    )
    _name: str
    #: The NumPy dtype, or None where NumPy and XLA have no arrays of it.
    numpy: Any
    #: What PyTorch's C++ side calls it; several of its messages say this name.
    scalar_name: str

    def __init__(self, name: str, numpy: np.dtype | None, itemsize: int, category: int, signed: bool, scalar_name: str):
        self._name = name
        self.numpy = numpy
        self.itemsize = itemsize
        self.category = category
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = signed
        self.scalar_name = scalar_name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str | tuple:
        return _named, (self._name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict) -> dtype:
        return self

    def to_real(self) -> dtype:
        """The dtype of the real part.

        Raises:
            RuntimeError: for integers and bool.
        """
        return self._part(_TO_REAL)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this one.

        Raises:
            RuntimeError: for integers and bool.
        """
        return self._part(_TO_COMPLEX)

    def _part(self, table: dict[dtype, dtype]) -> dtype:
        if self not in table:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return table[self]


def _of(name: str, numpy: np.dtype, category: int, scalar_name: str, signed: bool = True) -> dtype:
    return dtype(name, numpy, numpy.itemsize, category, signed, scalar_name)


bool_ = _of("bool", fdtypes.bool_, BOOL, "Bool", signed=False)
uint8 = _of("uint8", fdtypes.uint8, INTEGER, "Byte", signed=False)
int8 = _of("int8", fdtypes.int8, INTEGER, "Char")
int16 = _of("int16", fdtypes.int16, INTEGER, "Short")
int32 = _of("int32", fdtypes.int32, INTEGER, "Int")
int64 = _of("int64", fdtypes.int64, INTEGER, "Long")
uint16 = _of("uint16", fdtypes.uint16, INTEGER, "UInt16", signed=False)
uint32 = _of("uint32", fdtypes.uint32, INTEGER, "UInt32", signed=False)
uint64 = _of("uint64", fdtypes.uint64, INTEGER, "UInt64", signed=False)
float16 = _of("float16", fdtypes.float16, FLOATING, "Half")
bfloat16 = _of("bfloat16", fdtypes.bfloat16, FLOATING, "BFloat16")
float32 = _of("float32", fdtypes.float32, FLOATING, "Float")
float64 = _of("float64", fdtypes.float64, FLOATING, "Double")
complex32 = dtype("complex32", None, 4, COMPLEX, True, "ComplexHalf")
complex64 = _of("complex64", fdtypes.complex64, COMPLEX, "ComplexFloat")
complex128 = _of("complex128", fdtypes.complex128, COMPLEX, "ComplexDouble")

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128,
)  # fmt: skip
_by_name = {d._name: d for d in ALL}


def _named(name: str) -> dtype:
    """What unpickling a dtype calls."""
    return _by_name[name]


_from_numpy = {d.numpy: d for d in ALL if d.numpy is not None}

#: The names under which the torch namespace has them.
NAMES: dict[str, dtype] = _by_name | dict(
    short=int16, int=int32, long=int64, half=float16, float=float32, double=float64,
    chalf=complex32, cfloat=complex64, cdouble=complex128,
)  # fmt: skip

_TO_COMPLEX = {
    float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128,
    complex32: complex32, complex64: complex64, complex128: complex128,
}  # fmt: skip
_TO_REAL = {
    float16: float16, bfloat16: bfloat16, float32: float32, float64: float64,
    complex32: float16, complex64: float32, complex128: float64,
}  # fmt: skip

_WIDE_UNSIGNED = frozenset((uint16, uint32, uint64))


def from_numpy(d: np.dtype) -> dtype:
    """The dtype that holds what a NumPy dtype holds.

    Raises:
        TypeError: for NumPy dtypes that tensors cannot have (strings, objects, ...).
    """
    found = _from_numpy.get(d)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np.dtype(d).type.__name__}. The only supported types "
            "are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
            "uint16, uint8, and bool."
        )
    return found


def array_dtype(d: dtype) -> Any:
    """The NumPy dtype of its arrays.

    Raises:
        NotImplementedError: for ``complex32``, of which there are none.

    Example:
        >>> array_dtype(float32)
        dtype('float32')
    """
    if d.numpy is None:
        raise NotImplementedError(
            f"there are no arrays of {d}: XLA has no complex numbers of half precision; convert to torch.complex64"
        )
    return d.numpy


_OF_TYPES = {float: float64, int: int64, bool: bool_, complex: complex128}


def wanted(function: str, d: Any) -> Any:
    """What is given as a ``dtype`` argument as a dtype: Python's own types of numbers stand for one, None for none.

    Raises:
        TypeError: for anything else.
    """
    if d is None or isinstance(d, dtype):
        return d
    found = _OF_TYPES.get(d)
    if found is None:
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(d).__name__}")
    return found


# ---------------------------------------------------------------- default dtype

_default = float32


def get_default_dtype() -> dtype:
    """The dtype of new floating-point tensors; ``torch.float32`` unless changed.

    Example:
        >>> import compat as torch
        >>> torch.get_default_dtype()
        torch.float32
    """
    return _default


def set_default_dtype(d: dtype, /) -> None:
    """Sets the dtype of new floating-point tensors.

    Raises:
        TypeError: if ``d`` is not a floating-point dtype.
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d is not _default:
        _default = d
        for forget in _listeners:
            forget()


_listeners: list[Callable[[], None]] = []


def when_default_changes(forget: Callable[[], None]) -> None:
    """Calls ``forget`` whenever the default dtype changes: what was compiled may depend on it."""
    _listeners.append(forget)


def of_number(value: Any) -> dtype:
    """The dtype of a tensor made of one Python number."""
    kind = value if isinstance(value, type) else type(value)
    if kind is float:
        return _default
    if kind is int:
        return int64
    if kind is bool:
        return bool_
    if kind is complex:
        return _default.to_complex()
    raise TypeError(f"not a number: {value!r}")


# ---------------------------------------------------------------- promotion

# The order in which dtypes of the same category contain each other.
_ORDER = {
    d: i
    for i, d in enumerate(
        (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex32, complex64, complex128)
    )
}
_promotions: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be cast to.

    Raises:
        TypeError: for what is no dtype.
        RuntimeError: for ``uint16``, ``uint32`` and ``uint64`` with another integer dtype, which PyTorch does not mix.

    Example:
        >>> import compat as torch
        >>> torch.promote_types(torch.int32, torch.float32), torch.promote_types(torch.uint8, torch.int8)
        (torch.float32, torch.int16)
    """
    if type1 is type2 and isinstance(type1, dtype):
        return type1
    found = _promotions.get((type1, type2))
    if found is None:
        for i, given in enumerate((type1, type2), 1):
            if not isinstance(given, dtype):
                raise TypeError(
                    f"promote_types(): argument 'type{i}' (position {i}) must be torch.dtype, not {_type_name(given)}"
                )
        found = _promotions[type1, type2] = _promote(type1, type2)
    return found


def _promote(a: dtype, b: dtype) -> dtype:
    first, second = a, b
    if a.category > b.category:
        a, b = b, a
    if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and b.category != FLOATING:
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, "
            f"attempted to promote {first.scalar_name} and {second.scalar_name}"
        )
    if a.category < b.category:
        return promote_types(a.to_complex(), b) if a.category == FLOATING else b
    if {a, b} in ({float16, bfloat16}, {uint8, int8}):
        return float32 if a.category == FLOATING else int16
    return a if _ORDER[a] > _ORDER[b] else b


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch casts ``from_`` to ``to`` without being told: never to a lower category.

    Example:
        >>> import compat as torch
        >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
        (True, False)
    """
    for i, (name, given) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(given, dtype):
            raise TypeError(
                f"can_cast(): argument '{name}' (position {i}) must be torch.dtype, not {_type_name(given)}"
            )
    if from_.category > to.category:
        return False
    return not (to is bool_ and from_ is not bool_)


def combine(dimensioned: Iterable[dtype], zero_dim: Iterable[dtype], numbers: Iterable[type]) -> dtype:
    """The common dtype of tensors with dimensions, zero-dimensional tensors and Python numbers (their types)."""
    result = _fold(dimensioned)
    if result is None or result.category < COMPLEX:
        result = _raise(result, _fold(zero_dim))
        result = _raise(result, _fold(of_number(k) for k in numbers))
    assert result is not None, "no operands"
    return result


def _fold(group: Iterable[dtype]) -> dtype | None:
    result = None
    for d in group:
        result = d if result is None else promote_types(result, d)
    return result


def _raise(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """A group of higher priority against one of lower: the lower one wins only by category."""
    if higher is None or lower is None:
        return higher or lower
    if lower.category <= higher.category:
        return higher
    return higher.to_complex() if higher.category == FLOATING else promote_types(higher, lower)


# ---------------------------------------------------------------- finfo, iinfo


class finfo:
    """Limits of a floating-point dtype: ``bits, eps, max, min, tiny, smallest_normal, resolution``.

    Example:
        >>> import compat as torch
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None):
        type = _default if type is None else type
        if not isinstance(type, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {_type_name(type)}")
        if type.category < FLOATING:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        real = type.to_real()
        self.dtype = real._name
        info: Any = _limits(real)
        self.bits = real.itemsize * 8
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(10.0**-info.precision)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))


def _limits(d: dtype) -> Any:
    assert d.numpy is not None
    if d is bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(d.numpy)
    return np.finfo(d.numpy)


class iinfo:
    """Limits of an integer dtype: ``bits, max, min``.

    Example:
        >>> import compat as torch
        >>> torch.iinfo(torch.int8)
        iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: dtype):
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {_type_name(type)}")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category > INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        assert type.numpy is not None
        info = np.iinfo(type.numpy)
        self.dtype = type._name
        self.bits = info.bits
        self.max = int(info.max)
        self.min = int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))


def _type_name(x: object) -> str:
    return type(x).__name__
