"""``Tracer``: traces a module or function, called once with proxies, into a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.namespace import torch
from compat._core.tensor.tensor import Tensor
from compat.fx._codegen import CodeGen, PyTreeCodeGen, PyTreeInfo
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, map_aggregate
from compat.fx.proxy import ParameterProxy, Proxy, TracerBase
from compat.nn.modules.container import Sequential
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = ["PH", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

#: Names in modules, registered by ``wrap``, whose calls become nodes.
_wrapped: list[tuple[dict[str, Any], str]] = []
_tracing = 0


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing > 0


class _Placeholder:
    def __repr__(self) -> str:
        return "PH"


#: Marks parts of ``concrete_args`` that remain arguments.
PH = _Placeholder()


def wrap(fn_or_name: Any) -> Any:
    """Makes calls of a function nodes, instead of tracing into it.

    Args:
        fn_or_name: a function of the module that calls this, or the name of one, ``"len"`` too.

    Returns:
        The argument, so that it can be a decorator.

    Raises:
        RuntimeError: for anything else.
        NotImplementedError: inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


def _stands_for(values: Any) -> Proxy | None:
    found: list[Proxy] = []
    map_aggregate(values, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[0] if found else None


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls with proxies become nodes."""

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxy = _stands_for((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.graph.wrapped.add(function)
        return made

    return recorded


@contextmanager
def _patched(places: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Context in which names of modules and attributes of classes are replaced."""
    before: list[tuple[Any, str, Any, bool]] = []
    try:
        for owner, name, value in places:
            names = owner if isinstance(owner, dict) else vars(owner)
            before.append((owner, name, names.get(name), name in names))
            _put(owner, name, value)
        yield
    finally:
        for owner, name, value, was_there in reversed(before):
            if was_there:
                _put(owner, name, value)
            elif isinstance(owner, dict):
                del owner[name]
            else:
                delattr(owner, name)


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


class Tracer(TracerBase):
    """Makes graphs of modules and functions, by calling them with proxies.

    Args:
        autowrap_modules: modules whose functions become nodes if an argument is a proxy.
        autowrap_functions: functions whose calls become nodes.
        param_shapes_constant: whether sizes of parameters are constants in the graph.
    """

    proxy_buffer_attributes = False

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ):
        self._modules_to_wrap = autowrap_modules
        self._functions_to_wrap = set(autowrap_functions)
        for module in autowrap_modules:
            self._functions_to_wrap |= {f for n, f in vars(module).items() if not n.startswith("_") and callable(f)}
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.root_module_name = ""
        self._attributes: dict[str, Proxy] = {}

    # ------------------------------------------------------------ methods to override

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module become nodes, as for PyTorch's own modules, instead of being traced into."""
        return type(m).__module__.startswith(("torch.nn", "compat.nn")) and not isinstance(m, Sequential)

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call of a submodule: a proxy for a leaf, otherwise the result of ``forward``."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a module's attribute: a proxy for a parameter, otherwise the attribute itself."""
        kinds: tuple[type, ...] = (Parameter, Tensor) if self.proxy_buffer_attributes else (Parameter,)
        if not isinstance(attr_val, kinds):
            return attr_val
        path = self._path_of_tensor(attr_val)
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            made_by: dict[str, Any] = {}
            # an override may lack it
            takes_factory = "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters
            if takes_factory and self.param_shapes_constant and isinstance(attr_val, Parameter):
                made_by["proxy_factory_fn"] = functools.partial(_parameter_proxy, self, path, attr_val)
            parameter_proxy_cache[path] = self.create_proxy(
                "get_attr", path, (), {}, name=path.replace(".", "_"), **made_by
            )
        return parameter_proxy_cache[path]

    # ------------------------------------------------------------ paths

    def path_of_module(self, mod: Module) -> str:
        """The dotted names that lead to a module.

        Raises:
            NameError: if it is not a submodule of the traced one.
        """
        for path, found in self.root.named_modules(remove_duplicate=False):
            if found is mod:
                return str(path)
        raise NameError("module is not installed as a submodule")

    def _path_of_tensor(self, t: Any) -> str | None:
        for path, found in chain(self.root.named_parameters(remove_duplicate=False), self.root.named_buffers()):
            if found is t:
                return str(path)
        return None

    def _leaf_arg(self, a: Any) -> Any:
        if isinstance(a, Tensor):
            return self._constant(a, "_tensor_constant", self._path_of_tensor(a))
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        try:
            return super()._leaf_arg(a)
        except NotImplementedError:
            return self._constant(a, f"_{type(a).__name__}_constant", None)

    def _constant(self, value: Any, base: str, path: str | None) -> Node:
        if path is None:
            same = (n for n, found in vars(self.root).items() if found is value and n.startswith(base))
            path = next(same, None)
        if path is None:
            number = 0
            while hasattr(self.root, f"{base}{number}"):
                number += 1
            path = f"{base}{number}"
            # As a plain attribute: it is not part of the traced module's state.
            self.root.__dict__[path] = value
        return self.create_node("get_attr", path, (), {})

    # ------------------------------------------------------------ tracing

    def _arguments(self, parameters: list[inspect.Parameter], concrete: dict[str, Any]) -> list[Any]:
        """A proxy for each argument of a function, or its value in ``concrete_args``, where ``PH`` is a proxy."""
        values = []
        for parameter in parameters:
            stars = _STARS.get(parameter.kind, "")
            if parameter.name in concrete and not stars:
                values.append(self._concrete(parameter, concrete[parameter.name]))
            else:
                own = f"_{parameter.name}" if stars else parameter.name
                values.append(self._input(parameter, stars + parameter.name, own))
        return values

    def _input(self, parameter: inspect.Parameter, target: str, name: str) -> Proxy:
        default = () if parameter.default is parameter.empty else (parameter.default,)
        return self.create_proxy("placeholder", target, default, {}, name=name)

    def _concrete(self, parameter: inspect.Parameter, value: Any) -> Any:
        """A value of ``concrete_args``: each leaf is an input, and one that is not ``PH`` is checked at each call."""
        leaves, spec = tree_flatten(value)
        found = []
        for n, leaf in enumerate(leaves):
            made = self._input(parameter, f"{parameter.name}_{n + 1}", f"{parameter.name}_{n + 1}")
            if leaf is not PH:
                self._check(made, leaf, parameter.name)
            found.append(made if leaf is PH else leaf)
        return tree_unflatten(found, spec)

    def _check(self, given: Proxy, value: Any, name: str) -> None:
        """Adds the check of an input that was specialized."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (given, message), {})
        elif type(value) in (bool, int, float, str):
            torch._assert(given == value, message)
        elif not isinstance(value, Tensor):
            warnings.warn(
                f"{name} has been specialized to a {type(value).__name__}, which calls of the graph do not check",
                stacklevel=2,
            )

    def _structured(self, parameters: list[inspect.Parameter], concrete: dict[str, Any], result: Any) -> Any:
        """The output of the graph; its leaves, if an argument of ``concrete_args`` is a container."""
        whole = [PH if p.kind in _STARS else concrete.get(p.name, PH) for p in parameters]
        in_spec = tree_flatten(tuple(whole))[1]
        if all(child.is_leaf() for child in in_spec.children()):
            return result
        if any(p.kind in _STARS or p.kind is p.KEYWORD_ONLY for p in parameters):
            raise NotImplementedError("concrete_args: containers beside *args, **kwargs or keyword-only parameters")
        empty = inspect.Parameter.empty
        written = CodeGen()
        names = [p.name + ("" if p.default is empty else f" = {written._written(p.default)}") for p in parameters]
        leaves, out_spec = tree_flatten(result)
        self.graph.set_codegen(PyTreeCodeGen(PyTreeInfo(names, in_spec, out_spec)))
        return leaves

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Args:
            concrete_args: values of parameters that the graph is specialized to, which its calls check; a part ``PH``
                of a container remains an input.

        Raises:
            NotImplementedError: for a container among them beside ``*args`` or keyword-only parameters.
            TraceError: if its control flow is data-dependent.
        """
        global _tracing
        function = root
        self.root = Module()
        self.root_module_name = type(root).__name__
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = {}
        bound = (root,) if isinstance(root, Module) else ()
        parameters = sorted(inspect.signature(function).parameters.values(), key=lambda p: _ORDER[p.kind])[len(bound) :]
        concrete = concrete_args or {}
        values = self._arguments(parameters, concrete)
        _tracing += 1
        try:
            with _patched(self._places(function)):
                result = _called(function, bound, parameters, values)
        finally:
            _tracing -= 1
        self.create_node("output", "output", (self.create_arg(self._structured(parameters, concrete, result)),), {})
        return self.graph

    def _places(self, function: Any) -> list[tuple[Any, str, Any]]:
        """The patches during a trace: module calls, and wrapped functions."""
        call, find = Module.__call__, Module.__getattr__
        tracer = self

        @functools.wraps(call)
        def called(module: Module, *args: Any, **kwargs: Any) -> Any:
            return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def found(module: Module, name: str) -> Any:
            return tracer.getattr(name, find(module, name), tracer._attributes)

        places: list[tuple[Any, str, Any]] = [(Module, "__call__", called), (Module, "__getattr__", found)]
        for names, name in _wrapped:
            original = names[name] if name in names else getattr(builtins, name)
            places.append((names, name, _recorded(original)))
        names = getattr(inspect.unwrap(function), "__globals__", {})  # the user's, which need not belong to a module
        for owner in (names, *map(vars, self._modules_to_wrap)):
            for name, value in list(owner.items()):
                if not name.startswith("_") and callable(value) and _known(value, self._functions_to_wrap):
                    places.append((owner, name, _recorded(value)))
        return places


def _known(value: Any, functions: set[Any]) -> bool:
    try:
        return value in functions
    except TypeError:  # not hashable
        return False


def _parameter_proxy(tracer: Tracer, path: str, parameter: Any, node: Node) -> ParameterProxy:
    return ParameterProxy(tracer, node, path, parameter)


#: The order of a function's parameters in its code.
_ORDER = {
    inspect.Parameter.POSITIONAL_ONLY: 0, inspect.Parameter.POSITIONAL_OR_KEYWORD: 0,
    inspect.Parameter.KEYWORD_ONLY: 1, inspect.Parameter.VAR_POSITIONAL: 2, inspect.Parameter.VAR_KEYWORD: 3,
}  # fmt: skip
_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _called(function: Any, bound: tuple, parameters: list[inspect.Parameter], values: list[Any]) -> Any:
    """Calls a function with proxies for its arguments; ``*rest`` and ``**named`` are one value each."""
    if not any(p.kind in _STARS for p in parameters):
        placed = [v for p, v in zip(parameters, values) if p.kind is not p.KEYWORD_ONLY]
        return function(*bound, *placed, **{p.name: v for p, v in zip(parameters, values) if p.kind is p.KEYWORD_ONLY})
    # Python would iterate over these, whose lengths are unknown: a copy of the function takes each unchanged.
    function = inspect.unwrap(function)
    code = function.__code__.replace(
        co_argcount=len(bound) + len(values),
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
        co_flags=function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )
    twin = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return twin(*bound, *values)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module or function as a module of its graph.

    It is called once, with proxies of its arguments; the operations on them become the graph. So a condition or a loop
    may not depend on their values.

    Args:
        concrete_args: values of parameters that the graph is specialized to, which its calls check; see
            ``Tracer.trace``.

    Raises:
        TraceError: for data-dependent control flow.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> print(traced.code.strip())
        def forward(self, x):
            relu = torch.relu(x);  x = None
            add = relu + 1;  relu = None
            return add
        >>> traced(torch.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
