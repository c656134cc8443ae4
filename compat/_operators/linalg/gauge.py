"""Phase invariance: complex vectors are determined up to a phase, so backward rejects gradients that depend on it."""

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
        number: the index of the result.
        values: the vectors.
        rows: whether the vectors are rows.
    """

    number: int
    values: Tensor
    rows: bool = False


def refuse_phases(text: str, *found: Vectors) -> None:
    """Makes the node of an operation check that gradients do not depend on the phases of its complex vectors.

    Otherwise its backward raises a RuntimeError with ``text``. Without concrete values nothing is checked.
    """
    first = found[0].values
    node = first.grad_fn
    if node is None or not first.is_complex() or first._layout_.base.traced:
        return
    count = min(n for v in found for n in v.values.shape[-2:])  # of full matrices, only those with singular values
    kept = [v._replace(values=v.values.detach()) for v in found]

    def look(grads: Sequence[Any]) -> None:
        with no_grad():
            twists = [_twist(v, grads[v.number], count) for v in kept if grads[v.number] is not None]
            if not twists or any(t._layout_.base.traced for t in twists):
                return
            other = twists[1] * -1 if len(twists) > 1 else twists[0] * 0
            # PyTorch's tolerances: single precision leaves that much of an invariant gradient.
            if not names_of("torch")["allclose"](twists[0], other, rtol=1e-2, atol=1e-2):
                raise RuntimeError(text)

    node.register_prehook(look)


def _twist(vectors: Vectors, grad: Tensor, count: int) -> Tensor:
    """How much a gradient depends on the phase of each of the first vectors."""
    x = vectors.values
    turned = (x * grad.conj()).sum(-1) if vectors.rows else (x.conj() * grad).sum(-2)
    return turned[..., :count].imag
