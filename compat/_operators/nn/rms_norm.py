"""``rms_norm``: root mean square normalization."""

from __future__ import annotations

from collections.abc import Sequence

from compat._core.operators.composite import composite
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._operators.nn.normalization import check_shape
from compat._operators.pointwise.scalars import add_number


@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    names="torch.rms_norm",
)
@function("F.rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input divided by the root of the mean of its squares along the last dimensions, times ``weight``.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: added to the mean; by default the dtype's ``eps``.

    Raises:
        RuntimeError: for sizes that do not match.

    Example:
        >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 3.0]]), (2,))
        tensor([[1., 1.]])
    """
    shape = tuple(normalized_shape)
    check_shape(input, shape, "*", weight=weight)
    half = input.dtype in (dtype.float16, dtype.bfloat16)
    x = input.to(dtype.float32) if half else input
    mean = x.pow(2).mean([input.dim() - 1 - i for i in range(len(shape))], True)
    found = x * add_number.function(mean, dtype.finfo(x.dtype).eps if eps is None else eps).rsqrt()
    found = found if weight is None else found * weight
    return found.to(input.dtype) if half else found
