"""Which functions autocast computes in which dtype on a CPU.

Source: PyTorch's documentation of ``torch.amp``, "CPU Op-Specific Behavior".
"""

from __future__ import annotations

import functools
from typing import Any

from compat._core.tensor import registry
from compat._core.tensor.tensor import Tensor

#: In the lower precision.
LOWER = frozenset(
    ["torch.mm", "torch.matmul", "torch.bmm", "torch.addmm", "torch.addbmm", "torch.baddbmm", "torch.einsum"]
    + ["torch.tensordot", "torch.chain_matmul", "linalg.multi_dot", "linalg.vecdot", "linalg.matmul", "torch.prelu"]
    + ["F.linear", "F.prelu", "F.scaled_dot_product_attention", "F.multi_head_attention_forward", "torch.lstm"]
    + ["torch.rnn_tanh", "torch.rnn_relu", "torch.rnn_tanh_cell", "torch.rnn_relu_cell", "torch.conv_tbc"]
    + ["Tensor.__rmatmul__", "torch.inner"]
    + [f"{place}.conv{kind}{n}d" for place in ("F", "torch") for kind in ("", "_transpose") for n in (1, 2, 3)]
)

#: In float32.
FLOAT32 = frozenset(
    ["F.avg_pool3d", "F.adaptive_avg_pool3d", "F.adaptive_max_pool3d", "F.max_unpool2d", "F.max_unpool3d"]
    + ["F.fractional_max_pool2d", "F.fractional_max_pool3d"]
    + ["F.binary_cross_entropy", "F.binary_cross_entropy_with_logits", "F.grid_sample", "torch.polar", "torch.prod"]
    + ["torch.quantile", "torch.nanquantile", "torch.stft", "torch.cdist", "torch.trace", "torch.view_as_complex"]
    + ["torch.cholesky", "torch.cholesky_inverse", "torch.cholesky_solve", "torch.inverse", "torch.lu_solve"]
    + ["torch.orgqr", "torch.ormqr", "torch.pinverse", "torch.geqrf", "torch.qr", "torch.svd"]
    + ["torch.triangular_solve"]
    + [f"F.{loss}_loss" for loss in ("mse", "cosine_embedding", "nll", "hinge_embedding", "poisson_nll", "smooth_l1")]
    + [f"F.{loss}_loss" for loss in ("l1", "huber", "margin_ranking", "soft_margin", "triplet_margin", "multi_margin")]
    + ["F.multilabel_margin_loss", "F.ctc_loss", "F.kl_div", "F.cross_entropy"]
    + [f"fft.{inverse}{kind}fft{n}" for inverse in ("", "i") for kind in ("", "r", "h") for n in ("", "2", "n")]
    + [f"linalg.{name}" for name in ("cond", "matrix_rank", "solve", "cholesky", "svdvals", "eigvals", "eigvalsh")]
    + [f"linalg.{name}" for name in ("inv", "householder_product", "tensorinv", "tensorsolve", "qr", "cholesky_ex")]
    + [f"linalg.{name}" for name in ("svd", "eig", "eigh", "lstsq", "inv_ex")]
)

#: In the widest dtype of their tensors.
WIDEST = frozenset(["torch.cat", "torch.concat", "torch.concatenate", "torch.stack", "torch.index_copy"])


def _named(name: str) -> Any:
    """What is public under an address, if anything."""
    place, _, last = name.rpartition(".")
    if place == "Tensor":
        getattr(Tensor, last, None)  # which imports its module, if it is not yet
    return Tensor.__dict__.get(last) if place == "Tensor" else registry.names_of(place).get(last)


@functools.cache
def rules() -> dict[Any, str]:
    """The functions, and the methods of the same names, with what becomes of their arguments."""
    found: dict[Any, str] = {}
    for rule, names in (("lower", LOWER), ("float32", FLOAT32), ("widest", WIDEST)):
        for name in names:
            last = name.rpartition(".")[2]
            for address in (name, f"Tensor.{last}") if name.startswith("torch.") else (name,):
                function = _named(address)
                if function is not None:
                    found[function] = rule
    return found
