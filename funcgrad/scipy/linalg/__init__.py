"""Linear algebra with SciPy's names and arguments, batched: ``(*, n, n)``.

``overwrite_a``, ``overwrite_b`` and ``check_finite`` are accepted and ignored: arrays are immutable, and under ``jit``
there are no values to check.
"""

from funcgrad.numpy.linalg import LinAlgError as LinAlgError
from funcgrad.numpy.linalg import det, expm, inv, lstsq, norm, pinv, svdvals
from funcgrad.scipy.linalg.banded import solve_banded, solveh_banded
from funcgrad.scipy.linalg.equations import solve_sylvester, solve_toeplitz
from funcgrad.scipy.linalg.factors import cho_factor, cholesky, eigh, eigvalsh, lu, lu_factor, polar, qr, schur, svd
from funcgrad.scipy.linalg.functions import coshm, cosm, expm_frechet, funm, sinhm, sinm, sqrtm, tanhm, tanm
from funcgrad.scipy.linalg.patterns import block_diag, circulant, hankel, hilbert, toeplitz
from funcgrad.scipy.linalg.solving import cho_solve, lu_solve, solve, solve_triangular

__all__ = [
    "LinAlgError", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "coshm", "cosm", "det", "eigh",
    "eigvalsh", "expm", "expm_frechet", "funm", "hankel", "hilbert", "inv", "lstsq", "lu", "lu_factor", "lu_solve",
    "norm", "pinv", "polar", "qr", "schur", "sinhm", "sinm", "solve", "solve_banded", "solve_sylvester",
    "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]  # fmt: skip
