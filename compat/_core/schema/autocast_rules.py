"""In which dtype autocast computes operators on a CPU, by their names in PyTorch's schemas.

Source: PyTorch's documentation of ``torch.amp``, "CPU Op-Specific Behavior".
"""

from __future__ import annotations

from compat._core.tensor.overridable_names import of_function

_LOWER = """
    mm matmul bmm addmm addbmm baddbmm inner tensordot chain_matmul linalg_multi_dot linalg_vecdot linalg_matmul linear
    prelu scaled_dot_product_attention _native_multi_head_attention conv_tbc
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    mkldnn_rnn_layer rnn_layer
"""
_FLOAT32 = """
    avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d
    fractional_max_pool3d grid_sample polar prod quantile nanquantile stft cdist trace view_as_complex
    binary_cross_entropy binary_cross_entropy_with_logits cross_entropy ctc_loss kl_div cosine_embedding_loss
    hinge_embedding_loss huber_loss l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse geqrf qr svd triangular_solve
    fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_irfft fft_irfft2 fft_irfftn
    fft_hfft fft_hfft2 fft_hfftn fft_ihfft fft_ihfft2 fft_ihfftn
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
"""
_WIDEST = "cat concat concatenate stack index_copy"
#: By operator: in the ``"lower"`` precision, in ``"float32"``, in the ``"widest"`` dtype of its tensors.
RULES = {
    name: rule
    for rule, names in (("lower", _LOWER), ("float32", _FLOAT32), ("widest", _WIDEST))
    for name in names.split()
}


def rule_of(address: str) -> str | None:
    """The rule of a public function, by its address, ``"torch.mm"``; None for no cast.

    Example:
        >>> rule_of("Tensor.mm"), rule_of("linalg.qr"), rule_of("torch.add")
        ('lower', 'float32', None)
    """
    return RULES.get(of_function(address))


__all__ = ["RULES", "rule_of"]
