"""In-place operations on tensors with internal overlap, such as expanded ones.

PyTorch allows them, with a warning, for a few operations that write some of the elements one after the other. Here they
write the memory at the places of those elements. The graph has the operation's own node, so backward through a view's
base works, which PyTorch refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.autograd.rebase_history import rebase_checked
from compat._core.memory.strides import room
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.errors import warn

_SUBSCRIPTS = {"index_put_": "tensor[indices] = tensor", "": "tensor[mask] = scalar"}


def write_places(
    name: str,
    t: Tensor,
    choose: Callable[[Tensor], Tensor],
    values: Any,
    copied: Callable[[], Tensor],
    accumulate: bool = False,
) -> Tensor:
    """Writes some elements of an expanded tensor; returns it.

    Args:
        name: the operation's name.
        choose: selects the places to write from a tensor like ``t`` that has the places of its elements.
        values: a number, or a tensor that broadcasts to the result of ``choose``.
        copied: the out-of-place operation; its node is used if operations are recorded.
        accumulate: whether the values are added.

    Example:
        >>> import compat as torch
        >>> t, rows = torch.zeros(2, 1).expand(2, 3), torch.tensor([1])
        >>> write_places("index_fill_", t, lambda p: p[rows], 5.0, lambda: t.index_fill(0, rows, 5.0))
        tensor([[0., 0., 0.],
                [5., 5., 5.]])
    """
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. {_SUBSCRIPTS.get(name, _SUBSCRIPTS[''])}"
    )
    recorded = mode.grad and (t.requires_grad or (isinstance(values, Tensor) and values.requires_grad))
    written = copied() if recorded else None
    with no_grad():
        span = room(t.shape, t.stride())
        places = names_of("torch")["arange"](span).as_strided(t.shape, t.stride())
        values = values.to(t.dtype) if isinstance(values, Tensor) else t.new_full((), values)
        t.as_strided((span,), (1,), t.storage_offset()).index_put_((choose(places),), values, accumulate)
    if written is not None and written._node_ is not None:
        rebase_checked(t, written._node_, written._nr_)
    return t
