"""``torch.nested._internal.ops``: what programs build a nested tensor like another one from."""

from __future__ import annotations

from typing import Any

from compat.nested._internal.nested_tensor import NestedTensor

__all__ = ["extract_kwargs"]


def extract_kwargs(arg: NestedTensor) -> dict[str, Any]:
    """The arguments of ``NestedTensor`` besides the values.

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> extract_kwargs(x)["offsets"]
        tensor([0, 2, 5])
    """
    return {
        "offsets": arg.offsets(), "lengths": arg.lengths(), "_metadata_cache": arg._metadata_cache,
        "_ragged_idx": arg._ragged_idx,
    }  # fmt: skip
