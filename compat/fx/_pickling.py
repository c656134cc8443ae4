"""Pickling of a ``GraphModule``: as its code, which is traced again at loading."""

from __future__ import annotations

from typing import Any

from compat.fx._codegen import CodeGen, PythonCode
from compat.fx._symbolic_trace import Tracer
from compat.fx.graph_module import OWN, GraphModule, define
from compat.nn.modules.module import Module


class _WithState(Module):
    """A module with the attributes of a pickled one, while its code is traced."""


class _AllLeaves(Tracer):
    """A tracer for which all modules are leaves: the code has a call for each."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def rebuilt(state: dict[str, Any], source: str, others: dict[str, Any], name: str, codegen: CodeGen) -> GraphModule:
    """A module rebuilt from its code.

    Args:
        state: its attributes.
        others: the globals of the code, except the default ones.
        name: the name of its class.
        codegen: what writes its code; ``source`` is written plainly.
    """
    kind = type("Held", (_WithState,), {})
    lines = [line for line in source.split("\n") if not line.startswith("torch.fx._symbolic_trace.wrap(")]
    define(kind, PythonCode("\n".join(lines), CodeGen().globals | others))
    held = kind()
    held.__dict__.update(state)
    tracer = _AllLeaves(autowrap_functions=tuple(f for f in others.values() if callable(f)))
    graph = tracer.trace(held)
    graph.set_codegen(codegen)
    made = GraphModule(held, graph, name)
    made.__dict__.update({k: v for k, v in state.items() if k not in ("_modules", "_parameters", "_buffers")})
    return made


def _reduced(self: GraphModule) -> Any:
    made = CodeGen().generate(self.graph, "self")
    others = {k: v for k, v in made.globals.items() if k not in CodeGen().globals}
    state = {k: v for k, v in self.__dict__.items() if k not in OWN}
    return rebuilt, (state, made.src, others, type(self).__name__, self.graph._codegen.fresh())


GraphModule.__reduce__ = _reduced  # type: ignore[method-assign, assignment]
