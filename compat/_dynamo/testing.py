"""``torch._dynamo.testing``: backends that count or keep the graphs that they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._dynamo.backends.registry import lookup_backend
from compat.fx.graph_module import GraphModule

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]


class CompileCounterWithBackend:
    """A backend that counts graphs and their calls, and keeps the graphs.

    Args:
        backend: the name of the backend that compiles them.

    Attributes:
        frame_count: the number of graphs.
        op_count: the number of calls in them.
        graphs: the graphs.
    """

    def __init__(self, backend: str):
        self.backend = backend
        self.clear()

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        self.graphs.append(gm)
        made: Callable[..., Any] = lookup_backend(self.backend)(gm, example_inputs)
        return made

    def clear(self) -> None:
        """Starts again."""
        self.frame_count = self.op_count = 0
        self.graphs: list[GraphModule] = []


class CompileCounter(CompileCounterWithBackend):
    """A backend that counts graphs and their calls, and runs them as they are.

    Example:
        >>> from compat._dynamo.testing import CompileCounter
        >>> counter = CompileCounter()
        >>> compiled = torch.compile(lambda x: x.sin() + 1, backend=counter)
        >>> _ = compiled(torch.ones(2)), compiled(torch.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """A backend that keeps the graphs, and runs them as they are.

    Attributes:
        graphs: the graphs.
    """

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        return gm.forward
