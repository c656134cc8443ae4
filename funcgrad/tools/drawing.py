"""Programs as graphs in the DOT language, for Graphviz and compatible libraries."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count

from funcgrad.core.errors import describe_location
from funcgrad.core.ir import Atom, Equation, Literal, Program, set_view


def dot(program: Program) -> str:
    """The graph: a node for each input, equation and result, an edge for each value, with its type.

    Programs inside equations are clusters; a node's tooltip is the user's line.

    Args:
        program: the program to draw.

    Returns:
        The graph in the DOT language.

    Raises:
        AttributeError: for an argument that is not a program.

    Example:
        >>> import funcgrad as fg
        >>> print(dot(fg.trace(lambda x: x * 2, 1.0)).splitlines()[0])
        digraph "..." {
    """
    lines = [f"digraph {_quoted(program.name)} {{", '  node [shape=box, fontname="monospace", fontsize=10];']
    lines.append('  edge [fontname="monospace", fontsize=9];')
    lines += _nodes(program, count(), "  ")
    return "\n".join([*lines, "}"])


def svg(program: Program) -> str:
    """The graph rendered by Graphviz.

    Args:
        program: the program to draw.

    Returns:
        The text of an SVG file.

    Raises:
        RuntimeError: if Graphviz is not installed.

    Example:
        >>> import funcgrad as fg, shutil
        >>> program = fg.trace(lambda x: x * 2, 1.0)
        >>> "<svg" in svg(program) if shutil.which("dot") else True
        True
    """
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=dot(program), capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise RuntimeError(
            "Graphviz, which draws graphs, is not installed: there is no program 'dot'. The graph as text is dot()"
        ) from None
    return done.stdout


def _nodes(program: Program, fresh: Iterator[int], indent: str) -> list[str]:
    made: dict[Atom, str] = {}
    lines: list[str] = []

    def node(label: str, **attributes: str) -> str:
        name = f"n{next(fresh)}"
        described = "".join(f", {k}={_quoted(v)}" for k, v in attributes.items())
        lines.append(f"{indent}{name} [label={_quoted(label)}{described}];")
        return name

    def edge(atom: Atom, target: str) -> None:
        source = node(str(atom.value), shape="plaintext") if isinstance(atom, Literal) else made[atom]
        lines.append(f"{indent}{source} -> {target} [label={_quoted(str(atom.type))}];")

    names = program.arguments or [f"input {i}" for i in range(len(program.inputs))]
    for variable, name in zip(program.inputs, names, strict=True):
        made[variable] = node(name, shape="ellipse")
    for variable, _ in program.constants:
        made[variable] = node("constant", shape="ellipse", style="dashed")
    for equation in program.equations:
        target = node(equation.primitive.name, tooltip=describe_location(equation.source))
        for atom in equation.inputs:
            edge(atom, target)
        made.update((v, target) for v in equation.outputs)
        lines += _inside(equation, fresh, indent)
    for i, atom in enumerate(program.outputs):
        edge(atom, node(f"result {i}" if len(program.outputs) > 1 else "result", shape="ellipse"))
    return lines


def _inside(equation: Equation, fresh: Iterator[int], indent: str) -> list[str]:
    lines: list[str] = []
    for key, inner in equation.params.items():
        if isinstance(inner, Program):
            label = f"{equation.primitive.name}: {key} {inner.name}"
            lines.append(f"{indent}subgraph cluster_{next(fresh)} {{")
            lines.append(f"{indent}  label={_quoted(label)};")
            lines += [*_nodes(inner, fresh, indent + "  "), f"{indent}}}"]
    return lines


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


set_view("dot", dot)
set_view("svg", svg)
