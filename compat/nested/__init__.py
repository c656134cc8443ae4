"""``torch.nested``: tensors of sequences of different lengths, without padding.

Example:
    >>> x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    >>> torch.nn.functional.linear(x, torch.ones(5, 3)).unbind()[0]
    tensor([[3., 3., 3., 3., 3.],
            [3., 3., 3., 3., 3.]])
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.errors import refusal, wrong_argument
from compat._core.types.memory_format import LAYOUTS, strided
from compat.nested._internal.nested_tensor import Nested, NestedTensor, jagged, through_node
from compat.nested._internal.strided_nested import nested_of

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip

for _family in ("pointwise", "products", "reductions", "strided_nested", "views"):
    importlib.import_module(f"compat.nested._internal.{_family}")

_VIEW = "NestedViewFromJaggedBackward0"
_JAGGED = LAYOUTS["jagged"]


def _check_layout(layout: Any) -> Any:
    if layout not in (None, strided, _JAGGED):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout or strided


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor of copies of sequences, a leaf.

    Args:
        tensor_list: tensors or array-likes; with ``torch.jagged`` only their first dimensions may have different sizes,
            with ``torch.strided`` all.
        dtype, device: the dtype and device of the result; by default those of the first tensor.
        layout: ``torch.strided``, the default, or ``torch.jagged``.
        requires_grad: whether it requires grad.
        pin_memory: ignored.

    Raises:
        RuntimeError: for sequences that the layout cannot represent, and for another layout.

    Example:
        >>> torch.nested.nested_tensor([[1, 2, 3], [4]], layout=torch.jagged).values()
        tensor([1, 2, 3, 4])
    """
    layout = _check_layout(layout)
    tensors = [t.detach() for t in _tensors("nested_tensor", tensor_list, dtype, device)]
    made = _concatenated(tensors) if layout is _JAGGED else nested_of([t.clone() for t in tensors])
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of tensors, in their graph.

    Args:
        ts: a list of tensors, a tensor whose first dimension counts sequences, or a nested tensor.
        dtype, device: the dtype and device of the result.
        layout: ``torch.strided``, the default, or ``torch.jagged``.

    Raises:
        RuntimeError: for sequences that the layout cannot represent, and for a nested tensor of another layout.

    Example:
        >>> x = torch.ones(2, 3, requires_grad=True)
        >>> (torch.nested.as_nested_tensor([x, x], layout=torch.jagged) * 2).sum().backward()
        >>> x.grad
        tensor([[4., 4., 4.],
                [4., 4., 4.]])
    """
    layout = _check_layout(layout)
    if isinstance(ts, Nested):
        if ts.layout is not layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts if dtype is None else ts.to(dtype)
    if not isinstance(ts, (Tensor, list, tuple)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors, got "
            f"{type(ts).__name__}"
        )
    if isinstance(ts, Tensor) and layout is _JAGGED:
        values = ts.to(ts.dtype if dtype is None else dtype).flatten(0, 1)
        return jagged(values, from_array(np.arange(len(ts) + 1, dtype=np.int64) * ts.shape[1]))
    tensors = _tensors("as_nested_tensor", ts, dtype, device)
    return _concatenated(tensors) if layout is _JAGGED else nested_of(tensors)


def _tensors(name: str, given: Any, dtype: Any, device: Any) -> list[Tensor]:
    """The sequences as tensors of one dtype."""
    items = list(given.unbind() if isinstance(given, Tensor) else given)
    torch = names_of("torch")
    found = [t if isinstance(t, Tensor) else torch["tensor"](t) for t in items]
    kind = found[0].dtype if dtype is None and found else dtype
    return [t if t.dtype is kind else t.to(kind) for t in found]


def _concatenated(tensors: Sequence[Tensor]) -> NestedTensor:
    """A nested tensor of the concatenated sequences, in their graph."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if any(t.dim() == 0 for t in tensors):
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    if any(t.dim() != tensors[0].dim() for t in tensors):
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    differing = [d for d in range(tensors[0].dim()) if len({t.shape[d] for t in tensors}) > 1]
    if len(differing) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            "only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    ragged = differing[0] if differing else 0
    starts = np.cumsum([0, *[t.shape[ragged] for t in tensors]]).astype(np.int64)
    values = through_node(_VIEW, names_of("torch")["cat"](list(tensors), ragged))
    return jagged(values, from_array(starts), None, ragged + 1)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A nested tensor of values and offsets, in the graph of the values.

    Args:
        values: the values of all sequences.
        offsets: of shape (sequences + 1,): the offset of each sequence, and the end of the last one.
        lengths: of shape (sequences,): the lengths; besides ``offsets`` only if there are gaps between sequences.
        jagged_dim: the ragged dimension of the result; 1 by default.
        min_seqlen, max_seqlen: ignored.

    Raises:
        RuntimeError: if neither offsets nor lengths are given.
        TypeError: for offsets that are not a tensor.

    Example:
        >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(5), torch.tensor([0, 2, 5]))
        >>> x.unbind()
        (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        total = np.concatenate([[0], array_of(lengths).cumsum()])
        offsets, lengths = from_array(total.astype(np.int64)), None
    if not isinstance(offsets, Tensor):
        raise wrong_argument("_nested_view_from_jagged", "offsets", 2, "Tensor", offsets)
    return jagged(through_node(_VIEW, values), offsets, lengths, 1 if jagged_dim is None else jagged_dim)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = strided) -> Tensor:
    """A part of each row of a dense tensor, in its graph.

    Args:
        tensor: a tensor whose first dimension counts sequences.
        dim: the dimension of the parts; 1 for ``torch.jagged``.
        start: the start of each part, one number for all or a tensor.
        length: the length of each part, one number for all or a tensor.
        layout: ``torch.strided``, the default, or ``torch.jagged``.

    Raises:
        RuntimeError: for another dimension with ``torch.jagged``, and for another layout.

    Example:
        >>> x = torch.arange(6).reshape(2, 3)
        >>> torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), layout=torch.jagged).unbind()
        (tensor([0]), tensor([4, 5]))
    """
    layout = _check_layout(layout)
    starts, counts = (_per_sequence(n, len(tensor)) for n in (start, length))
    if layout is not _JAGGED:
        return nested_of([t.narrow(dim - 1, int(a), int(n)) for t, a, n in zip(tensor.unbind(), starts, counts)])
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    begins = starts + np.arange(len(tensor)) * tensor.shape[1]
    offsets = np.concatenate([begins, [begins[-1] + counts[-1]]]).astype(np.int64)
    return jagged(tensor.flatten(0, 1), from_array(offsets), from_array(counts))


def _per_sequence(given: Any, count: int) -> np.ndarray:
    found = array_of(given) if isinstance(given, Tensor) else np.asarray(given)
    return np.broadcast_to(found, (count,)).astype(np.int64)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row of a dense tensor at which a mask is true, of layout ``torch.jagged``.

    Args:
        tensor: dense.
        mask: bools, broadcast to the size of ``tensor``.

    Raises:
        RuntimeError: for a tensor that is not dense.

    Example:
        >>> x, keep = torch.arange(4).reshape(2, 2), torch.tensor([[True, True], [False, True]])
        >>> torch.nested.masked_select(x, keep).unbind()
        (tensor([0, 1]), tensor([3]))
    """
    if tensor.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    kept = mask.expand(tensor.shape)
    counts = array_of(kept).reshape(len(tensor), -1).sum(1)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    return jagged(tensor.masked_select(kept), from_array(starts))


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
    """A dense tensor of the padded sequences of a nested tensor.

    Args:
        input: a nested tensor.
        padding: the padding value.
        output_size: the size of the result; by default that of the longest sequence.
        out: not supported.

    Raises:
        NotImplementedError: for a dense tensor.

    Example:
        >>> x = torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged)
        >>> torch.nested.to_padded_tensor(x, 0)
        tensor([[1, 2],
                [3, 0]])
    """
    if not isinstance(input, Nested):
        raise refusal("aten::to_padded_tensor", "CPU")
    found: Tensor = input.to_padded_tensor(padding, output_size)
    return found
