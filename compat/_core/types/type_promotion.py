"""Type promotion: the common dtype of operands, and which casts are implicit.

PyTorch promotes by *category* (bool < integer < floating < complex): operands with dimensions decide first, then
zero-dimensional tensors, then Python numbers, and a later group changes the result only when its category is higher.
"""

from __future__ import annotations

from collections.abc import Collection

from compat._core.types.dtype import (
    BARE,
    BITS,
    COMPLEX,
    FLOAT8,
    FLOATING,
    QUANTIZED,
    SMALL_SIGNED,
    SMALL_UNSIGNED,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    dtype,
    float4,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    of_number,
    uint8,
    uint16,
    uint32,
    uint64,
)

_WIDE_UNSIGNED = frozenset((uint16, uint32, uint64, *SMALL_UNSIGNED))
_NOT_MIXED = frozenset((float4, *SMALL_SIGNED))

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
                    f"promote_types(): argument 'type{i}' (position {i}) must be torch.dtype, "
                    f"not {type(given).__name__}"
                )
        found = _promotions[type1, type2] = _promote(type1, type2)
    return found


def _check_mixes(a: dtype, b: dtype) -> None:
    """Raises for two dtypes that cannot be promoted.

    Raises:
        RuntimeError: for dtypes that PyTorch does not mix with others.
    """
    both = f"attempted to promote {a.scalar_name} and {b.scalar_name}"
    if a in QUANTIZED or b in QUANTIZED:
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {a.scalar_name} {b.scalar_name}"
        )
    if a in BITS or b in BITS:
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
    """Whether PyTorch casts ``from_`` to ``to`` implicitly: never to a lower category.

    Example:
        >>> import compat as torch
        >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
        (True, False)
    """
    for i, (name, given) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(given, dtype):
            raise TypeError(
                f"can_cast(): argument '{name}' (position {i}) must be torch.dtype, not {type(given).__name__}"
            )
    if from_.category > to.category and to not in BARE:
        return False
    return not (to is bool_ and from_ is not bool_)


def check_cast(found: dtype, wanted: dtype) -> None:
    """Checks that results of a dtype can be written into a tensor of another.

    Raises:
        RuntimeError: if ``can_cast`` is False.

    Example:
        >>> import compat as torch
        >>> check_cast(torch.float64, torch.float32)
        >>> check_cast(torch.float32, torch.int64)
        Traceback (most recent call last):
        RuntimeError: result type Float can't be cast to the desired output type Long
    """
    if not can_cast(found, wanted):
        raise RuntimeError(
            f"result type {found.scalar_name} can't be cast to the desired output type {wanted.scalar_name}"
        )


def common_dtype(dimensioned: Collection[dtype], zero_dim: Collection[dtype], numbers: Collection[type]) -> dtype:
    """The common dtype of tensors with dimensions, zero-dimensional tensors and Python numbers (given as types)."""
    result = _promote_group(dimensioned)
    if result is None or result.category < COMPLEX:
        if zero_dim:
            result = _promote_category(result, _promote_group(zero_dim))
        if numbers:
            result = _promote_category(result, _promote_group([of_number(k) for k in numbers]))
    assert result is not None, "no operands"
    return result


def _promote_group(group: Collection[dtype]) -> dtype | None:
    result = None
    for d in group:
        result = d if result is None or result is d else promote_types(result, d)
    return result


def _promote_category(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """The common dtype of two groups of operands; the group of lower priority counts only if its category is higher."""
    if higher is None or lower is None:
        return higher or lower
    if lower.category <= higher.category:
        return higher
    return higher.to_complex() if higher.category == FLOATING else promote_types(higher, lower)
