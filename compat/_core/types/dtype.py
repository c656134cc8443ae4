"""Dtypes, their limits, and the default dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core import dtypes as fdtypes

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements, such as ``torch.float32``.

    There is one object per dtype; compare with ``is`` or ``==``.

    Attributes:
        itemsize: the bytes of an element.
        is_floating_point, is_complex: its category.

    Example:
        >>> import compat as torch
        >>> torch.float32, torch.float32.itemsize, torch.float32.to_complex()
        (torch.float32, 4, torch.complex64)
    """

    __slots__ = (
        "_name", "numpy", "itemsize", "category", "is_floating_point", "is_complex", "_signed", "scalar_name",
    )  # fmt: skip
    _name: str
    #: The NumPy dtype; None if neither NumPy nor XLA has arrays of it.
    numpy: Any
    #: The C++ name of its ``ScalarType``, used in messages.
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
        """Whether it can represent negative numbers.

        Raises:
            RuntimeError: for quantized and bits dtypes, where that is undefined.
        """
        if self._signed is None:
            quantized = self in QUANTIZED
            raise RuntimeError(
                "isSignedType not supported for quantized types" if quantized else "Bits types are undefined"
            )
        return self._signed

    @property
    def abbr(self) -> str:
        """Its abbreviation: ``f32``."""
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
        """The complex dtype whose parts have this dtype.

        Raises:
            RuntimeError: for integers and bool.
        """
        if self not in _TO_COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return _TO_COMPLEX[self]


dtype.__module__ = "torch"  # shown in its name

#: Prefixes of abbreviations by prefixes of names; quantized and other dtypes have no abbreviation.
_LETTERS = {"float": "f", "bfloat": "bf", "complex": "c", "bits": "b", "int": "i", "uint": "u"}


def _abbreviated(d: dtype) -> str:
    if d is bool_:
        return "b8"
    word = d._name.rstrip("0123456789") if "_" not in d._name else "float"
    if d in BITS:
        word = "bits"
    rest = d._name.removeprefix(word).replace("_", "")
    if d in (*QUANTIZED, *SMALL_UNSIGNED, *SMALL_SIGNED):
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
    """A dtype without arrays, for programs that name it, mostly in tables of dtypes."""
    return dtype(name, None, itemsize, category, signed, scalar_name)


#: Floating-point dtypes of eight bits: for storage and casts.
FLOAT8 = tuple(
    _of(d.name, d, FLOATING, f"F{d.name[1:]}", signed=d is not fdtypes.float8_e8m0fnu) for d in fdtypes.FLOAT8
)
float4 = _bare("float4_e2m1fn_x2", FLOATING, "Float4_e2m1fn_x2", signed=True)
QUANTIZED = (
    *(_bare(f"q{n.lower()}", INTEGER, f"Q{n}", signed=None) for n in ("UInt8", "Int8", "UInt4x2", "UInt2x4")),
    _bare("qint32", INTEGER, "QInt32", signed=None, itemsize=4),
)
BITS = tuple(
    _bare(f"bits{n}", INTEGER, f"Bits{n}", signed=None, itemsize=2 if n == "16" else 1)
    for n in ("1x8", "2x4", "4x2", "8", "16")
)
SMALL_UNSIGNED = tuple(_bare(f"uint{n}", INTEGER, f"UInt{n}", signed=False) for n in range(1, 8))
SMALL_SIGNED = tuple(_bare(f"int{n}", INTEGER, f"Int{n}", signed=True) for n in range(1, 8))
BARE = (float4, *QUANTIZED, *BITS, *SMALL_UNSIGNED, *SMALL_SIGNED)

#: The dtypes of tensors, and ``complex32``.
ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128,
)  # fmt: skip
_by_name = {d._name: d for d in (*ALL, *FLOAT8, *BARE)}


def _named(name: str) -> dtype:
    """The dtype of a name; used by unpickling."""
    return _by_name[name]


_from_numpy = {d.numpy: d for d in (*ALL, *FLOAT8) if d.numpy is not None}

#: All names of dtypes in the torch namespace.
NAMES: dict[str, dtype] = _by_name | dict(
    short=int16, int=int32, long=int64, half=float16, float=float32, double=float64,
    chalf=complex32, cfloat=complex64, cdouble=complex128,
)  # fmt: skip

_TO_COMPLEX = {
    float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128,
    complex32: complex32, complex64: complex64, complex128: complex128,
}  # fmt: skip
_TO_REAL = {complex32: float16, complex64: float32, complex128: float64}


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
        NotImplementedError: for ``complex32`` and other dtypes without arrays.

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
    """The dtype of a ``dtype`` argument: a dtype, a Python number type, or None.

    Raises:
        TypeError: for another argument.
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
    """An integer of at least ``2**63``: a separate type of number, since only unsigned arrays can hold it."""

    __slots__ = ()


class TooWide(RuntimeError):
    """Raised by code compiled for smaller integers: the number is a ``Wide`` one."""


def plain_number(value: Any) -> Any:
    """A number as a Python number, or ``Wide``.

    Raises:
        OverflowError: for integers that no array can hold.

    Example:
        >>> plain_number(np.float64(0.5)), type(plain_number(2**63)).__name__
        (0.5, 'Wide')
        >>> plain_number(2**64)
        Traceback (most recent call last):
        OverflowError: int too big to convert
    """
    kind: Any = value.__class__
    if kind not in _PLAIN:
        kind = next(plain for plain in _PLAIN if isinstance(value, plain))
    if kind is int and not -(2**63) <= value < 2**63:
        return Wide.from_bytes(int.to_bytes(value, 8, "little"), "little")
    return value if value.__class__ is kind else kind(value)


_PLAIN = (bool, int, float, complex)


def index_number(value: Any) -> int:
    """A size, a dimension or an index as a Python integer.

    Raises:
        ValueError: for one outside the range of a signed 64-bit integer.
    """
    found: int = value.__index__()
    if not -(2**63) <= found < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return found


def of_number(value: Any) -> dtype:
    """The dtype of a tensor made from a Python number."""
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


# ---------------------------------------------------------------- finfo, iinfo


class _Info:
    """The limits of a dtype; equal for one dtype."""

    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Info):
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
        if type is float4:
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


def _limits(d: dtype) -> Any:
    if d is bfloat16 or d in FLOAT8:
        import ml_dtypes

        return ml_dtypes.finfo(getattr(ml_dtypes, d._name))
    return np.finfo(d.numpy)


class iinfo(_Info):
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
        if type in QUANTIZED:
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


def _type_name(x: object) -> str:
    return type(x).__name__
