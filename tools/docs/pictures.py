"""Pictures of the documentation, drawn of what really runs, as SVG in the colours of the page that they stand on.

    python tools/docs/pictures.py            write docs/img/*.svg

The files are put into pages as they are, so that they follow the page's light or dark scheme.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

import compat as torch  # noqa: E402

FOLDER = ROOT / "docs" / "img"
CELL, GAP, LINE = 34, 26, 18
_STYLE = 'font-size="12" fill="currentColor" text-anchor="middle"'


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """A picture with a title for who cannot see it."""
    head = f'<svg class="r-picture" viewBox="0 0 {width} {height}" width="{width}" role="img" {_STYLE}>'
    return "\n".join([head, f"<title>{html.escape(title)}</title>", *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{html.escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, more: str = "") -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="none" stroke="currentColor" {more}/>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    tip = f"{to_x:g},{to_y:g} {to_x - 4:g},{to_y - 8:g} {to_x + 4:g},{to_y - 8:g}"
    line = f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y - 8:g}" stroke="currentColor"/>'
    return f'{line}<polygon points="{tip}"/>'


# ---------------------------------------------------------------- strides


def strides() -> str:
    """A storage, and three tensors on it: which element of the storage each of theirs is."""
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
    return svg(390, 240, "Three tensors on one storage, with their sizes and strides", parts)


# ---------------------------------------------------------------- the backward pass


def backward() -> str:
    """The nodes of ``sum((a * b) ** 2)``, with the gradients that a real backward pass sends between them."""
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    loss = ((a * b) ** 2).sum()
    sent: dict[Any, list[str]] = {}
    chain = [loss.grad_fn]
    while len(chain[-1].next_functions) == 1:
        chain.append(chain[-1].next_functions[0][0])
    for node in chain:
        node.register_hook(_keeping(sent, node))
    loss.backward()
    parts, y = [text(195, 16, "1."), arrow(195, 22, 195, 44)], 44
    for node in chain:
        parts += [box(115, y, 160, 30, 'rx="6"'), text(195, y + 20, node.name())]
        below = y + 30 + 46
        if len(sent[node]) == 1:
            parts += [arrow(195, y + 30, 195, below), text(205, y + 58, sent[node][0], 'style="text-anchor:start"')]
        y = below
    for x, name, tensor, grad in ((90, "a", a, sent[chain[-1]][0]), (300, "b", b, sent[chain[-1]][1])):
        parts += [arrow(195, y - 46, x, y), text(x, y - 14, grad, f'dx="{-40 if x < 195 else 40}"')]
        rows = [f"AccumulateGrad of {name}", f"data {tensor.tolist()}", f"grad {tensor.grad.tolist()}"]
        rows.append(f"is_leaf {tensor.is_leaf}")
        parts.append(box(x - 85, y, 170, 8 + LINE * len(rows), 'rx="6"'))
        parts += [text(x, y + LINE * (i + 1), row) for i, row in enumerate(rows)]
    return svg(390, int(y + 90), "The backward pass of sum((a * b) ** 2), with the gradients on its edges", parts)


def _keeping(sent: dict[Any, list[str]], node: Any) -> Callable[..., None]:
    def keep(grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        sent[node] = [str(g.tolist()) for g in grad_inputs if g is not None]

    return keep


PICTURES = {"strides": strides, "backward": backward}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
