"""What distributions share: parameters promoted, variables standardized, densities outside of the support."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy import elementwise as n
from funcgrad.special.declare import operands


def standard(name: str, x: Any, loc: Any, scale: Any, *shapes: Any) -> list[Any]:
    """``(x - loc) / scale``, ``scale`` and the shape parameters, all in one floating dtype."""
    x, loc, scale, *rest = operands(name, x, loc, scale, *shapes)
    return [n.divide(n.subtract(x, loc), scale), scale, *rest]


def inside(condition: Any, value: Any, outside: float = -np.inf) -> Any:
    """``value`` in the support, ``outside`` elsewhere."""
    return n.where(condition, value, outside)
