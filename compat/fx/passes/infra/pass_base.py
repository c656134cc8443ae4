"""``PassBase``: a pass over a graph module, with checks before and after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from compat.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The result of a pass.

    Attributes:
        graph_module: the module, which may be another one than before.
        modified: whether the pass changed anything.
    """

    graph_module: GraphModule
    modified: bool


class PassBase(ABC):
    """A pass; subclasses define ``call``.

    Example:
        >>> from compat.fx.passes.infra.pass_base import PassBase, PassResult
        >>> class Sines(PassBase):
        ...     def call(self, graph_module):
        ...         found = graph_module.graph.find_nodes(op="call_function", target=torch.cos)
        ...         for node in found:
        ...             node.target = torch.sin
        ...         return PassResult(graph_module, bool(found))
        >>> Sines()(torch.fx.symbolic_trace(lambda x: torch.cos(x))).modified
        True
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Runs the pass.

        Args:
            graph_module: the module, which may be changed.
        """

    def requires(self, graph_module: GraphModule) -> Any:  # noqa: B027 (most passes require nothing)
        """Checks before the pass; raises if the module does not fit."""

    def ensures(self, graph_module: GraphModule) -> Any:  # noqa: B027
        """Checks after the pass."""
