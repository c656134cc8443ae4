"""Parts of tensors between given places, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.schema.arguments import size_argument
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import wrap_dim
from compat._operators.view.slicing import slice_view


def _pieces(input: Tensor, bounds: Sequence[Any], dim: int) -> tuple[Tensor, ...]:
    starts, ends = [0, *bounds], [*bounds, input.shape[dim]]
    return tuple(slice_view(input, dim, start, end) for start, end in zip(starts, ends))


def _sections(input: Tensor, count: int, dim: int) -> tuple[Tensor, ...]:
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    each, longer = divmod(input.shape[dim], count)
    bounds = [i * each + min(i, longer) for i in range(1, count)]
    return _pieces(input, bounds, dim)


@composite("torch.tensor_split", "Tensor.tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0, **named: Any) -> tuple[Tensor, ...]:
    """Parts along a dimension: so many, of sizes as equal as can be; or between the places given.

    Args:
        input: at least one dimension.
        indices_or_sections: a number of parts, or places to split at, also as a tensor.
        dim: the dimension.

    Raises:
        RuntimeError: for a tensor without dimensions, and no parts.

    Example:
        >>> import compat as torch
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    wanted = named.get("indices", named.get("sections", indices_or_sections))
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    along = wrap_dim(dim, input.dim())
    if isinstance(wanted, Tensor):
        wanted = _places(wanted)
    if hasattr(wanted, "__index__"):
        return _sections(input, wanted.__index__(), along)
    return _pieces(input, list(size_argument("tensor_split", "indices", 2, (wanted,))), along)


def _places(wanted: Tensor) -> Any:
    if wanted.dtype is not dtype.int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{wanted.dtype.scalar_name}"
        )
    if wanted.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {wanted.dim()} dims"
        )
    return wanted.tolist()


_LEAST = {"hsplit": 1, "vsplit": 2, "dsplit": 3}

_SPLIT_DOC = """Parts along {which}: equal ones, so many; or between the places given.

    Args:
        input: at least {least} dimension{s}.
        indices_or_sections: a number of parts, or places to split at.

    Raises:
        RuntimeError: where parts cannot be equal.

    Example:
        >>> import compat as torch
        >>> [tuple(part.shape) for part in torch.{name}(torch.ones(2, 2, 2), 2)]
        {result}
    """


def _publish(name: str, dim: int, which: str) -> None:
    def split(input: Tensor, indices_or_sections: Any = None, **named: Any) -> tuple[Tensor, ...]:
        wanted = named.get("indices", named.get("sections", indices_or_sections))
        least = _LEAST[name]
        if input.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.dim()} "
                "dimensions!"
            )
        along = min(dim, input.dim() - 1)
        _check_kind(name, wanted)
        if hasattr(wanted, "__index__"):
            size = input.shape[along]
            if wanted == 0 or size % wanted:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is "
                    f"not divisible by the split_size {wanted}!"
                )
        return tensor_split(input, wanted, along)

    split.__name__ = split.__qualname__ = name
    parts = [tuple(1 if d == dim else 2 for d in range(3))] * 2
    least = _LEAST[name]
    plural = "" if least == 1 else "s"
    split.__doc__ = _SPLIT_DOC.format(which=which, least=least, s=plural, name=name, result=parts)
    composite(f"torch.{name}", f"Tensor.{name}")(split)


def _check_kind(name: str, wanted: Any) -> None:
    if hasattr(wanted, "__index__") or isinstance(wanted, list | tuple):
        return
    kind = type(wanted).__name__
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got (Tensor, {kind}), but expected one of:\n"
        " * (Tensor input, int sections)\n      didn't match because some of the arguments have invalid types: "
        f"(Tensor, !{kind}!)\n * (Tensor input, tuple of ints indices)\n      didn't match because some of the "
        f"arguments have invalid types: (Tensor, !{kind}!)\n"
    )


_publish("vsplit", 0, "the first dimension")
_publish("hsplit", 1, "the second dimension, or the only one")
_publish("dsplit", 2, "the third dimension")
