"""Writing into tensors whose own elements share places, as those of expanded ones do.

PyTorch lets a few operations do that, and warns: they write only some of the elements, one after the other. What they
write is so put into the memory itself, at the places of those elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.errors import warn
from compat.registry import names_of
from compat.tensor import Tensor

_SUBSCRIPTS = {"index_put_": "tensor[indices] = tensor", "": "tensor[mask] = scalar"}


def write_places(
    name: str, t: Tensor, choose: Callable[[Tensor], Tensor], values: Any, accumulate: bool = False
) -> Tensor:
    """Writes some elements of an expanded tensor; returns it.

    Args:
        name: the operation's.
        choose: from a tensor like ``t``, which holds the places of its elements, to those to write.
        values: a number, or a tensor that broadcasts to what ``choose`` gives.
        accumulate: whether they are added.

    Example:
        >>> import compat as torch
        >>> t = torch.zeros(2, 1).expand(2, 3)
        >>> write_places("index_put_", t, lambda places: places[1], 5.0)
        tensor([[0., 0., 0.],
                [5., 5., 5.]])
    """
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. {_SUBSCRIPTS.get(name, _SUBSCRIPTS[''])}"
    )
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) if t.numel() else 0
    places = names_of("torch")["arange"](span).as_strided(t.shape, t.stride())
    chosen = choose(places)
    values = values.to(t.dtype) if isinstance(values, Tensor) else t.new_full((), values)
    t.as_strided((span,), (1,), t.storage_offset()).index_put_((chosen,), values, accumulate)
    return t
