"""Pictures of the documentation, drawn from real runs, as SVG in the colours of the page that contains them.

    python tools/docs/pictures.py            write docs/img/*.svg
    python tools/docs/pictures.py --check    list those that are out of date

The files are inlined into pages, so that they follow the page's light or dark scheme. They are at most as wide as a
phone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

import compat as torch  # noqa: E402
import funcgrad as fg  # noqa: E402
import funcgrad.numpy as fnp  # noqa: E402
from compat import runtime  # noqa: E402
from funcgrad.core.ir import Literal, Program  # noqa: E402
from tools.docs.drawing import ACCENT, LINE, Edge, Graph, arrow, box, svg, text  # noqa: E402

FOLDER = ROOT / "docs" / "img"
CELL, GAP = 34, 26


# ---------------------------------------------------------------- strides


def strides() -> str:
    """A storage, and three tensors on it, with the element of the storage for each of theirs."""
    x = torch.arange(6).view(2, 3)
    views = {"x": x, "x.t()": x.t(), "x[:, ::2]": x[:, ::2]}
    parts = [text(60, 24, "storage", 'font-weight="bold"')]
    for place in range(6):
        parts += [box(110 + CELL * place, 4, CELL, CELL), text(127 + CELL * place, 26, str(place))]
    left = 20
    for name, view in views.items():
        rows, columns = view.shape
        middle = left + max(CELL * columns, 110) / 2
        parts.append(text(middle, 80, name, 'font-weight="bold"'))
        parts.append(text(middle, 80 + LINE, f"size {tuple(view.shape)}"))
        parts.append(text(middle, 80 + 2 * LINE, f"stride {view.stride()}"))
        for i in range(rows):
            for j in range(columns):
                place = view.storage_offset() + i * view.stride()[0] + j * view.stride()[1]
                assert view[i, j].item() == place
                at_x, at_y = middle - CELL * columns / 2 + CELL * j, 130 + CELL * i
                parts += [box(at_x, at_y, CELL, CELL), text(at_x + CELL / 2, at_y + 22, str(place))]
        left += max(CELL * columns, 110) + GAP
    return svg(left - GAP + 12, 240, "Three tensors on one storage, with their sizes and strides", parts)


# ---------------------------------------------------------------- the backward pass


def backward() -> str:
    """The nodes of ``sum((a * b) ** 2)``, with the gradients that a real backward pass passes between them."""
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    c = a * b
    d = c**2
    e = d.sum()
    return _backward(e, {"a": a, "b": b, "c": c, "d": d, "e": e}, "The backward pass of sum((a * b) ** 2)")


def one_leaf() -> str:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)
    c = a * b
    return _backward(c, {"a": a, "b": b, "c": c}, "The backward pass of a * b, where a requires grad")


def products() -> tuple[Any, dict[str, Any]]:
    """``e = (a * b) * d``."""
    a, b, d = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    c = a * b
    e = c * d
    return e, {"a": a, "b": b, "c": c, "d": d, "e": e}


def unbound() -> str:
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b, c, d = a.unbind()
    e = b * c * d
    return _backward(e, {"a": a, "b": b, "c": c, "d": d, "e": e}, "The backward pass of b * c * d, unbound from a")


def everything() -> str:
    """The graph in which two tensors are used twice, and one becomes a leaf after it was computed."""
    c = torch.tensor(2.0) * torch.tensor(2.0)
    c.requires_grad = True
    h = torch.tensor(2.0, requires_grad=True)
    e = c * torch.tensor(2.0)
    g = torch.tensor(2.0) * e
    i = g / h
    j = i + h
    k = j * i
    return _backward(k, {"c": c, "h": h, "e": e, "g": g, "i": i, "j": j, "k": k}, "The backward pass of k = j * i")


class _Pass:
    """A backward pass, as recorded by hooks.

    Attributes:
        order: the nodes in the order in which they ran.
        sent: for each the gradients that it passed on, one for each of its edges.
        after: the gradients of the leaves after each.
    """

    def __init__(self, root: Any, leaves: Mapping[str, Any]):
        self.order: list[Any] = []
        self.sent: dict[Any, list[str]] = {}
        self.after: list[dict[str, str]] = []
        self.nodes: list[Any] = []
        self.add(root.grad_fn)
        for node in self.nodes:
            node.register_hook(self.keeping(node, leaves))
        root.backward()

    def add(self, node: Any) -> None:
        if node is not None and node not in self.nodes:
            self.nodes.append(node)
            for following, _ in node.next_functions:
                self.add(following)

    def keeping(self, node: Any, leaves: Mapping[str, Any]) -> Callable[..., None]:
        def keep(grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
            self.order.append(node)
            self.sent[node] = ["" if g is None else shown(g) for g in grad_inputs]
            self.after.append({name: shown(leaf.grad) for name, leaf in leaves.items()})

        return keep


def shown(x: Any) -> str:
    """A value as short text: ``12``, ``[1, 2]``, ``None``."""
    if x is None:
        return "None"
    return re.sub(r"\.0\b", "", str(x.tolist()))


def _edges(nodes: Sequence[Any]) -> list[tuple[Any, int, Any]]:
    return [(n, i, m) for n in nodes for i, (m, _) in enumerate(n.next_functions) if m is not None]


def _lines(node: Any, known: Mapping[str, Any], leaf_grads: Mapping[str, str]) -> list[str]:
    """The text in a node's box: for a leaf its attributes, for another node its name and its tensor."""
    made = [name for name, t in known.items() if t.grad_fn is node]
    if "AccumulateGrad" not in node.name():
        values = ", ".join(shown(known[name]) for name in made)
        return [node.name(), *([f"of {', '.join(made)}: data {values}"] if made else [])]
    name, leaf = next((name, t) for name, t in known.items() if t is node.variable)
    return [
        "AccumulateGrad", f"{name}.data {shown(leaf)}", f"{name}.grad {leaf_grads[name]}", f"is_leaf {leaf.is_leaf}",
        f"grad_fn {leaf.grad_fn}",
    ]  # fmt: skip


def _backward(root: Any, known: Mapping[str, Any], title: str) -> str:
    """The whole graph, with the gradients on its edges."""
    leaves = {name: t for name, t in known.items() if t.is_leaf}
    seen = _Pass(root, leaves)
    boxes = {n: _lines(n, known, seen.after[-1]) for n in seen.nodes}
    edges = [Edge(n, m, seen.sent[n][i]) for n, i, m in _edges(seen.nodes)]
    graph = Graph(boxes, edges, round=set(seen.nodes))
    parts, height = graph.draw(top=44)
    start = [text(175 + 8, 20, "1", 'style="text-anchor:start"'), arrow(175, 6, 175, 44)]
    return svg(350, height + 6, f"{title}, with the gradients on its edges", [*start, *parts])


def step(number: int) -> str:
    """The backward pass of ``e = (a * b) * d`` after the given number of nodes have run."""
    root, known = products()
    leaves = {name: t for name, t in known.items() if t.is_leaf}
    seen = _Pass(root, leaves)
    run = seen.order[:number]
    grads = seen.after[number - 1] if number else dict.fromkeys(leaves, "None")
    edges = [
        Edge(n, m, seen.sent[n][i] if n in run else "", strong=bool(run) and n is run[-1])
        for n, i, m in _edges(seen.nodes)
    ]
    graph = Graph({n: _lines(n, known, grads) for n in seen.nodes}, edges, {run[-1]} if run else set(), set(seen.nodes))
    parts, height = graph.draw(width=340, top=26)
    words = f"{number}: {run[-1].name().rpartition(':')[2]} has run" if run else "0: before backward"
    return svg(
        340, height + 6, f"Step {words}", [text(6, 14, words, 'font-weight="bold" style="text-anchor:start"'), *parts]
    )


# ---------------------------------------------------------------- programs


def _program(program: Program, title: str) -> str:
    """A program: a box for each input, equation and result, an arrow for each value."""
    boxes: dict[Any, list[str]] = {}
    made: dict[Any, Any] = {}
    edges: list[Edge] = []
    for i, var in enumerate(program.inputs):
        boxes["in", i], made[var] = [f"{'xyz'[i]}: {var.type}"], ("in", i)
    for i, equation in enumerate(program.equations):
        literals = [f"{float(o.value):g}" for o in equation.inputs if isinstance(o, Literal)]
        boxes[i] = [" ".join([equation.primitive.name, *literals]), str(equation.outputs[0].type)]
        edges += [Edge(made[o], i) for o in equation.inputs if o in made]
        made.update(dict.fromkeys(equation.outputs, i))
    boxes["out"] = ["result"]
    edges += [Edge(made[o], "out") for o in program.outputs if o in made]
    parts, height = Graph(boxes, edges, {"out"}, {k for k in boxes if isinstance(k, tuple)}).draw(top=26, gap=30)
    head = text(6, 14, title, 'font-weight="bold" style="text-anchor:start"')
    return svg(350, height + 6, f"The program of {title}", [head, *parts])


def _example(x: Any) -> Any:
    return fnp.sin(x) * x


def program_of(transform: str) -> str:
    x = fnp.ones(3) if transform == "vmap(f)" else fnp.ones(())
    made = {"f": _example, "grad(f)": fg.grad(_example), "vmap(f)": fg.vmap(_example)}.get(transform)
    if made is not None:
        return _program(fg.trace(made, x), transform)
    return _program(fg.jit(fg.grad(_example)).trace(x), transform)


# ---------------------------------------------------------------- windows


def window() -> str:
    """Steps of a training loop: the operations that each records, and how its window runs."""
    w = torch.ones(3, 2, requires_grad=True)
    x = torch.ones(4, 3)
    optimizer = torch.optim.SGD([w], lr=0.1)
    rows = []
    runtime.synchronize()
    for _ in range(5):
        before = runtime.stats()
        optimizer.zero_grad()
        ((x @ w) ** 2).sum().backward()
        optimizer.step()
        runtime.synchronize()
        after = runtime.stats()
        rows.append({key: after[key] - before[key] for key in ("operations", "one_by_one", "compiles", "hits")})
    parts = []
    for i, row in enumerate(rows):
        y = 8 + 52 * i
        parts += [text(4, y + 24, f"step {i + 1}", 'style="text-anchor:start"')]
        count = row["operations"]
        for k in range(count):
            parts.append(box(54 + 20 * k, y + 8, 16, 24))
        x_of = 54 + 20 * count + 6
        parts.append(arrow(x_of, y + 20, x_of + 24, y + 20))
        if row["hits"]:
            parts += [box(x_of + 30, y + 8, 90, 24, f'fill="none" stroke="{ACCENT}" stroke-width="2"')]
            parts.append(text(x_of + 75, y + 24, "one program"))
        else:
            parts += [box(x_of + 30 + 18 * k, y + 12, 12, 16) for k in range(count)]
            parts.append(text(x_of + 75, y + 46, "compiled meanwhile" if row["compiles"] else "one by one"))
    return svg(350, 8 + 52 * len(rows), "What five steps of a training loop record, and how it is run", parts)


# ---------------------------------------------------------------- benchmarks


def bars() -> str:
    """The first table of the page on benchmarks as bars: speed relative to PyTorch."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = re.findall(
        r"^\| (?:`(\w+)`|(geometric mean)) \|(.*)\|$",
        page[page.index("## Results") : page.index("The medium sizes")],
        re.MULTILINE,
    )
    parts, y = [], 34.0
    columns = {"compat": 2, "compat.compile": 3, "jax by hand": 4}
    colours = {"compat": "#2f81c5", "compat.compile": "#d9722e", "jax by hand": "#8a8a8a"}
    x = 6.0
    for name, colour in colours.items():
        parts += [
            box(x, 6, 10, 10, f'fill="{colour}"'),
            text(x + 14, 15, name, 'style="text-anchor:start"'),
        ]
        x += 30 + 7.5 * len(name)  # a monospaced font
    for name, mean, cells in rows:
        values = [cell.split()[0] if cell.strip() else "" for cell in cells.split("|")]
        parts.append(text(6, y + 16, name or mean, 'font-weight="bold" style="text-anchor:start"'))
        y += 22
        for column, at in columns.items():
            ratio = float(values[at])
            length = min(ratio, 8) * 30
            parts += [box(6, y, length, 9, f'fill="{colours[column]}"')]
            parts.append(
                text(
                    length + 12,
                    y + 9,
                    f"{ratio:g}" + (" →" if ratio > 8 else ""),
                    'font-size="10" style="text-anchor:start"',
                )
            )
            y += 11
        y += 4
    line = f'<line x1="36" y1="30" x2="36" y2="{y:g}" stroke="currentColor" stroke-dasharray="3 3"/>'
    return svg(
        350,
        y + 20,
        "How many times as fast as PyTorch a training step is",
        [*parts, line, text(36, y + 14, "1: PyTorch")],
    )


PICTURES: dict[str, Callable[[], str]] = {
    "strides": strides, "backward": backward, "one-leaf": one_leaf, "unbound": unbound, "everything": everything,
    **{f"step-{n}": (lambda n=n: step(n)) for n in range(6)},
    **{f"program-{key}": (lambda name=name: program_of(name))
       for key, name in {"f": "f", "grad": "grad(f)", "vmap": "vmap(f)", "jit": "jit(grad(f))"}.items()},
    "window": window, "bars": bars,
}  # fmt: skip


def main() -> int:
    """Draws all pictures in this process, which has run nothing else; with ``--check`` compares them with the files."""
    wrong = 0
    for name, draw in PICTURES.items():
        file, drawn = FOLDER / f"{name}.svg", draw()
        if "--check" not in sys.argv:
            file.write_text(drawn)
        elif not file.exists() or file.read_text() != drawn:
            print(f"{file.name} is not what is drawn; python tools/docs/pictures.py draws it again")
            wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
