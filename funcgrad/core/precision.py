"""The precision of float32 products and convolutions on accelerators, which have faster, less precise units for them.

By default it is the highest, as on the CPU, where nothing else exists. ``jax_default_matmul_precision`` of JAX's
configuration sets it for both, as for JAX's own operations; ``set_precision`` takes precedence.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax

__all__ = ["configured", "of_convolutions", "of_products", "set_precision"]


class _Setting:
    products: lax.Precision | None = None
    convolutions: lax.Precision | None = None


def set_precision(*, products: str | None, convolutions: str | None) -> None:
    """Sets the precision of the programs that are lowered from now on, in all threads.

    Programs that have been compiled are dropped if it changes.

    Args:
        products: ``"highest"``, ``"high"`` (TF32 on a GPU, three bfloat16 products on a TPU) or ``"default"`` (TF32;
            one bfloat16 product); None for that of JAX's configuration.
        convolutions: the same for convolutions.

    Raises:
        ValueError: for another name.

    Example:
        >>> from funcgrad.core.precision import of_products, set_precision
        >>> set_precision(products="high", convolutions=None)
        >>> of_products().name
        'HIGH'
        >>> set_precision(products=None, convolutions=None)
    """
    wanted = _named(products), _named(convolutions)
    if wanted != (_Setting.products, _Setting.convolutions):
        _Setting.products, _Setting.convolutions = wanted
        jax.clear_caches()


def _named(name: str | None) -> lax.Precision | None:
    names = ("highest", "high", "default")
    if name is not None and name not in names:
        raise ValueError(f"set_precision: a precision is one of {', '.join(names)} or None, got {name!r}")
    return None if name is None else lax.Precision[name.upper()]


def of_products() -> lax.Precision | None:
    """The ``precision`` for ``jax.lax.dot_general``; None for that of JAX's configuration."""
    return _effective(_Setting.products)


def of_convolutions() -> lax.Precision | None:
    """The ``precision`` for ``jax.lax.conv_general_dilated``; None for that of JAX's configuration."""
    return _effective(_Setting.convolutions)


def _effective(own: lax.Precision | None) -> lax.Precision | None:
    return own if own is not None or configured() is not None else lax.Precision.HIGHEST


def configured() -> Any:
    """The setting of JAX's configuration, in this thread; None if there is none."""
    return jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
