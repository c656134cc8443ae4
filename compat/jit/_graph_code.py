"""The code of a graph of TorchScript."""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor
from compat.jit._graph import Graph, Node, Value

__all__ = ["code_of"]


def code_of(graph: Graph) -> str:
    """A graph as Python."""
    given = [v for v in graph.inputs() if v.type().kind() != "ClassType"]
    names = {v: _variable(v) for v in graph.inputs()}
    lines = ["def forward(self,\n    " + ",\n    ".join(f"{names[v]}: {v.type()}" for v in given) + ") -> Tensor:"]
    for node in graph.nodes():
        operands = [names[v] for v in node.inputs()]
        results = list(node.outputs())
        text = _expression(node, operands)
        if len(results) == 1 and node.kind().startswith("prim::") and node.kind() != "prim::ListUnpack":
            names[results[0]] = text
            continue
        names.update((v, _variable(v)) for v in results)
        lines.append(f"  {', '.join(names[v] for v in results)}{',' * (len(results) > 1)} = {text}")
    return "\n".join([*lines, f"  return {', '.join(names[v] for v in graph.outputs())}"]) + "\n"


def _variable(value: Value) -> str:
    name = value.debugName().replace(".", "_")
    return f"_{name}" if name[0].isdigit() else name


def _expression(node: Node, operands: list[str]) -> str:
    kind = node.kind()
    if kind == "prim::Constant":
        value = node.output().toIValue()
        return "CONSTANTS" if isinstance(value, Tensor) else repr(value) if isinstance(value, str) else str(value)
    if kind == "prim::GetAttr":
        name = node.s("name")
        return f'getattr({operands[0]}, "{name}")' if name.isdigit() else f"{operands[0]}.{name}"
    if kind == "prim::ListConstruct":
        return f"[{', '.join(operands)}]"
    if kind == "prim::TupleConstruct":
        return f"({', '.join(operands)}{',' * (len(operands) == 1)})"
    return operands[0] if kind == "prim::ListUnpack" else f"torch.{kind.rpartition(':')[2]}({', '.join(operands)})"
