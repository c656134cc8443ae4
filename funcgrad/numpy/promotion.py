"""Conversion of operands: array-likes to arrays, Python scalars to typed ones, dtype promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.arguments.flatten import kind
from funcgrad.core import dtypes, trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import Tracer, is_array, type_of
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.shape import concatenate, reshape
from funcgrad.runtime.deferred import ready


def placed(x: Any, device: Any) -> Any:
    """``x`` moved to a device (or a sharding), if it is an array; unchanged for None.

    The device of traced arrays is decided when their program runs.
    """
    if device is None:
        return x
    if not isinstance(device, (jax.Device, jax.sharding.Sharding)):
        raise TypeError(f"device must be one of JAX's devices, or a sharding, got {kind(device)}")
    x = ready(x)
    return x if isinstance(x, Tracer) else jax.device_put(x, device)


def asoperand(x: Any, name: str = "argument") -> Any:
    """``x`` as an operand; nested sequences of numbers and arrays become arrays.

    Raises:
        TypeError: for anything that is not an array, a number or a sequence of them.
    """
    if is_array(x):
        return x
    if isinstance(x, (list, tuple)):
        return from_sequence(x)
    x = trees.array_of(x)
    if is_array(x):
        return x
    if hasattr(x, "__array__"):
        return np.asarray(x)
    raise TypeError(f"{name}: got {kind(x)}, wanted an array or a number")


def operands(arrays: Any, name: str) -> list[Any]:
    """The arrays of a sequence, or the slices of an array, as operands.

    Raises:
        TypeError: for an argument that is not a sequence of arrays.
        ValueError: for an empty one.

    Example:
        >>> operands((1, 2.0), "stack")
        [1, 2.0]
    """
    if isinstance(arrays, (str, dict, set)) or not np.iterable(arrays):
        raise TypeError(f"{name}: wants a sequence of arrays, got {kind(arrays)}")
    found = [asoperand(x, name) for x in arrays]
    if not found:
        raise ValueError(f"{name}: wants at least one array, got none")
    return found


def beside(like: Any, x: Any, name: str = "argument") -> Any:
    """``x`` as an operand to be combined with ``like``: Python numbers, in sequences too, take its dtype if
    representable."""
    if not isinstance(x, (list, tuple)):
        return asoperand(x, name)
    leaves: list[Any] = []
    _collect(x, leaves)
    classes = {type(leaf) for leaf in leaves}
    if not classes <= PYTHON_NUMBERS:
        return from_sequence(x)
    dtype = type_of(like).dtype
    for own in classes:
        dtype, _ = dtypes.promote_weak(dtype, False, dtypes.DEFAULT[own], own is not bool)
    return from_sequence(x, dtype)


def from_sequence(x: Sequence[Any], dtype: np.dtype | None = None) -> Any:
    """Nested sequences of numbers and arrays, which may be traced, as one array, in ``dtype`` if given.

    Raises:
        TypeError: for anything else in them.
        ValueError: for ragged sequences.
    """
    leaves: list[Any] = []
    _collect(x, leaves)
    if any(map(trees.is_other_array, set(map(type, leaves)))):
        return from_sequence(_converted(x), dtype)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        # Directly in the final dtype: a float64 must not pass through float32.
        try:
            plain = np.asarray([e if type(e) in PYTHON_NUMBERS else np.asarray(e, dtype) for e in x], dtype)
        except ValueError:
            raise ValueError(f"asarray: the rows of {_shown(x)} differ in shape, or hold what is no number") from None
        if plain.dtype.kind in "OSUMm":
            raise TypeError(f"asarray: wants numbers, got {_shown(x)}")
        if dtype is not None:
            return plain
        kinds = {type(leaf) for leaf in leaves}
        if kinds <= {bool, int, float, complex}:
            scalar = max(kinds, key=[bool, int, float, complex].index) if kinds else float
            return plain.astype(dtypes.DEFAULT[scalar])
        return plain
    rows = [from_sequence(e) if isinstance(e, (list, tuple)) else e for e in x]
    rows = promoted(*rows) if dtype is None else [astype(row, dtype) for row in rows]
    shapes = {type_of(r).shape for r in rows}
    if len(shapes) > 1:
        raise ValueError(f"asarray: rows of different shapes: {', '.join(map(str, shapes))}")
    return concatenate(*[reshape(r, shape=(1, *type_of(r).shape)) for r in rows], axis=0)


def _shown(x: Any) -> str:
    """A sequence, shortened for a message."""
    text = repr(x)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _converted(x: Sequence[Any]) -> list[Any]:
    """A nested sequence with other libraries' arrays converted."""
    return [_converted(e) if isinstance(e, (list, tuple)) else trees.array_of(e) for e in x]


def _collect(x: Any, leaves: list[Any]) -> None:
    for element in x:
        if isinstance(element, (list, tuple)):
            _collect(element, leaves)
        else:
            leaves.append(element)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """``x`` with another dtype; Python and NumPy scalars stay scalars.

    Args:
        x: an array, number or nested sequence of them.
        dtype: a dtype or its name.
        copy: ignored, as arrays are immutable.
        device: the device of the result.

    Returns:
        An array of the shape of ``x``, or a NumPy scalar; the real part, if ``x`` is complex and the dtype is neither
        complex nor bool.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.

    Example:
        >>> astype(np.array([1.5, 2.5]), "int32").tolist()
        [1, 2]
    """
    wanted = dtype if isinstance(dtype, np.dtype) else dtypes.canonical(dtype)
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return _scalar(x, wanted)
    x = asoperand(x, "astype")
    mine = type_of(x)
    converted = x if mine.dtype == wanted and not mine.weak else cast(x, dtype=dtypes.canonical(wanted))
    return converted if device is None else placed(converted, device)


def _scalar(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, (complex, np.complexfloating)) and not dtypes.is_complex(dtype):
        x = bool(x) if dtype == dtypes.bool_ else x.real
    return np.asarray(x).astype(dtype)[()]


Convert = Callable[[Any], Any]
PYTHON_NUMBERS = frozenset((bool, int, float, complex))
#: By the kinds of the operands: the conversion of each, or None.
_promotions: Cache[tuple, list[Convert | None]] = Cache(Group("promotions", 8192))


def promoted(*xs: Any, floating: bool = False) -> list[Any]:
    """The operands in their common dtype; with ``floating``, at least the default float."""
    kinds = tuple([_kind(x) for x in xs])
    converts = _promotions.get((floating, kinds)) or _promotion(kinds, floating)
    return [x if convert is None else convert(x) for x, convert in zip(xs, converts)]


def promoted_pair(x: Any, y: Any, floating: bool = False) -> tuple[Any, Any]:
    """``promoted`` for two operands, the most common case."""
    traced_x, traced_y = isinstance(x, Tracer), isinstance(y, Tracer)
    if (traced_x and (traced_y or isinstance(y, np.generic))) or (traced_y and isinstance(x, np.generic)):
        dtype = x.type.dtype if traced_x else x.dtype
        if dtype == (y.type.dtype if traced_y else y.dtype) and not (floating and not dtypes.is_inexact(dtype)):
            return x, y
    kinds = _kind(x), _kind(y)
    convert_x, convert_y = _promotions.get((floating, kinds)) or _promotion(kinds, floating)
    return x if convert_x is None else convert_x(x), y if convert_y is None else convert_y(y)


def _kind(x: Any) -> Any:
    """The promotion key of ``x``: the type of an array, or the class of a Python number, which must be converted to a
    typed scalar in any case."""
    if isinstance(x, Tracer):
        return x.type
    return x.__class__ if x.__class__ in PYTHON_NUMBERS else type_of(x)


def _promotion(kinds: tuple, floating: bool) -> list[Convert | None]:
    known = _promotions.again((floating, kinds))
    if known is not None:
        return known
    types = [k if isinstance(k, ArrayType) else type_of(k()) for k in kinds]
    dtype, weak = types[0].dtype, types[0].weak
    for t in types[1:]:
        dtype, weak = dtypes.promote_weak(dtype, weak, t.dtype, t.weak)
    if floating and not dtypes.is_inexact(dtype):
        dtype = dtypes.float32
        weak = False
    converts = [_conversion(k, t, dtype, weak) for k, t in zip(kinds, types, strict=True)]
    _promotions[floating, kinds] = converts
    return converts


def _conversion(kind: Any, type: ArrayType, dtype: np.dtype, weak: bool) -> Convert | None:
    """The function that converts an operand to ``dtype``."""
    if type.dtype == dtype and (weak or isinstance(kind, ArrayType)):
        return None
    if weak:
        return lambda x: _weak(x, dtype)
    if kind is float and dtypes.is_inexact(dtype):
        return dtype.type
    return lambda x: astype(x, dtype)


def _weak(x: Any, dtype: np.dtype) -> Any:
    """A weak ``x`` in another dtype, still weak; Python numbers stay Python numbers."""
    if isinstance(x, (int, float)):
        return complex(x) if dtypes.is_complex(dtype) else float(x) if dtypes.is_inexact(dtype) else int(x)
    return cast(x, dtype=dtype, weak=True)


def result_type(*xs: Any) -> np.dtype:
    """The common dtype of the operands (arrays, scalars or dtypes).

    Args:
        xs: at least one. Python numbers, and ``int``, ``float`` and ``complex``, are weak.

    Returns:
        A ``numpy.dtype``.

    Raises:
        TypeError: for an argument that is neither an array nor a dtype.
        ValueError: for no operands.

    Example:
        >>> result_type(np.zeros(1, "float16"), 2.0)
        dtype('float16')
    """
    if not xs:
        raise ValueError("result_type: wants at least one array or dtype, got none")
    pairs = []
    for x in xs:
        if is_array(x):
            pairs.append((type_of(x).dtype, type_of(x).weak))
        else:
            # By identity: a dtype equals the Python type of the same name.
            pairs.append((dtypes.canonical(x), any(x is kind for kind in (int, float, complex))))
    dtype, weak = pairs[0]
    for other, other_weak in pairs[1:]:
        dtype, weak = dtypes.promote_weak(dtype, weak, other, other_weak)
    return dtype
