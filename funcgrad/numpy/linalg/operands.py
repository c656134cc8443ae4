"""Conversion and checks of the operands of functions of matrices."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.linalg import LinAlgError

from funcgrad.core.errors import ConcretizationError
from funcgrad.core.tracing import concrete, type_of
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives.elementwise import broadcast_shapes
from funcgrad.primitives.shape import broadcast


def matrices(x: Any, name: str, *, square: bool = False) -> Any:
    """``x`` as floating or complex matrices.

    Raises:
        LinAlgError: if its rank is below 2, or, if ``square``, the matrices are not square.
    """
    (x,) = promoted(asoperand(x, name), floating=True)
    t = type_of(x)
    if t.ndim < 2:
        raise LinAlgError(f"{name}: takes matrices, which are the last two axes, got {t}")
    if square and t.shape[-1] != t.shape[-2]:
        raise LinAlgError(f"{name}: takes square matrices, got {t}")
    return x


def together(name: str, *xs: Any) -> list[Any]:
    """Matrices with their leading axes broadcast against each other."""
    lead = broadcast_shapes(name, *[type_of(x).shape[:-2] for x in xs])
    spread = []
    for x in xs:
        shape = type_of(x).shape
        wanted = (*lead, *shape[-2:])
        dims = tuple(range(len(wanted) - len(shape), len(wanted)))
        spread.append(x if shape == wanted else broadcast(x, shape=wanted, dims=dims))
    return spread


def value_of(x: Any) -> np.ndarray | None:
    """The concrete values of an array, inside ``grad`` too; None under ``jit`` and ``vmap``."""
    try:
        x = concrete(x)
    except ConcretizationError:
        return None
    return None if isinstance(x, jax.core.Tracer) else np.asarray(x)


def require(good: Any, message: str, given: Any = None) -> None:
    """Raises unless all of ``good`` is true, if its values are concrete.

    Args:
        given: the operand; if it is finite, a bad value is an overflow, which is no error.

    Raises:
        LinAlgError: with the message.
    """
    found = value_of(good)
    if found is None or found.all() or (given is not None and np.isfinite(np.asarray(value_of(given))).all()):
        return
    raise LinAlgError(message)
