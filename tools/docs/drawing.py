"""Parts of drawings: SVG with the colours of the page that contains it, and graphs laid out in layers."""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LINE = 16
_STYLE = 'font-size="12" fill="currentColor" text-anchor="middle"'
ACCENT = "#d9722e"


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """A picture with a title for screen readers."""
    head = f'<svg class="r-picture" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" {_STYLE}>'
    return "\n".join([head, f"<title>{html.escape(title)}</title>", *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{html.escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, more: str = 'fill="none" stroke="currentColor"') -> str:
    if "fill=" not in more:
        more = f'fill="none" stroke="currentColor" {more}'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {more}/>'


def arrow(x: float, y: float, to_x: float, to_y: float, colour: str = "currentColor") -> str:
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5 or 1.0
    u, v = (to_x - x) / length, (to_y - y) / length
    back_x, back_y = to_x - 8 * u, to_y - 8 * v
    tip = " ".join(
        f"{px:.1f},{py:.1f}"
        for px, py in ((to_x, to_y), (back_x - 4 * v, back_y + 4 * u), (back_x + 4 * v, back_y - 4 * u))
    )
    line = f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{back_x:.1f}" y2="{back_y:.1f}" stroke="{colour}"/>'
    return f'{line}<polygon points="{tip}" fill="{colour}"/>'


@dataclass
class Edge:
    """An arrow between two boxes.

    Attributes:
        label: the text beside it.
        strong: whether it has the highlight colour.
    """

    start: Hashable
    end: Hashable
    label: str = ""
    strong: bool = False


@dataclass
class Graph:
    """Boxes with lines of text, and arrows between them.

    Attributes:
        boxes: the lines of each, by a key.
        edges: from upper to lower boxes.
        strong: the boxes with the highlight colour.
        round: the boxes with round corners.
    """

    boxes: Mapping[Hashable, Sequence[str]]
    edges: Sequence[Edge]
    strong: set[Hashable] = field(default_factory=set)
    round: set[Hashable] = field(default_factory=set)

    def layers(self) -> tuple[list[list[Hashable]], dict[int, list[Hashable]]]:
        """The boxes in layers, from top to bottom, and the routes of edges: one place in each layer that they cross."""
        depth = dict.fromkeys(self.boxes, 0)
        for _ in self.boxes:
            for e in self.edges:
                depth[e.end] = max(depth[e.end], depth[e.start] + 1)
        found: list[list[Hashable]] = [[] for _ in range(max(depth.values()) + 1)]
        for key, level in depth.items():
            found[level].append(key)
        ways: dict[int, list[Hashable]] = {}
        above: dict[Hashable, list[Hashable]] = {key: [] for key in self.boxes}
        for n, e in enumerate(self.edges):
            ways[n] = [("way", n, level) for level in range(depth[e.start] + 1, depth[e.end])]
            for level, way in enumerate(ways[n], depth[e.start] + 1):
                found[level].append(way)
            steps = [e.start, *ways[n], e.end]
            for before, after in pairwise(steps):
                above.setdefault(after, []).append(before)
        place: dict[Hashable, float] = {}
        for layer in found:
            layer.sort(key=lambda k: sum(place[p] for p in above[k]) / len(above[k]) if above[k] else 0.5)
            place.update({k: (i + 0.5) / len(layer) for i, k in enumerate(layer)})
        return found, ways

    def draw(self, width: float = 350, gap: float = 38, top: float = 4) -> tuple[list[str], float]:
        """The parts of the picture, and its height."""
        spots: dict[Hashable, _Spot] = {}
        found, ways = self.layers()
        y = top
        for layer in found:
            lines = [self.boxes.get(k, ()) for k in layer]
            widths = [16 + 7.3 * max(map(len, some)) if some else 24.0 for some in lines]
            free = max(width - sum(widths), 0) / (len(layer) + 1)
            height, x = max(10 + LINE * len(some) if some else 0 for some in lines), free
            for key, some, w in zip(layer, lines, widths, strict=True):
                spots[key] = _Spot(x + w / 2, y, w, 10 + LINE * len(some) if some else height)
                x += w + free
            y += height + gap
        parts: list[str] = []
        for n, e in enumerate(self.edges):
            same = [m for m, other in enumerate(self.edges) if (other.start, other.end) == (e.start, e.end)]
            aside = 44 * (same.index(n) - (len(same) - 1) / 2) if not ways[n] else 0.0
            parts += _edge([spots[k] for k in (e.start, *ways[n], e.end)], e, aside)
        for key, some in self.boxes.items():
            spot = spots[key]
            colour = ACCENT if key in self.strong else "currentColor"
            corner = 6 if key in self.round else 0
            left = spot.x - spot.width / 2
            parts.append(box(left, spot.y, spot.width, spot.height, f'fill="none" stroke="{colour}" rx="{corner}"'))
            for i, line in enumerate(some):
                parts.append(text(spot.x, spot.y + LINE * (i + 1), line, 'font-weight="bold"' if i == 0 else ""))
        return parts, y - gap


@dataclass
class _Spot:
    """The position of a box, the middle of its upper side, and its size."""

    x: float
    y: float
    width: float
    height: float

    def towards(self, x: float, aside: float) -> float:
        """The point on its side where an edge to or from ``x`` begins or ends."""
        room = max(self.width / 2 - 8, 0)
        return self.x + max(-room, min(room, (x - self.x) / 3 + aside))


def _edge(way: Sequence[_Spot], e: Edge, aside: float) -> list[str]:
    colour = ACCENT if e.strong else "currentColor"
    points = [(way[0].towards(way[1].x, aside), way[0].y + way[0].height)]
    for spot in way[1:-1]:
        points += [(spot.x, spot.y), (spot.x, spot.y + spot.height)]
    points.append((way[-1].towards(way[-2].x, aside), way[-1].y))
    parts = [
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke="{colour}"/>'
        for (x, y), (u, v) in pairwise(points[:-1])
    ]
    parts.append(arrow(*points[-2], *points[-1], colour))
    if e.label:
        (x, y), (u, v) = points[0], points[1]
        right = u > x or (u == x and aside >= 0)
        at = (x + (u - x) * 0.45, y + (v - y) * 0.45 + 4)
        anchor = f'fill="{colour}" style="text-anchor:{"start" if right else "end"}"'
        parts.append(text(at[0] + (6 if right else -6), at[1], e.label, anchor))
    return parts
