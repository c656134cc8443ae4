"""``FakeTensorProp``: records a fake tensor for each value of a graph."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._subclasses.fake_tensor import FakeTensorMode
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node
from compat.fx.passes.shape_prop import record_metadata, with_fake_weights

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph module with fake tensors: ``node.meta["val"]`` is the value of each node.

    Args:
        module: the module.
        mode: a ``FakeTensorMode``, by default a new one.

    Example:
        >>> from compat.fx.passes.fake_tensor_prop import FakeTensorProp
        >>> net = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
        >>> FakeTensorProp(net).propagate(torch.ones(4, 2))
        FakeTensor(..., size=(4, 3)...)
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None):
        self._mode = FakeTensorMode() if mode is None else mode
        super().__init__(with_fake_weights(module, self._mode), graph=module.graph)

    def run_node(self, n: Node) -> Any:
        """Runs a node, and records its value."""
        result = super().run_node(n)
        n.meta["val"] = result
        record_metadata(n, result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module; returns its result.

        Args:
            args: its arguments; tensors are replaced by fake ones.
        """
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(t) if isinstance(t, Tensor) else t for t in args)
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """``propagate`` of arguments that are fake already."""
        with self._mode:
            return self.run(*args)
