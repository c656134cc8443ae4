"""The Dirichlet distribution of probability vectors."""

from __future__ import annotations

from typing import Any

from funcgrad import special
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as n
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.reductions import sum
from funcgrad.numpy.shape import concatenate, reshape
from funcgrad.runtime.call_cache import composite


@composite
def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density.

    Args:
        x: probabilities along the first axis; the last one may be omitted.
        alpha: the parameters, a vector.

    Returns:
        ``x.shape[1:]``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, or complex ones.
        ValueError: if the numbers of probabilities and parameters differ, or ``alpha`` is not a vector.

    Example:
        >>> print(logpdf([0.25, 0.75], [1.0, 1.0]))
        0.0
    """
    x, alpha = promoted(asoperand(x, "dirichlet.logpdf"), asoperand(alpha, "dirichlet.logpdf"), floating=True)
    count, found = type_of(alpha).shape, type_of(x).shape
    if len(count) != 1 or not found or found[0] not in (count[0], count[0] - 1):
        raise ValueError(
            f"dirichlet.logpdf: {type_of(x)} has no probability for each of the parameters {type_of(alpha)}"
        )
    if found[0] < count[0]:
        x = concatenate([x, n.subtract(1, sum(x, axis=0, keepdims=True))], 0)
    norm = n.subtract(sum(special.gammaln(alpha)), special.gammaln(sum(alpha)))
    powers = reshape(n.subtract(alpha, 1), (count[0], *(1,) * (len(found) - 1)))
    return n.subtract(sum(special.xlogy(powers, x), axis=0), norm)


@composite
def pdf(x: Any, alpha: Any) -> Any:
    """The density.

    Args:
        x, alpha: as for ``logpdf``.

    Returns:
        ``x.shape[1:]``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, or complex ones.
        ValueError: if the numbers of probabilities and parameters differ, or ``alpha`` is not a vector.

    Example:
        >>> print(pdf([0.25, 0.75], [1.0, 1.0]))
        1.0
    """
    return n.exp(logpdf(x, alpha))
