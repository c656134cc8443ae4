"""``torch.compile(backend=function)``: calls as ``fx`` graphs, which the backend compiles to callables.

Functions of ``torch`` and methods of tensors become nodes, with the module's parameters under their names. Where a call
reads a tensor's value, one graph ends and another begins (``_pieces``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat._compile.guards import Watch
from compat._compile.stance import compiling
from compat._compile.stance import current as stance
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._dynamo.backends._functions import GraphBreak
from compat._dynamo.backends._pieces import Piece, Pieces, structure_of
from compat._dynamo.exc import BackendCompilerFailed, Unsupported
from compat.fx.graph_module import GraphModule
from compat.nn.modules.module import Module

__all__ = ["ByBackend", "ExplainOutput", "GraphBreak", "explain"]


@dataclass
class _Whole:
    """A call that was one graph.

    Attributes:
        watch: the values that the function depends on besides its arguments.
        run: what the backend made of the graph.
        inputs: the number of an argument, or the tensor itself.
        results: for each leaf of the result, the number of a result of the backend or of an argument, or a value.
        spec: the structure of the result.
    """

    watch: Watch
    run: Callable[..., Any]
    inputs: list[int | Tensor]
    results: list[tuple[str, Any]]
    spec: TreeSpec

    def __call__(self, tensors: list[Tensor]) -> Any:
        found = self.run(*[tensors[t] if isinstance(t, int) else t for t in self.inputs])
        several = list(found) if isinstance(found, tuple | list) else [found]
        sources: dict[str, Any] = {"result": several.__getitem__, "argument": tensors.__getitem__, "value": lambda x: x}
        return tree_unflatten([sources[kind](x) for kind, x in self.results], self.spec)


class ByBackend:
    """A function whose calls run what a backend compiled from their graphs.

    A call that is one graph is not run by Python again while what it depends on is unchanged. A call that reads values
    has several graphs, and Python runs it each time; graphs that are known are not compiled again.

    Args:
        function: the function.
        backend: maps a ``GraphModule`` and example inputs to a callable that returns a tuple or list.
        fullgraph: whether a call that is not one graph raises.
        options: options for the backend.
    """

    def __init__(self, function: Callable[..., Any], backend: Callable[..., Any], fullgraph: bool, options: Any = None):
        functools.update_wrapper(self, function, updated=())
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.options = {} if options is None else {"options": options}
        self._calls: dict[Any, _Whole] = {}
        self._graphs: dict[Any, tuple[Callable[..., Any], GraphModule]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if stance.eager:
            return compiling.call(False, self.function, *args, **kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        tensors = [t for t in leaves if isinstance(t, Tensor)]
        numbers = {id(t): n for n, t in reversed(list(enumerate(tensors)))}
        same = tuple(numbers[id(t)] for t in tensors)
        key = (str(shape), mode.grad, mode.autocast, _training(self.function), same, *map(_kind, leaves))
        known = self._calls.get(key)
        if known is not None and known.watch.holds():
            return known(tensors)
        watch = Watch()
        for root in (self.function, *[x for x in leaves if not isinstance(x, Tensor)]):
            watch.visit(root)
        pieces = Pieces(
            named_tensors(self.function), self._compiled, self.fullgraph,
            [*tensors, *[state.tensor for state in watch.tensors.values()]],
        )  # fmt: skip
        try:
            found = compiling.call(True, pieces.call, self.function, args, kwargs)
        except GraphBreak as why:
            raise Unsupported(f"compile(fullgraph=True): the call is not one graph: {why}") from None
        if len(pieces.done) == 1 and pieces.whole and watch.trouble is None and watch.holds():
            whole = _whole(watch, pieces.done[0], numbers, found)
            if whole is not None:
                self._calls[key] = whole
        return found

    def _compiled(self, module: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        """What the backend makes of a graph, which it gets once."""
        key = structure_of(module, inputs)
        if key not in self._graphs:
            try:
                made = self.backend(module, inputs, **self.options)
            except Exception as error:
                name = getattr(self.backend, "__name__", type(self.backend).__name__)
                message = f"backend={name!r} raised:\n{type(error).__name__}: {error}"
                raise BackendCompilerFailed(message) from error
            self._graphs[key] = made, module
        return self._graphs[key][0]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _whole(watch: Watch, piece: Piece, numbers: dict[int, int], found: Any) -> _Whole | None:
    """The call of one graph, if its result consists of the graph's results, of arguments and of plain values."""
    outputs = {id(t): n for n, t in enumerate(piece.outputs)}
    flat, spec = tree_flatten(found)
    results: list[tuple[str, Any]] = []
    for x in flat:
        if id(x) in outputs:
            results.append(("result", outputs[id(x)]))
        elif id(x) in numbers:
            results.append(("argument", numbers[id(x)]))
        elif isinstance(x, bool | int | float | str | None):
            results.append(("value", x))
        else:
            return None
    return _Whole(watch, piece.run, [numbers.get(id(t), t) for t in piece.inputs], results, spec)


def named_tensors(function: Any) -> dict[str, Tensor]:
    """The tensors of a module, or of a method's module, by name."""
    own = function if isinstance(function, Module) else getattr(function, "__self__", None)
    return dict([*own.named_parameters(), *own.named_buffers()]) if isinstance(own, Module) else {}


def _training(function: Any) -> tuple[bool, ...]:
    """The training modes of a module's submodules."""
    own = function if isinstance(function, Module) else getattr(function, "__self__", None)
    return tuple(m.training for m in own.modules()) if isinstance(own, Module) else ()


def _kind(x: Any) -> Any:
    if isinstance(x, Tensor):
        return tuple(x.shape), x.dtype, x.requires_grad
    return x if isinstance(x, bool | int | float | str | None) else id(x)


@dataclass
class ExplainOutput:
    """The result of ``explain``.

    Attributes:
        graphs: the graphs.
        break_reasons: why each but the last one ended.
        op_count: the number of functions called.
    """

    graphs: list[GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[Any]
    op_count: int
    ops_per_graph: list[list[Any]]
    out_guards: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", "Break Reasons:", *[f"  {why}" for why in self.break_reasons]]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Analyses whether a function's calls are one graph, by calling it.

    Args:
        f: the function or module; call the result with its arguments.

    Example:
        >>> print(torch._dynamo.explain(lambda x: torch.sin(x) + 1)(torch.ones(2)))
        Graph Count: 1
        Graph Break Count: 0
        Op Count: 2
        Break Reasons:
        >>> print(torch._dynamo.explain(lambda x: x if x.sum() > 0 else -x)(torch.ones(2)))
        Graph Count: 1
        Graph Break Count: 1
        Op Count: 2
        Break Reasons:
          bool at ... reads the value of a tensor: the result would be a constant of the graph. ...
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        function = getattr(f, "_orig_mod", getattr(f, "function", f))
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        pieces = Pieces(named_tensors(function), lambda module, inputs: module.forward, False, tensors)
        pieces.call(function, args, kwargs)
        graphs = [piece.module for piece in pieces.done]
        calls = [[n.target for n in graph.graph.nodes if n.op.startswith("call_")] for graph in graphs]
        count = sum(map(len, calls))
        return ExplainOutput(graphs, len(graphs), len(pieces.reasons), pieces.reasons, count, calls)

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained
