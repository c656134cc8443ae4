"""The calls of modules in an exported program, with the structure of the arguments and results of preserved ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat._core.pytree.trees import TreeSpec, tree_unflatten
from compat.export.graph_signature import ConstantArgument, TensorArgument
from compat.fx._dispatch_trace import ModuleCall, current
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node
from compat.nn.modules.module import Module

__all__ = [
    "InModules",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "check_paths",
    "entries",
    "forward_names",
    "signature_of",
]


@dataclass
class ModuleCallSignature:
    """The arguments and results of a call of a module.

    Attributes:
        inputs, outputs: the leaves of the arguments and of the result, by the names of their nodes.
        in_spec, out_spec: the structures of ``(args, kwargs)`` and of the result.
        forward_arg_names: of the exported module itself, the names of its arguments.
    """

    inputs: list[TensorArgument | ConstantArgument]
    outputs: list[TensorArgument | ConstantArgument]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of an exported program.

    Attributes:
        fqn: its name, ``""`` for the whole; ``layer@1`` for the second call of a preserved one.
        signature: of the whole module and of preserved ones.
    """

    fqn: str
    signature: ModuleCallSignature | None = None


# After the decorators, which look for the module of a class.
ModuleCallSignature.__module__ = ModuleCallEntry.__module__ = "compat.export.exported_program"


def check_paths(mod: Module, paths: Sequence[str]) -> None:
    """Checks that a module has submodules.

    Raises:
        AttributeError: for the first name that it does not have.
    """
    for path in paths:
        functools.reduce(getattr, path.split("."), mod)


def forward_names(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the arguments of a call; ``name_0`` and so on for those of ``*name``."""
    names = []
    try:
        bound = inspect.signature(mod.forward).bind_partial(*args)
    except (TypeError, ValueError):
        return list(kwargs)
    for name, value in bound.arguments.items():
        several = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}_{n}" for n in range(len(value))] if several else [name]
    return [*names, *kwargs]


def signature_of(call: ModuleCall, made: Mapping[Node, Node]) -> ModuleCallSignature:
    """The signature of a recorded call.

    Args:
        made: the nodes of the program by those of the trace.
    """

    def argument(x: Any) -> TensorArgument | ConstantArgument:
        return TensorArgument(made[x].name) if isinstance(x, Node) else ConstantArgument("", x)

    return ModuleCallSignature(
        [argument(x) for x in call.inputs], [argument(x) for x in call.outputs], call.in_spec, call.out_spec
    )


def entries(
    paths: Sequence[str], whole: ModuleCallSignature, calls: Mapping[str, ModuleCallSignature]
) -> list[ModuleCallEntry]:
    """The entries of a program: of the module, of all modules in it, and of later calls of preserved ones."""
    known = {"": whole, **calls}
    return [ModuleCallEntry(path, known.get(path)) for path in dict.fromkeys(["", *paths, *calls])]


class InModules(Interpreter):
    """Runs a graph within a trace, whose nodes are part of the same module calls as the nodes of the graph."""

    def __init__(self, module: GraphModule, calls: Sequence[ModuleCallEntry]):
        super().__init__(module)
        self._calls = {e.fqn: e.signature for e in calls if e.fqn and e.signature is not None}
        self._needed = {arg.name for s in self._calls.values() for arg in (*s.inputs, *s.outputs)}
        self._values: dict[str, Any] = {}

    def run_node(self, n: Node) -> Any:
        trace, calls = current(), n.meta.get("nn_module_stack")
        if trace is not None and calls:
            trace.set_calls(calls.values())
        result = super().run_node(n)
        if n.name in self._needed:
            self._values[n.name] = result
        if trace is not None and n.op == "output":
            for path, call in self._calls.items():
                arguments = tree_unflatten(map(self._value, call.inputs), call.in_spec)
                trace.preserve(path, arguments, tree_unflatten(map(self._value, call.outputs), call.out_spec))
        return result

    def _value(self, arg: TensorArgument | ConstantArgument) -> Any:
        return arg.value if isinstance(arg, ConstantArgument) else self._values[arg.name]
