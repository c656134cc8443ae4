"""``torch.gradient``: derivatives of sampled functions by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import wrap_dims
from compat._operators.pointwise.scalars import div_number, mul_number
from compat._operators.shape.cat_stack import cat
from compat._operators.view.slicing import slice_view


def _uniform_gradient(x: Tensor, dim: int, step: Any, order: int) -> Tensor:
    """The derivative along a dimension whose samples have the distance ``step``."""

    def at(start: int, end: int | None) -> Any:
        return slice_view(x, dim, start, end, 1)

    if order == 1:
        first, last = at(1, 2) - at(0, 1), at(-1, None) - at(-2, -1)
    else:
        first = mul_number(at(0, 1), -1.5) + mul_number(at(1, 2), 2) - mul_number(at(2, 3), 0.5)
        last = mul_number(at(-3, -2), 0.5) - mul_number(at(-2, -1), 2) + mul_number(at(-1, None), 1.5)
    inner = div_number(div_number(at(2, None) - at(0, -2), step), 2)
    return cat([div_number(first, step), inner, div_number(last, step)], dim)


def _nonuniform_gradient(x: Tensor, dim: int, positions: Tensor, order: int) -> Tensor:
    """The derivative along a dimension whose samples have given positions."""
    size = [-1 if d == dim else 1 for d in range(x.dim())]
    gaps = positions.diff()

    def at(start: int, end: int | None) -> Any:
        return slice_view(x, dim, start, end, 1)

    def weight(w: Tensor) -> Tensor:
        return w.reshape(size)

    before, after = gaps[:-1], gaps[1:]
    inner = (
        weight(-after / (before * (before + after))) * at(0, -2)
        + weight((after - before) / (before * after)) * at(1, -1)
        + weight(before / (after * (before + after))) * at(2, None)
    )
    if order == 1:
        first = (at(1, 2) - at(0, 1)) / gaps[0]
        last = (at(-1, None) - at(-2, -1)) / gaps[-1]
        return cat([first, inner, last], dim)
    a, b = gaps[0], gaps[1]
    first = -(2 * a + b) / (a * (a + b)) * at(0, 1) + (a + b) / (a * b) * at(1, 2) + -a / (b * (a + b)) * at(2, 3)
    a, b = gaps[-2], gaps[-1]
    last = b / (a * (a + b)) * at(-3, -2) + -(a + b) / (a * b) * at(-2, -1) + (a + 2 * b) / (b * (a + b)) * at(-1, None)
    return cat([first, inner, last], dim)


def _spacings(input: Tensor, spacing: Any, dims: Sequence[int], dim_given: bool) -> list[Any]:
    """The spacing along each dimension: a number, or a vector of positions."""
    if spacing is None:
        spacing = 1.0
    if isinstance(spacing, Tensor) and not spacing.dim():
        spacing = spacing.item()
    if isinstance(spacing, (bool, int, float, complex)):
        return [spacing] * len(dims)
    given = list(spacing)
    if len(given) != len(dims):
        if dim_given:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
                f"have the same length, but got a spacing argument of length {len(given)} and a dim argument of "
                f"length {len(dims)}."
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
            f"'self.dim() = {input.dim()}', since dim argument was not given, but got a list of length {len(given)}"
        )
    return given


def _divisible(input: Tensor, step: Any) -> Tensor:
    """The samples in the dtype of the quotient of a sample and a step."""
    dtype = input.dtype if input.dtype.category >= dtypes.FLOATING else dtypes.get_default_dtype()
    return input.to(dtype.to_complex() if isinstance(step, complex) else dtype)


@composite(
    "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
    "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
    "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    names="torch.gradient",
)
def gradient(input: Tensor, *, spacing: Any = 1.0, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivatives of a sampled function along dimensions, by central differences, and one-sided ones at the ends.

    Args:
        input: the samples.
        spacing: the distance of the samples: a number, or a number or a vector of positions for each dimension.
        dim: the dimensions; by default all.
        edge_order: the order of the differences at the ends, 1 or 2.

    Returns:
        A tensor of the size of ``input`` for each dimension.

    Raises:
        RuntimeError: for too few samples, and spacings that do not match.

    Example:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    dims = range(input.dim()) if dim is None else wrap_dims((dim,) if isinstance(dim, int) else dim, input.dim())
    spacings = _spacings(input, spacing, list(dims), dim is not None)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    found = []
    for d, step in zip(dims, spacings):
        if isinstance(step, Tensor) and step.dim():
            if step.shape[0] != input.shape[d]:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have the same length as the corresponding "
                    f"dimension of input, got {step.shape[0]} and {input.shape[d]}"
                )
            found.append(_nonuniform_gradient(input, d, step, edge_order))
        else:
            found.append(_uniform_gradient(_divisible(input, step), d, step, edge_order))
    return tuple(found)
