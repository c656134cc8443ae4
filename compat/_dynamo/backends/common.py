"""``torch._dynamo.backends.common``: backends made of compilers of forward and backward graphs; not supported."""

from __future__ import annotations

from typing import Any

__all__ = ["aot_autograd"]


def aot_autograd(**kwargs: Any) -> Any:
    """Not supported: there is no trace of the backward pass in operators of ``aten``.

    Args:
        kwargs: ``fw_compiler``, ``bw_compiler`` and others.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "torch._dynamo.backends.common.aot_autograd: a backend gets the graph of the forward pass only; give "
        "torch.compile a function of an fx.GraphModule and its example inputs"
    )
