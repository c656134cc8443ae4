"""Matrix functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import linalg
from funcgrad.numpy.linalg.operands import matrices, together, value_of
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg.equations import matrix_root
from funcgrad.primitives.linalg.svd_eig import exponential_tangent, matrix_exponential
from funcgrad.runtime.call_cache import composite

__all__ = ["coshm", "cosm", "expm_frechet", "funm", "sinhm", "sinm", "sqrtm", "tanhm", "tanm"]


def _known_real(values: Any, found: Any) -> bool:
    """Whether a function of a real matrix is known to be real: from its concrete eigenvalues, and the function's values
    there and at their conjugates."""
    known = [v for v in map(value_of, (values, *found)) if v is not None]
    if len(known) < 3:
        return False
    of, at_values, at_conjugates = known
    return bool(np.all(at_conjugates == np.conj(at_values)) and np.all(at_values[of.imag == 0].imag == 0))


def sqrtm(A: Any) -> Any:
    """The principal square roots of square matrices.

    Args:
        A: ``(*, n, n)``, nonsingular if it is differentiated.

    Returns:
        ``(*, n, n)``: real for real matrices without negative eigenvalues; always complex under ``jit``.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for fewer than two axes.

    Example:
        >>> import numpy as np
        >>> print(np.round(sqrtm(np.array([[4.0, 3.0], [0.0, 1.0]])), 6))
        [[2. 1.]
         [0. 1.]]
    """
    a = matrices(A, "sqrtm", square=True)
    root = matrix_root(a)
    known = None if dtypes.is_complex(type_of(a).dtype) else value_of(a)
    if known is None:
        return root
    values = np.linalg.eigvals(known)
    return root if np.any((values.real < 0) & (values.imag == 0)) else e.real(root)


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of square matrices, by their eigenvalues.

    Args:
        A: ``(*, n, n)``, diagonalizable.
        func: an elementwise analytic function, for complex arrays too.
        disp: ignored.

    Returns:
        ``(*, n, n)``: real if ``A`` and, by its concrete values, the result is real; else complex.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats; for a ``func`` that is not a function, or
            does not return an array.
        LinAlgError: for matrices that are not square, and for fewer than two axes.
        ValueError: for a ``func`` that returns an array of another shape.

    Example:
        >>> import numpy as np
        >>> print(np.round(funm(np.array([[1.0, 3.0], [0.0, 2.0]]), lambda x: x * x), 5))
        [[1. 9.]
         [0. 4.]]
    """
    a = matrices(A, "funm", square=True)
    validate.function("funm", func, "func")
    values, vectors = linalg.eig(a)
    found = asoperand(func(values), "funm: the result of func")
    if type_of(found).shape != type_of(values).shape:
        raise ValueError(f"funm: func must keep the shape {type_of(values).shape}, got {type_of(found)}")
    whole = p.flipped(linalg.solve(p.flipped(vectors), p.flipped(p.scaled_columns(vectors, found))))
    if dtypes.is_complex(type_of(a).dtype):
        return whole
    return e.real(whole) if _known_real(values, (found, func(e.conj(values)))) else whole


def _exponentials(A: Any, name: str, turn: complex) -> tuple[Any, Any, bool]:
    """The exponentials of ``turn * A`` and of its negative, and whether ``A`` is real."""
    a = matrices(A, name, square=True)
    whole = e.multiply(a, turn)
    return matrix_exponential(whole), matrix_exponential(e.negative(whole)), not dtypes.is_complex(type_of(a).dtype)


def _of_matrices(name: str, words: str, compute: Callable[[Any], Any], value: str) -> Callable[[Any], Any]:
    """Declares a function of square matrices; ``value`` is its value at the 1 x 1 identity."""

    def function(A: Any) -> Any:
        return compute(A)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {words} of square matrices.

    Args:
        A: ``(*, n, n)``, of any dtype but 16-bit floats; integers count as float32.

    Returns:
        ``(*, n, n)``, of the floating dtype of ``A``; complex where ``A`` is.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for less than two axes.

    Example:
        >>> import numpy as np
        >>> print(np.round({name}(np.eye(1)), 4))
        [[{value}]]
    """
    return composite(function)


def _cosine(A: Any) -> Any:
    ahead, back, real = _exponentials(A, "cosm", 1j)
    return e.real(ahead) if real else e.multiply(e.add(ahead, back), 0.5)


def _sine(A: Any) -> Any:
    ahead, back, real = _exponentials(A, "sinm", 1j)
    return e.imag(ahead) if real else e.multiply(e.subtract(ahead, back), -0.5j)


def _hyperbolic(name: str, combined: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda A: e.multiply(combined(*_exponentials(A, name, 1.0)[:2]), 0.5)


def _quotient(name: str, above: Callable[[Any], Any], below: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def compute(A: Any) -> Any:
        a = matrices(A, name, square=True)
        return linalg.solve(below(a), above(a))

    return compute


cosm = _of_matrices("cosm", "cosine", _cosine, "0.5403")
sinm = _of_matrices("sinm", "sine", _sine, "0.8415")
tanm = _of_matrices("tanm", "tangent", _quotient("tanm", sinm, cosm), "1.5574")
coshm = _of_matrices("coshm", "hyperbolic cosine", _hyperbolic("coshm", e.add), "1.5431")
sinhm = _of_matrices("sinhm", "hyperbolic sine", _hyperbolic("sinhm", e.subtract), "1.1752")
tanhm = _of_matrices("tanhm", "hyperbolic tangent", _quotient("tanhm", sinhm, coshm), "0.7616")


def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """The exponentials of square matrices, and their directional derivatives.

    Args:
        A, E: ``(*, n, n)``, the matrix and the direction, of any dtype but 16-bit floats; integers count as
            float32; leading axes broadcast.
        method, check_finite: ignored.
        compute_expm: False returns only the derivative.

    Returns:
        The exponentials and the derivatives, ``(*, n, n)`` each, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats; for matrices and directions of different
            sizes.
        LinAlgError: for matrices that are not square, and for fewer than two axes.

    Example:
        >>> import numpy as np
        >>> whole, moved = expm_frechet(np.zeros((1, 1)), np.ones((1, 1)))
        >>> print(whole, moved)
        [[1.]] [[1.]]
    """
    found = promoted(matrices(A, "expm_frechet", square=True), matrices(E, "expm_frechet", square=True))
    a, direction = together("expm_frechet", *found)
    tangent = exponential_tangent(a, direction)
    return (matrix_exponential(a), tangent) if compute_expm else tangent
