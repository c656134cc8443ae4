"""``tensor_split``, ``hsplit``, ``vsplit``, ``dsplit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.call_errors import wrong_call
from compat._core.operators.composite import composite
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import wrap_dim
from compat._operators.arguments import size_argument
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


@composite(
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, "
    "int dim=0) -> Tensor(a)[]",
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
)
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Splits a dimension into a number of nearly equal parts, or at given indices.

    Args:
        input: a tensor of at least one dimension.
        indices_or_sections: the number of parts, or the indices to split at, also as a tensor.
        dim: the dimension.

    Raises:
        RuntimeError: for a 0-d tensor, and for a number of parts below 1.

    Example:
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    cut = indices_or_sections
    if cut.__class__ not in (int, tuple, list):
        cut = _indices_or_sections("tensor_split", input, cut, indices, sections, tensor_indices_or_sections)
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    along = wrap_dim(dim, input.dim())
    if isinstance(cut, Tensor):
        cut = _from_tensor(cut)
    if hasattr(cut, "__index__"):
        return _sections(input, cut.__index__(), along)
    return _pieces(input, list(size_argument("tensor_split", "indices", 2, (cut,))), along)


def _indices_or_sections(name: str, input: Tensor, *arguments: Any) -> Any:
    """The number of parts or the indices: the one of ``arguments`` that was given.

    Raises:
        TypeError: if it is missing or invalid.
    """
    for cut in arguments:
        if isinstance(cut, (list, tuple, Tensor)) or (hasattr(cut, "__index__") and not isinstance(cut, bool)):
            return cut
    raise wrong_call(f"torch.{name}", input, *[cut for cut in arguments if cut is not None])


def _from_tensor(cut: Tensor) -> Any:
    if cut.dtype is not dtype.int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {cut.dtype.scalar_name}"
        )
    if cut.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {cut.dim()} dims"
        )
    return cut.tolist()


_LEAST = {"hsplit": 1, "vsplit": 2, "dsplit": 3}

_SPLIT_DOC = """Splits along {which}, into a number of equal parts or at indices.

    Args:
        input: at least {least} dimension{s}.
        indices_or_sections: the number of parts, or the indices to split at.

    Raises:
        RuntimeError: if the size is not divisible by the number of parts.

    Example:
        >>> [tuple(part.shape) for part in torch.{name}(torch.ones(2, 2, 2), 2)]
        {result}
    """


def _publish(name: str, dim: int, which: str) -> None:
    def split(
        input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
    ) -> tuple[Tensor, ...]:
        cut = _indices_or_sections(name, input, indices_or_sections, indices, sections)
        least = _LEAST[name]
        if input.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.dim()} "
                "dimensions!"
            )
        along = min(dim, input.dim() - 1)
        if hasattr(cut, "__index__"):
            size = input.shape[along]
            if cut == 0 or size % cut:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is "
                    f"not divisible by the split_size {cut}!"
                )
        return tensor_split(input, cut, along)

    split.__name__ = split.__qualname__ = name
    parts = [tuple(1 if d == dim else 2 for d in range(3))] * 2
    least = _LEAST[name]
    plural = "" if least == 1 else "s"
    split.__doc__ = _SPLIT_DOC.format(which=which, least=least, s=plural, name=name, result=parts)
    composite(
        f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
        f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    )(split)


_publish("vsplit", 0, "the first dimension")
_publish("hsplit", 1, "the second dimension, or the only one")
_publish("dsplit", 2, "the third dimension")
