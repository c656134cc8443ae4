"""Graphs to draw with torchviz, made with any PyTorch, and the drawings as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "drawings_golden.json"
#: Drawings as pictures on the pages, made by Graphviz's ``dot -Tsvg``.
PICTURES = {"network": "network_with_attributes"} | {name: name for name in ("unbound", "everything", "one_iteration")}
Drawing = tuple[Any, dict[str, Any]]


def numbered(source: str) -> str:
    """A drawing with its nodes, which are named by addresses, numbered in the order in which they appear."""
    seen: dict[str, int] = {}
    return re.sub(r"\b\d{7,}\b", lambda found: str(seen.setdefault(found[0], len(seen))), source)


def network(torch: Any) -> Drawing:
    nn = torch.nn
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, 2)]
    net = nn.Sequential(*layers)
    return net(torch.randn(2, 3, 4, 4)), {"params": dict(net.named_parameters())}


def network_with_attributes(torch: Any) -> Drawing:
    y, options = network(torch)
    return y, {**options, "show_attrs": True, "show_saved": True}


def fraction(torch: Any) -> Drawing:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    i = a / b
    return (i + b) * i, {"params": {"a": a, "b": b}, "show_saved": True, "show_attrs": True}


def one_iteration(torch: Any) -> Drawing:
    w, x = torch.ones(2, requires_grad=True), torch.ones(2)
    return (w * x).sum(), {"params": {"w": w, "x": x}}


def own_function(torch: Any) -> Drawing:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, i: Any) -> Any:
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (result,) = ctx.saved_tensors
            return grad * result

    a = torch.tensor(2.0, requires_grad=True)
    return Exp.apply(a) * 2, {"params": {"a": a}}


def changed_view(torch: Any) -> Drawing:
    t = torch.randn(4, 4, requires_grad=True)
    c = t * 1
    c[0].mul_(2)
    return (c.t()[1:], c.sum()), {"params": {"t": t}, "show_saved": True}


def unbound(torch: Any) -> Drawing:
    b, c, d = torch.ones(3, requires_grad=True).unbind()
    return b * c * d, {"show_saved": True}


def everything(torch: Any) -> Drawing:
    a, b, d, f = (torch.tensor(2.0) for _ in range(4))
    c = a * b
    c.requires_grad = True
    h = torch.tensor(2.0, requires_grad=True)
    i = f * (c * d) / h
    return (i + h) * i, {"params": {"c": c, "h": h}}


def recurrent(torch: Any) -> Drawing:
    net = torch.nn.LSTM(3, 4)
    outputs, (hidden, _) = net(torch.randn(3, 2, 3))
    return outputs.sum() + hidden.sum(), {"params": dict(net.named_parameters())}


def attention(torch: Any) -> Drawing:
    net, x = torch.nn.MultiheadAttention(4, 2), torch.randn(3, 2, 4)
    return net(x, x, x)[0], {"params": dict(net.named_parameters()), "show_attrs": True}


DRAWINGS: tuple[Callable[[Any], Drawing], ...] = (
    network,
    network_with_attributes,
    fraction,
    one_iteration,
    own_function,
    changed_view,
    unbound,
    everything,
    recurrent,
    attention,
)


def drawn(torch: Any, make_dot: Callable[..., Any], what: Callable[[Any], Drawing]) -> str:
    """The drawing of ``torchviz.make_dot``."""
    torch.manual_seed(0)
    y, options = what(torch)
    return numbered(make_dot(y, **options).source)
