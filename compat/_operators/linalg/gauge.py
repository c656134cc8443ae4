"""Phase invariance: complex singular vectors and eigenvectors are unique up to a phase; backward raises an error for
gradients that depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad

SVD = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this phase term, making it ill-defined."
)
EIG = (
    "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this quantity, so it is ill-defined."
)
EIGH = EIG.replace("eig_", "eigh_")


class Vectors(NamedTuple):
    """Vectors among the results of an operation.

    Attributes:
        result: the index of the result.
        values: the vectors.
        rows: whether the vectors are rows.
    """

    result: int
    values: Tensor
    rows: bool = False


def check_phases(message: str, *vectors: Vectors) -> None:
    """Makes backward raise a RuntimeError if gradients depend on the phases of complex vectors.

    Under transforms, without concrete values, nothing is checked.
    """
    first = vectors[0].values
    node = first.grad_fn
    if node is None or not first.is_complex() or first._layout_.base.traced:
        return
    count = min(n for v in vectors for n in v.values.shape[-2:])  # of square matrices, only those with singular values
    detached = [v._replace(values=v.values.detach()) for v in vectors]

    def check(grads: Sequence[Any]) -> None:
        with no_grad():
            derivatives = [
                _phase_derivative(v, grads[v.result], count) for v in detached if grads[v.result] is not None
            ]
            if not derivatives or any(d._layout_.base.traced for d in derivatives):
                return
            opposite = derivatives[1] * -1 if len(derivatives) > 1 else derivatives[0] * 0
            # PyTorch's tolerances, for the rounding errors of single precision.
            if not names_of("torch")["allclose"](derivatives[0], opposite, rtol=1e-2, atol=1e-2):
                raise RuntimeError(message)

    node.register_prehook(check)


def _phase_derivative(vectors: Vectors, grad: Tensor, count: int) -> Tensor:
    """The derivative with respect to the phase of each of the first ``count`` vectors."""
    x = vectors.values
    inner = (x * grad.conj()).sum(-1) if vectors.rows else (x.conj() * grad).sum(-2)
    return inner[..., :count].imag
