"""Scaled products of float8 matrices."""

from __future__ import annotations

from compat._core.operators.composite import composite
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import FLOAT8


@composite(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    names="torch._scaled_mm", errors="before", out=True,
)  # fmt: skip
def _scaled_mm(input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """``scale_a * input @ (scale_b * mat2) + bias`` of float8 matrices, computed in float32.

    Args:
        input: ``(n, k)``, of a float8 dtype.
        mat2: ``(k, m)``, of a float8 dtype.
        scale_a: float32, one number, or ``(n, 1)`` for row-wise scaling.
        scale_b: float32, one number, or ``(1, m)`` for column-wise scaling.
        bias: ``(m,)``.
        scale_result: ignored, as by PyTorch's CPU kernel.
        out_dtype: the dtype of the result, that of ``input`` by default.
        use_fast_accum: ignored; sums are float32.

    Raises:
        ValueError: for other dtypes, and invalid scales.
        RuntimeError: if sizes do not match.

    Example:
        >>> x = torch.tensor([[1.0, 2.0]]).to(torch.float8_e4m3fn)
        >>> torch._scaled_mm(x, x.t(), torch.tensor(2.0), torch.tensor(0.5), out_dtype=torch.float32)
        tensor([[5.]])
    """
    _check_matrices(input, mat2, bias)
    _check_scales(input, mat2, scale_a, scale_b)
    result = input.to(dtypes.float32) @ mat2.to(dtypes.float32)
    for scale in (scale_a, scale_b):
        result = result * (scale.reshape(()) if scale.numel() == 1 else scale)
    if bias is not None:
        result = result + bias.to(dtypes.float32)
    return result.to(input.dtype if out_dtype is None else out_dtype)


def _check_matrices(a: Tensor, b: Tensor, bias: Tensor | None) -> None:
    for name, t in (("mat1", a), ("mat2", b)):
        if t.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a.shape[1] != b.shape[0]:
        sizes = "x".join(map(str, a.shape)), "x".join(map(str, b.shape))
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({sizes[0]} and {sizes[1]})")
    if bias is not None and bias.numel() != b.shape[1]:
        raise RuntimeError(f"Bias must be size {b.shape[1]} but got {bias.numel()}")


def _check_scales(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor) -> None:
    rows, columns = a.shape[0], b.shape[1]
    are_float8 = a.dtype in FLOAT8 and b.dtype in FLOAT8 and scale_a.dtype is scale_b.dtype is dtypes.float32
    single = scale_a.numel() == 1 and scale_b.numel() == 1
    by_row = tuple(scale_a.shape) == (rows, 1) and tuple(scale_b.shape) == (1, columns)
    if are_float8 and (single or by_row):
        return

    def text(name: str, t: Tensor, scale: Tensor) -> str:
        end = name[-1]
        return (
            f"{name}.dtype()={t.dtype.scalar_name}, scale_{end}.dtype()={scale.dtype.scalar_name}, "
            f"scale_{end}.size()={list(scale.shape)}"
        )

    raise ValueError(
        "Invalid scaling configuration.\n"
        "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
        "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
        f"({rows}, 1) and scale_b should be (1, {columns}), and both should be contiguous.\n"
        f"Got {text('mat_a', a, scale_a)}, scale_a.stride()={list(scale_a.stride())}, {text('mat_b', b, scale_b)} and "
        f"scale_b.stride()={list(scale_b.stride())}"
    )
