"""Traces of calls as TorchScript's graphs: functions of ``torch`` become nodes, under the names of their operators."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.dispatch.overrides import unwatched
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor, location
from compat._core.tensor.torch_function import DisableTorchFunction, TorchFunctionMode
from compat.jit._graph import Graph, JitType, Value
from compat.jit._graph_code import code_of
from compat.jit._scripted import original_class
from compat.jit._traced_operators import fitted, name_of, operator_of
from compat.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from compat.utils._python_dispatch import TorchDispatchMode
from funcgrad.core.errors import describe_location, user_location

__all__ = ["TracingState", "current", "graph_of", "traced_calls"]

#: Python's functions that compose operators: these are recorded.
_COMPOSED = frozenset(("multi_head_attention_forward",))
#: TorchScript's numbers of dtypes, memory formats and layouts.
_NUMBERS = {
    "torch.uint8": 0, "torch.int8": 1, "torch.int16": 2, "torch.int32": 3, "torch.int64": 4, "torch.float16": 5,
    "torch.float32": 6, "torch.float64": 7, "torch.complex32": 8, "torch.complex64": 9, "torch.complex128": 10,
    "torch.bool": 11, "torch.bfloat16": 15, "torch.contiguous_format": 0, "torch.preserve_format": 1,
    "torch.channels_last": 2, "torch.channels_last_3d": 3, "torch.strided": 0, "torch.sparse_coo": 1,
}  # fmt: skip


class TracingState:
    """What PyTorch calls the state of a trace: the names of the modules being called.

    Attributes:
        scopes: the names, the outermost first.
    """

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Enters a scope."""
        self.scopes.append(name)

    def pop_scope(self) -> None:
        """Leaves it."""
        self.scopes.pop()

    def current_scope(self) -> str:
        """The names, with ``/`` between them."""
        return "/".join(self.scopes)


class _Local(threading.local):
    state: TracingState | None = None


_local = _Local()


def current() -> TracingState | None:
    """The state of this thread's trace; None if there is none."""
    return _local.state


class _Tracer(TorchFunctionMode):
    """Records the functions called within it as a graph, and the operators that are called otherwise.

    Args:
        root: a module, which the first input of the graph is, and whose tensors are read from it; None to have no such
            input.
    """

    def __init__(self, root: Module | None):
        self.graph, self.state = Graph(), TracingState()
        self._values: dict[Any, Value] = {}  # by the ids of tensors, and by where their values are
        self._held: list[Any] = []
        self._modules: dict[str, Value] = {}
        self._owned: dict[int, str] = {}
        if root is not None:
            kinds = {name: JitType("ClassType", f"__torch__.{_class(m)}") for name, m in root.named_modules()}
            self._kinds = kinds
            self._modules[""] = self.graph._value(self.graph._param, kinds[""], "self")
            tensors = [*root.named_parameters(), *root.named_buffers()]
            self._owned = {id(t): name for name, t in tensors}

    def know(self, t: Any, value: Value) -> None:
        """Registers the value of an object."""
        self._values[id(t)] = self._values[location(t)] = value
        self._held.append((t, t._storage_))

    def known(self, t: Tensor) -> Value | None:
        """The value of a tensor; None if it has none."""
        return self._values.get(id(t)) or self._values.get(location(t))

    def argument(self, t: Any, name: str = "") -> None:
        """Adds an input."""
        self.know(t, self.graph._value(self.graph._param, t, name))

    # ---------------------------------------------------------------- values

    def value(self, x: Any) -> Value:
        """The value of an operand: a known one, a list of them, or a constant."""
        if isinstance(x, Tensor):
            return self.known(x) or self._from_outside(x)
        if isinstance(x, list | tuple):
            several = [self.value(item) for item in x]
            kind = "prim::ListConstruct"
            return self.graph._value(self.graph._add(kind, several, self.state.current_scope()), list(x))
        return self._constant(x)

    def _constant(self, x: Any) -> Value:
        x = _NUMBERS.get(str(x), x) if type(x).__name__ in ("dtype", "memory_format", "layout") else x
        return self.graph._value(self.graph._add("prim::Constant", [], self.state.current_scope(), value=x), x)

    def _from_outside(self, t: Tensor) -> Value:
        """The value of a tensor of the module, or of any other one, which is a constant."""
        address = self._owned.get(id(t))
        if address is None:
            found = self._constant(t.detach())
        else:
            path, _, name = address.rpartition(".")
            found = self.graph._value(self._get(self._module(path), name), JitType.of(t), name)
        self.know(t, found)
        return found

    def _module(self, path: str) -> Value:
        if path not in self._modules:
            above, _, name = path.rpartition(".")
            shown = f"_{name}" if name.isdigit() else name
            self._modules[path] = self.graph._value(self._get(self._module(above), name), self._kinds[path], shown)
        return self._modules[path]

    def _get(self, owner: Value, name: str) -> Any:
        return self.graph._add("prim::GetAttr", [owner], name=name)

    # ---------------------------------------------------------------- calls

    def __torch_function__(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func, args)
        inner = getattr(func, "_function", None)
        if inner is not None and (
            name in _COMPOSED or (not name.startswith("__") and not operator_of(func, name, args, kwargs))
        ):
            before = len(self.graph._nodes)
            with self:
                found = inner(*args, **kwargs)
            if len(self.graph._nodes) > before or not self._unknown(found):
                return found
        else:
            versions = [t._version for t in _tensors(args)]
            with unwatched():
                found = func(*args, **kwargs)
            if not _tensors(found) and versions == [t._version for t in _tensors(args)]:
                return found  # a size, a dtype
        operator = operator_of(func, name, args, kwargs) or (name, [*args, *kwargs.values()])
        self.record(*operator, args[0] if found is None and args else found)
        return found

    def _unknown(self, found: Any) -> bool:
        return any(self.known(t) is None for t in _tensors(found))

    def record(self, kind: str, operands: Sequence[Any], found: Any) -> None:
        """Adds the node of an operator with its results."""
        given = [self.value(x) for x in operands]
        source = describe_location(user_location())
        node = self.graph._add(f"aten::{kind}", given, self.state.current_scope(), source)
        if isinstance(found, list):
            whole = self.graph._value(node, found)
            node = self.graph._add("prim::ListUnpack", [whole], self.state.current_scope())
        for t in _flat(found):
            value = self.graph._value(node, t)
            if isinstance(t, Tensor):
                self.know(t, value)

    def result(self, found: Any) -> None:
        """Ends the graph with a function's result: a tensor, or a tuple of values."""
        if isinstance(found, tuple | list):
            several = [self.value(x) for x in tree_leaves(found)]
            made = self.graph._value(self.graph._add("prim::TupleConstruct", several), tuple(tree_leaves(found)))
        else:
            leaves = tree_leaves(found)
            made = self.value(leaves[0] if len(leaves) == 1 else leaves)
        self.graph._use(self.graph._return, [made])

    @contextmanager
    def tracing(self, root: Module | None) -> Iterator[None]:
        """Context in which calls are recorded, and the calls of the modules in ``root`` are scopes."""
        paths = {} if root is None else {id(m): path for path, m in root.named_modules() if path}

        def enter(module: Module, args: Any) -> None:
            if id(module) in paths:
                self.state.push_scope(f"__module.{paths[id(module)]}")

        def leave(module: Module, args: Any, result: Any) -> None:
            if id(module) in paths:
                self.state.pop_scope()

        before = register_module_forward_pre_hook(enter)
        after = register_module_forward_hook(leave, always_call=True)
        outer, _local.state = _local.state, self.state
        try:
            with _Operators(self), self:
                yield
        finally:
            _local.state = outer
            before.remove()
            after.remove()


class _Operators(TorchDispatchMode):
    """Records the operators that no recorded function has called."""

    def __init__(self, tracer: _Tracer):
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with DisableTorchFunction():
            found = func(*args, **kwargs)
        if _tensors(found):
            operands = fitted(func._schema.arguments, args, dict(kwargs)) if hasattr(func, "_schema") else None
            self._tracer.record(func._opname, [*args, *kwargs.values()] if operands is None else operands, found)
        return found


def _class(module: Module) -> str:
    kind = original_class(module)
    return f"{kind.__module__}.{kind.__qualname__}".replace("compat.", "torch.", 1).removeprefix("__main__.")


def _tensors(tree: Any) -> list[Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


def _flat(found: Any) -> Iterator[Any]:
    for x in found if isinstance(found, tuple | list) else [found]:
        if isinstance(x, tuple | list):
            yield from _flat(x)
        else:
            yield x


# ---------------------------------------------------------------- traces


def graph_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Graph, Any]:
    """The graph of a call, whose inputs are the arguments' tensors and the tensors of a module's state.

    Returns:
        The graph, and the result.
    """
    tracer = _Tracer(None)
    state = list(function.state_dict(keep_vars=True).values()) if isinstance(function, Module) else []
    for t in dict.fromkeys([*_tensors((args, kwargs)), *(t for t in state if isinstance(t, Tensor))]):
        tracer.argument(t)
    with tracer.tracing(None):
        found = function(*args, **kwargs)
    tracer.result(found)
    return tracer.graph, found


def traced_calls(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """The graph of a module's call, whose inputs are the module and its arguments; its modules' calls are scopes."""
    root = function if isinstance(function, Module) else None
    tracer = _Tracer(root)
    try:
        names = list(inspect.signature(root.forward if root is not None else function).parameters)
    except (TypeError, ValueError):
        names = []
    for n, t in enumerate(_tensors((args, kwargs))):
        tracer.argument(t, names[n] if n < len(names) else "")
    with tracer.tracing(root):
        found = function(*args, **kwargs)
    tracer.result(found)
    return tracer.graph


def graph_of_traced(module: Module) -> Graph:
    """The graph of the example of a module that was traced, with the calls of its modules inlined."""
    return traced_calls(module, *module.__dict__["_traced_example"])


def code_of_traced(module: Module) -> str:
    """The graph of a module that was traced, as Python."""
    return code_of(graph_of_traced(module))
