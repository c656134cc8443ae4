"""Dtype objects, the default dtype, and PyTorch's rules for mixing dtypes.

PyTorch promotes by *category* (bool < integer < floating < complex): operands with dimensions decide first, then
zero-dimensional tensors, then Python numbers, and a later group changes the result only when its category is higher.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from funcgrad.core import dtypes as fdtypes

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements, such as ``torch.float32``.

    There is one object per dtype; compare with ``is`` or ``==``.

    Attributes:
        itemsize: bytes an element.
        is_floating_point, is_complex: the kind of its numbers.

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
        "_signed",
        "scalar_name",
    )
    _name: str
    #: The NumPy dtype, or None where NumPy and XLA have no arrays of it.
    numpy: Any
    #: What PyTorch's C++ side calls it; several of its messages say this name.
    scalar_name: str

    def __init__(
        self,
        name: str,
        numpy: np.dtype | None,
        itemsize: int,
        category: int,
        signed: bool | None,
        scalar_name: str,
    ):
        self._name = name
        self.numpy = numpy
        self.itemsize = itemsize
        self.category = category
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self._signed = signed
        self.scalar_name = scalar_name

    @property
    def is_signed(self) -> bool:
        """Whether it holds negative numbers.

        Raises:
            RuntimeError: for dtypes of which it cannot be said.
        """
        if self._signed is None:
            quantized = self in _QUANTIZED
            raise RuntimeError(
                "isSignedType not supported for quantized types" if quantized else "Bits types are undefined"
            )
        return self._signed

    @property
    def abbr(self) -> str:
        """Its name in few letters: ``f32``."""
        return _abbreviated(self)

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str | tuple:
        return _named, (self._name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict) -> dtype:
        return self

    def to_real(self) -> dtype:
        """The dtype of the real part."""
        return _TO_REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this one.

        Raises:
            RuntimeError: for integers and bool.
        """
        if self not in _TO_COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return _TO_COMPLEX[self]


dtype.__module__ = "torch"  # shown in its name

#: Prefixes of dtypes' abbreviations by prefixes of their names; quantized ones and others have none.
_LETTERS = {"float": "f", "bfloat": "bf", "complex": "c", "bits": "b", "int": "i", "uint": "u"}


def _abbreviated(d: dtype) -> str:
    if d is bool_:
        return "b8"
    word = d._name.rstrip("0123456789") if "_" not in d._name else "float"
    if d in _BITS:
        word = "bits"
    rest = d._name.removeprefix(word).replace("_", "")
    if d in (*_QUANTIZED, *_SMALL_UNSIGNED, *_SMALL_SIGNED):
        return d._name
    return _LETTERS[word] + rest + ("x1" if word == "bits" and "x" not in rest else "")


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


def _bare(name: str, category: int, scalar_name: str, signed: bool | None, itemsize: int = 1) -> dtype:
    """A dtype without arrays: programs name them, mostly in tables of dtypes."""
    return dtype(name, None, itemsize, category, signed, scalar_name)


#: Floating-point numbers of eight bits: for storage, with casts.
FLOAT8 = tuple(
    _of(d.name, d, FLOATING, f"F{d.name[1:]}", signed=d is not fdtypes.float8_e8m0fnu) for d in fdtypes.FLOAT8
)
_FLOAT4 = _bare("float4_e2m1fn_x2", FLOATING, "Float4_e2m1fn_x2", signed=True)
_QUANTIZED = (
    *(_bare(f"q{n.lower()}", INTEGER, f"Q{n}", signed=None) for n in ("UInt8", "Int8", "UInt4x2", "UInt2x4")),
    _bare("qint32", INTEGER, "QInt32", signed=None, itemsize=4),
)
_BITS = tuple(
    _bare(f"bits{n}", INTEGER, f"Bits{n}", signed=None, itemsize=2 if n == "16" else 1)
    for n in ("1x8", "2x4", "4x2", "8", "16")
)
_SMALL_UNSIGNED = tuple(_bare(f"uint{n}", INTEGER, f"UInt{n}", signed=False) for n in range(1, 8))
_SMALL_SIGNED = tuple(_bare(f"int{n}", INTEGER, f"Int{n}", signed=True) for n in range(1, 8))
BARE = (_FLOAT4, *_QUANTIZED, *_BITS, *_SMALL_UNSIGNED, *_SMALL_SIGNED)

#: Those that tensors can have, and ``complex32``.
ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128,
)  # fmt: skip
_by_name = {d._name: d for d in (*ALL, *FLOAT8, *BARE)}


def _named(name: str) -> dtype:
    """The dtype of a name; called by unpickling."""
    return _by_name[name]


_from_numpy = {d.numpy: d for d in (*ALL, *FLOAT8) if d.numpy is not None}

#: The names under which the torch namespace has them.
NAMES: dict[str, dtype] = _by_name | dict(
    short=int16, int=int32, long=int64, half=float16, float=float32, double=float64,
    chalf=complex32, cfloat=complex64, cdouble=complex128,
)  # fmt: skip

_TO_COMPLEX = {
    float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128,
    complex32: complex32, complex64: complex64, complex128: complex128,
}  # fmt: skip
_TO_REAL = {complex32: float16, complex64: float32, complex128: float64}

_WIDE_UNSIGNED = frozenset((uint16, uint32, uint64, *_SMALL_UNSIGNED))
_NOT_MIXED = frozenset((_FLOAT4, *_SMALL_SIGNED))


def from_numpy(d: np.dtype) -> dtype:
    """The dtype of a NumPy dtype.

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
        NotImplementedError: for ``complex32`` and others of which there are none.

    Example:
        >>> array_dtype(float32)
        dtype('float32')
    """
    if d is complex32:
        raise NotImplementedError(
            f"there are no arrays of {d}: XLA has no complex numbers of half precision; convert to torch.complex64"
        )
    if d.numpy is None:
        raise NotImplementedError(f"there are no arrays of {d}: here it is only a name")
    return d.numpy


_OF_TYPES = {float: float64, int: int64, bool: bool_, complex: complex128}


def wanted(function: str, d: Any) -> Any:
    """A ``dtype`` argument as a dtype: Python's number types stand for one, None for none.

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
    if d.numpy is None or d in FLOAT8:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    if d is not _default:
        _default = d
        for forget in _listeners:
            forget()


_listeners: list[Callable[[], None]] = []


def when_default_changes(forget: Callable[[], None]) -> None:
    """Calls ``forget`` whenever the default dtype changes: compiled programs may depend on it."""
    _listeners.append(forget)


class Wide(int):
    """An integer from ``2**63`` on: a kind of number of its own, since only arrays without a sign hold it."""

    __slots__ = ()


class TooWide(RuntimeError):
    """Says of a number that it is a ``Wide`` one, to what is made for others."""


def plain_number(value: Any) -> Any:
    """A number as operations take it: of Python's own type, or ``Wide``.

    Raises:
        OverflowError: for integers that no array holds.

    Example:
        >>> plain_number(np.float64(0.5)), type(plain_number(2**63)).__name__
        (0.5, 'Wide')
        >>> plain_number(2**64)
        Traceback (most recent call last):
        OverflowError: int too big to convert
    """
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    kind = next(kind for kind in kinds if isinstance(value, kind))
    if kind is int and not -(2**63) <= value < 2**63:
        return Wide.from_bytes(int.to_bytes(value, 8, "little"), "little")
    return kind(value)


def index_number(value: Any) -> int:
    """A size, a dimension or an index as an integer of Python's own.

    Raises:
        ValueError: for one that no signed integer of 64 bits holds.
    """
    found: int = value.__index__()
    if not -(2**63) <= found < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return found


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
    if kind is Wide:
        return uint64
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
        TypeError: for an argument that is not a dtype.
        RuntimeError: for dtypes that PyTorch does not mix, as ``uint16`` with another integer one.

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


def _check_mixes(a: dtype, b: dtype) -> None:
    """Raises for two dtypes that cannot be promoted.

    Raises:
        RuntimeError: for dtypes that PyTorch does not mix with others.
    """
    both = f"attempted to promote {a.scalar_name} and {b.scalar_name}"
    if a in _QUANTIZED or b in _QUANTIZED:
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {a.scalar_name} {b.scalar_name}"
        )
    if a in _BITS or b in _BITS:
        raise RuntimeError(f"Promotion from {a.scalar_name} and {b.scalar_name} is unsupported.")
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, {both}")
    if a in _NOT_MIXED or b in _NOT_MIXED:
        raise RuntimeError(f"Promotion of {a.scalar_name} and {b.scalar_name} is not supported, {both}")


def _promote(a: dtype, b: dtype) -> dtype:
    first, second = a, b
    _check_mixes(a, b)
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
    if from_.category > to.category and to not in BARE:
        return False
    return not (to is bool_ and from_ is not bool_)


def combine(dimensioned: Collection[dtype], zero_dim: Collection[dtype], numbers: Collection[type]) -> dtype:
    """The common dtype of tensors with dimensions, zero-dimensional tensors and Python numbers (their types)."""
    result = _fold(dimensioned)
    if result is None or result.category < COMPLEX:
        if zero_dim:
            result = _raise(result, _fold(zero_dim))
        if numbers:
            result = _raise(result, _fold([of_number(k) for k in numbers]))
    assert result is not None, "no operands"
    return result


def _fold(group: Collection[dtype]) -> dtype | None:
    result = None
    for d in group:
        result = d if result is None or result is d else promote_types(result, d)
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

    __module__ = "compat"

    def __init__(self, type: dtype | None = None):
        type = _default if type is None else type
        if not isinstance(type, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {_type_name(type)}")
        if type.category < FLOATING:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        if type is _FLOAT4:
            raise TypeError("bad argument type for built-in operation")
        real = type.to_real()
        self.dtype = real._name
        info: Any = _limits(real)
        self.bits = real.itemsize * 8
        # PyTorch has half of ml_dtypes's value for this one.
        self.eps = 0.125 if real._name == "float8_e5m2fnuz" else float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = 1.0 if real in FLOAT8 else float(10.0**-info.precision)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))


def _limits(d: dtype) -> Any:
    if d is bfloat16 or d in FLOAT8:
        import ml_dtypes

        return ml_dtypes.finfo(getattr(ml_dtypes, d._name))
    return np.finfo(d.numpy)


class iinfo:
    """Limits of an integer dtype: ``bits, max, min``.

    Example:
        >>> import compat as torch
        >>> torch.iinfo(torch.int8)
        iinfo(min=-128, max=127, dtype=int8)
    """

    __module__ = "compat"

    def __init__(self, type: dtype):
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {_type_name(type)}")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type in _QUANTIZED:
            raise NotImplementedError(f"\"dtype\" not implemented for '{type.scalar_name}'")
        if type.category > INTEGER or type.numpy is None:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        info = np.iinfo(type.numpy)
        self.dtype = type._name
        self.bits = info.bits
        self.max = int(info.max)
        self.min = int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))


def _type_name(x: object) -> str:
    return type(x).__name__
