"""``torch.return_types``: the classes of named results.

Example:
    >>> isinstance(torch.ones(2, 2).max(dim=0), torch.return_types.max)
    True
"""

from __future__ import annotations

from compat._core.types.structseq import return_type

_OF_EXTREMES = "cummax cummin kthvalue max median min mode nanmedian sort topk"
_FIELDS = dict.fromkeys(_OF_EXTREMES.split(), "values indices") | {
    "aminmax": "min max",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "svd": "U S V",
    "triangular_solve": "solution cloned_coefficient",
}
# ``out=`` variants have their own classes.
_FIELDS |= {f"{name}_out": fields for name, fields in _FIELDS.items() if name != "histogramdd"}

#: All of these classes.
all_return_types = [return_type(name, tuple(_FIELDS[name].split())) for name in sorted(_FIELDS)]
globals().update({made.__name__: made for made in all_return_types})
