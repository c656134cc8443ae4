"""Functions of whole matrices."""

from __future__ import annotations

from typing import Any

from funcgrad.numpy.linalg.operands import matrices, together
from funcgrad.numpy.promotion import promoted
from funcgrad.primitives.linalg_equations import matrix_root
from funcgrad.primitives.linalg_spectral import exponential_tangent, matrix_exponential

__all__ = ["expm_frechet", "sqrtm"]


def sqrtm(A: Any) -> Any:
    """The principal square roots of square matrices.

    Args:
        A: ``(*, n, n)``, not singular where it is differentiated.

    Returns:
        ``(*, n, n)``, always complex: whether it is real depends on the numbers.

    Raises:
        LinAlgError: for matrices that are not square.

    Example:
        >>> import numpy as np
        >>> print(np.round(sqrtm(np.array([[4.0, 3.0], [0.0, 1.0]])).real, 6))
        [[2. 1.]
         [0. 1.]]
    """
    return matrix_root(matrices(A, "sqrtm", square=True))


def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """The exponentials of square matrices, and their derivatives in a direction.

    Args:
        A, E: ``(*, n, n)``, the matrix and the direction.
        method, check_finite: of no consequence.
        compute_expm: False for the derivative alone.

    Raises:
        LinAlgError: for matrices that are not square.

    Example:
        >>> import numpy as np
        >>> whole, moved = expm_frechet(np.zeros((1, 1)), np.ones((1, 1)))
        >>> print(whole, moved)
        [[1.]] [[1.]]
    """
    found = promoted(matrices(A, "expm_frechet", square=True), matrices(E, "expm_frechet", square=True))
    a, e = together("expm_frechet", *found)
    tangent = exponential_tangent(a, e)
    return (matrix_exponential(a), tangent) if compute_expm else tangent
