"""Linear algebra: NumPy's ``numpy.linalg``, with derivatives, batches and ``jit``; also ``funcgrad.linalg``.

A matrix is the last two axes of an array; leading axes are batches. Factorizations take float32, float64 and their
complex counterparts; integers are converted to floats. Where NumPy raises ``LinAlgError`` because of values (a singular
matrix), these functions do so if the values are concrete; under ``jit`` and ``vmap`` the result is nonfinite instead.

``a`` and ``x`` are arrays of shapes ``(*, m, n)``, or ``(*, n, n)`` for functions of square matrices; ``x1`` and ``x2``
are arrays of vectors. Unless documented otherwise, functions behave like NumPy's of the same name.
"""

from numpy.linalg import LinAlgError as LinAlgError

from funcgrad.numpy.linalg.decompositions import (
    EighResult,
    EigResult,
    LUResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    qr,
    svd,
    svdvals,
)
from funcgrad.numpy.linalg.functions import expm, matrix_power, multi_dot
from funcgrad.numpy.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from funcgrad.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    trace,
    vecdot,
)
from funcgrad.numpy.linalg.systems import (
    SlogdetResult,
    det,
    inv,
    lstsq,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "EigResult", "EighResult", "LUResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond",
    "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "lstsq", "lu", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
