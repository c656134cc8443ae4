"""``make_fx``: the operators that a function runs, as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.pytree.trees import tree_flatten
from compat.fx._dispatch_trace import Recorder, current, record
from compat.fx.graph_module import GraphModule
from compat.nn.modules.module import Module

__all__ = ["decomposed", "get_proxy_mode", "make_fx"]


def get_proxy_mode() -> Recorder | None:
    """The mode that traces operations in this thread, or None."""
    return current()


def make_fx(
    f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False, record_module_stack: bool = False,
    **options: Any,
) -> Callable[..., GraphModule]:  # fmt: skip
    """A function that traces ``f`` into a graph of operators.

    Args:
        f: a function of pytrees of tensors; of a module, the parameters are constants of the graph.
        decomposition_table: by operator, a function that computes it with other operators.
        tracing_mode: "real", "fake" or "symbolic"; sizes are constants in the graph in all modes.
        pre_dispatch, record_module_stack: ignored.

    Returns:
        A function of example arguments, which returns a ``GraphModule`` of their leaves.

    Example:
        >>> from compat.fx.experimental.proxy_tensor import make_fx
        >>> print(make_fx(lambda x: torch.sin(x) * 2)(torch.ones(2)).code.strip())
        def forward(self, arg0_1):
            sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            mul = torch.ops.aten.mul.Tensor(sin, 2);  sin = None
            return mul
    """

    def traced(*args: Any) -> GraphModule:
        table = decomposition_table or {}
        recorder, _ = (_Decomposing if table else _Plain)(table).record(f, args)
        return GraphModule(
            recorder.constants | recorder.branches, recorder.graph, getattr(f, "__name__", type(f).__name__)
        )

    return traced


class _Plain:
    """A trace of operators without decomposition."""

    def __init__(self, table: Any):
        self.table = table

    def record(self, f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Recorder, Any]:
        return record(f, args, root=f if isinstance(f, Module) else None)


class _Decomposing(_Plain):
    """A trace in which the operators of a table are decomposed: traced again, node by node."""

    def record(self, f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Recorder, Any]:
        first, _ = super().record(f, args)
        graph = GraphModule(first.constants | first.branches, first.graph)
        leaves, _ = tree_flatten((args, {}))
        return decomposed(graph, self.table, leaves), None


def decomposed(
    graph: GraphModule, table: dict[Any, Callable[..., Any]], inputs: Sequence[Any], names: Sequence[str] | None = None
) -> Recorder:
    """The trace of a graph with the operators of a table decomposed.

    Args:
        inputs: example inputs.
        names: their names.
    """
    from compat.fx.interpreter import Interpreter

    class Replacing(Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(table.get(target, target), args, kwargs)

    return record(lambda *leaves: Replacing(graph).run(*leaves), inputs, names=names)[0]
