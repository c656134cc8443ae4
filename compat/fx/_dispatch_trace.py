"""Operations on tensors as a graph: a function is called once, and each operation that it runs becomes a node.

Unlike ``symbolic_trace`` this calls the function with real tensors and intercepts operators (``aten.addmm.default``)
below modules and functions. Python control flow may depend on values; the graph has the operations of these arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat._core.dispatch.overloads import OpOverload, aten
from compat._core.dispatch.overrides import Shown, state, unwatched
from compat._core.operators.plan import type_of_kind
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_map
from compat._core.tensor.tensor import Tensor, location, wrap
from compat._core.transforms.grad_mode import mode
from compat.fx._data_dependent_sizes import CountedSizes
from compat.fx._primitive_operators import run_as_operators, without_operator
from compat.fx._traced_storages import FollowedValues
from compat.fx.graph import Graph
from compat.fx.node import Node
from compat.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from compat.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from funcgrad.core.errors import describe_location, user_location

__all__ = ["ModuleCall", "Recorder", "current", "record"]


#: Operators that, with a gradient, are recorded without their writes, as operators of more results.
_WITH_STATISTICS = {"native_batch_norm": "_native_batch_norm_legit_functional"}


class ModuleCall(NamedTuple):
    """The leaves of the arguments and of the result of a call, with nodes for tensors, and their structures."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec


class Recorder(TorchDispatchMode):
    """Records the operators that run within it as a graph.

    Args:
        owned: tensors that the graph refers to by name.
        error: the exception class to raise if the graph would be valid for these arguments only.

    Attributes:
        graph: the graph so far.
        constants: tensors that are neither arguments nor results, by their names in the graph.
        branches: the graphs of the functions of ``torch.cond``, by their names in the graph.
        preserved: the recorded calls of the modules that ``module_calls`` was asked for.
    """

    def __init__(self, owned: dict[str, Tensor] | None = None, error: type[RuntimeError] = RuntimeError):
        super().__init__()
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self.branches: dict[str, Any] = {}
        self.error = error
        self._names = {location(t): name for name, t in (owned or {}).items()}
        self._nodes: dict[tuple[Any, ...], Node] = {}
        self.preserved: dict[str, ModuleCall] = {}
        self._calls: list[tuple[str, type]] = []  # the modules that are being called, the outermost one first
        # keeps recorded storages alive, so that no other storage gets the id of one
        self._held: list[tuple[Tensor, Node, tuple[Any, ...]]] = []
        self.values = FollowedValues(self._recording, error)
        self.sizes = CountedSizes(self._recording, error)
        for t in (owned or {}).values():
            self.values.follow(t, True)

    def _recording(self) -> bool:
        return any(mode is self for mode in state.modes)

    def argument(self, name: str, value: Any) -> Node:
        """An argument of the function."""
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        if isinstance(value, Tensor):
            self.register(value, node, True)
        return node

    def register(self, t: Tensor, node: Node, depends: bool) -> None:
        """Registers the node of a tensor."""
        self._nodes[location(t)] = node
        self._held.append((t, node, location(t)))
        self.values.follow(t, depends)

    def node_of(self, t: Tensor) -> Node:
        """The node whose value a tensor is; a constant for other tensors.

        Raises:
            RuntimeError: if it was computed from arguments by an operation that was not traced.
        """
        found = self._nodes.get(location(t))
        return self._constant(t) if found is None else found

    def _constant(self, t: Tensor) -> Node:
        name = self._names.get(location(t))
        if name is None and (self.values.knows(t) or t.grad_fn is not None):
            made = "" if t.grad_fn is None else f" ({type(t.grad_fn).__name__})"
            raise RuntimeError(
                f"no recorded operation computed the tensor of shape {list(t.shape)}{made} that is used at "
                f"{describe_location(user_location())}. Trace within torch.no_grad(), where the operation is composed "
                "of recorded ones, or compute the tensor by recorded operations"
            )
        if name is None and self.values.is_new(t):
            found = self._new_constant(t)
        else:
            name = name or self._constant_name()
            self.constants[name] = t
            found = self.graph.get_attr(name)
        found.meta["val"] = t
        self.register(t, found, name in self._names.values())
        return found

    def _constant_name(self) -> str:
        return f"_tensor_constant{len(self.constants)}"

    def _new_constant(self, t: Tensor) -> Node:
        """The node of a constant that each call creates anew, and may write into."""
        with unwatched():
            value = t.detach().clone()
            one = value.view(-1)[:1]
            if value.numel() and t.is_contiguous() and bool((value == one).all()):
                full = aten.packet("full").overload("default")
                return self.graph.call_function(full, (list(t.shape), one.item()), {"dtype": t.dtype})
        name = self._constant_name()
        self.constants[name] = value
        attribute = self.graph.get_attr(name)
        attribute.meta["val"] = value
        return self.graph.call_function(aten.packet("clone").overload("default"), (attribute,))

    def operand(self, x: Any) -> Any:
        """A part of an argument, as it appears in the graph."""
        return self.node_of(x) if isinstance(x, Tensor) else x

    def __torch_dispatch__(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, Shown) and func.kernel is not None:
            found = self._derivative(func.kernel, args)
            if found is not None:
                return found
        # Before it runs: an operation may write into its arguments.
        given, named = tree_map(self.operand, (tuple(args), kwargs))
        name = getattr(func, "_opname", str(func))
        self.sizes.check_operands(name, (*args, *kwargs.values()))
        with self.values.operation((args, kwargs)) as depends:
            out = func(*args, **kwargs)
            self.values.check_numbers(str(func), out)
            follows = depends(out)
        leaves = tree_flatten(out)[0]
        if not any(isinstance(t, Tensor) for t in leaves):
            return out
        if name in _WITH_STATISTICS and len(leaves) > len(func._schema.returns):
            func = aten.packet(_WITH_STATISTICS[name]).overload("default")
        node = self.graph.call_function(func, given, named)
        node.meta["val"] = out
        node.meta["nn_module_stack"] = stack = {path: (path, kind) for path, kind in self._calls}
        self.sizes.mark(name, (args, kwargs), [t for t in leaves if isinstance(t, Tensor)])
        if isinstance(out, Tensor):
            self.register(out, node, follows)
        else:
            for n, t in enumerate(out):
                if isinstance(t, Tensor):
                    item = self.graph.call_function(operator.getitem, (node, n))
                    item.meta |= {"val": t, "nn_module_stack": stack}
                    self.register(t, item, follows)
        return out

    def _derivative(self, kernel: Any, values: Sequence[Any]) -> Any:
        """Runs a derivative as recorded operators; None, without running it, if there is none for one of its steps."""
        types = [type_of_kind(v._layout_ if isinstance(v, Tensor) else type(v)) for v in values]
        program = kernel.program(tuple(types))
        if without_operator(program) is not None:
            return None
        state.modes.append(self)
        try:
            found = run_as_operators(program, [v for v in values if v is not None])
        finally:
            state.modes.pop()
        return found[0] if len(found) == 1 else tuple(found)

    @contextmanager
    def module_calls(self, root: Module | None, preserved: Sequence[str] = ()) -> Iterator[None]:
        """Context in which nodes record the module calls, below ``root``, that they are part of.

        Later calls of a module have numbers: ``layer``, ``layer@1``.

        Args:
            preserved: the names of modules whose arguments and results are recorded.
        """
        paths = {} if root is None else {id(m): path for path, m in root.named_modules()}

        counts: dict[str, int] = {}

        def enter(module: Module, args: Any) -> None:
            if id(module) in paths:
                path = paths[id(module)]
                count = counts[path] = counts.get(path, -1) + 1
                self._calls.append((f"{path}@{count}" if count else path, type(module)))

        def leave(module: Module, args: Any, kwargs: Any, result: Any) -> None:
            if id(module) in paths:
                call, _ = self._calls.pop()
                if paths[id(module)] in preserved:
                    self.preserve(call, (args, kwargs), result)

        before = register_module_forward_pre_hook(enter)
        after = register_module_forward_hook(leave, with_kwargs=True, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def preserve(self, path: str, arguments: Any, result: Any) -> None:
        """Records the arguments and the result of a call."""
        inputs, in_spec = tree_flatten(arguments)
        outputs, out_spec = tree_flatten(result)
        nodes = [*map(self.operand, inputs)], [*map(self.operand, outputs)]
        self.preserved[path] = ModuleCall(*nodes, in_spec, out_spec)

    def set_calls(self, calls: Iterable[tuple[str, type]]) -> None:
        """The module calls that the next nodes are part of, for a function that determines them itself."""
        self._calls = list(calls)

    def _restore_layouts(self) -> None:
        """Adds views to nodes whose tensors were changed by in-place views such as ``squeeze_``."""
        for t, node, (_, offset, layout) in self._held:
            if node.meta.get("val") is t and location(t)[1:] != (offset, layout):
                node.meta["val"] = wrap(t._storage_, layout, offset)

    def __enter__(self) -> Any:
        mode.traced += 1
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        mode.traced -= 1
        super().__exit__(*exc)
        self.finish()

    def finish(self) -> None:
        """Ends the trace."""
        self._restore_layouts()
        self.values.close()
        self.sizes.close()


def current() -> Recorder | None:
    """The innermost active trace of this thread."""
    stack = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, Recorder)]
    return stack[-1] if stack else None


def record(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None,
    names: Sequence[str] | None = None, root: Module | None = None, error: type[RuntimeError] = RuntimeError,
    preserved: Sequence[str] = (),
) -> tuple[Recorder, Any]:  # fmt: skip
    """The operators that a function runs, as a graph.

    Args:
        function: called once.
        args, kwargs: its arguments, pytrees of tensors.
        names: the names of the arguments' leaves; ``arg0_1`` and so on by default.
        root: a module whose parameters and buffers the graph refers to by name.
        error: the exception class to raise if the graph would be valid for these arguments only.
        preserved: the names of modules in ``root`` whose arguments and results are recorded.

    Returns:
        The recorder, whose graph ends with the nodes of the function's result, and the result.
    """
    owned = {} if root is None else dict([*root.named_parameters(), *root.named_buffers()])
    recorder = Recorder(owned, error)
    leaves, _ = tree_flatten((tuple(args), kwargs or {}))
    for n, leaf in enumerate(leaves):
        recorder.argument(names[n] if names else f"arg{n}_1", leaf)
    with recorder, recorder.module_calls(root, preserved):
        found = function(*args, **(kwargs or {}))
        recorder.graph.output(tree_map(recorder.operand, found))
    leaves = [x for call in recorder.preserved.values() for x in (*call.inputs, *call.outputs)]
    drop_unused(recorder.graph, {x for x in leaves if isinstance(x, Node)})
    return recorder, found


def drop_unused(graph: Graph, kept: Container[Any]) -> None:
    """Removes unused nodes, except those that write into tensors, and some others."""
    for node in reversed(list(graph.nodes)):
        unused = node.op in ("call_function", "get_attr") and not node.users and node not in kept
        if unused and not (isinstance(node.target, OpOverload) and writes(node.target)):
            graph.erase_node(node)


def writes(target: OpOverload) -> bool:
    """Whether an operator writes into its first argument."""
    return target._opname.endswith("_") and not target._opname.endswith("__")
