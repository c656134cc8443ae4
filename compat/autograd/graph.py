"""``torch.autograd.graph``: the graph itself, and hooks on what it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat.autograd.node import Node, edge_of
from compat.autograd.saved import hooks
from compat.tensor import Tensor


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: a node, and which of its outputs."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor.

    Raises:
        RuntimeError: if it does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, nr = edge_of(tensor)
    assert node is not None
    return GradientEdge(node, nr)


class saved_tensors_hooks:
    """Within it nodes keep ``pack_hook(tensor)`` and get ``unpack_hook`` of it back.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        ...     y = x.detach() * x
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        hooks.push(self.pair)

    def __exit__(self, *exc: object) -> None:
        hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors on the CPU, where they are already."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: t, lambda t: t)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within it, using hooks on saved tensors raises ``error_message``."""
    before = hooks.forbidden
    hooks.forbidden = error_message
    try:
        yield
    finally:
        hooks.forbidden = before


__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "save_on_cpu",
    "saved_tensors_hooks",
]
