"""Differences of neighbouring elements, integrals by the trapezoidal rule, covariances."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn, wrap_dim, wrong_combination
from compat._operators.pointwise.scalars import div_number, mul_number
from compat._operators.view.slicing import narrow, select, slice_view


def _check_diff(input: Tensor, n: int, dim: int, others: list[Tensor]) -> None:
    if input.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    along = wrap_dim(dim, input.dim())
    for t in others:
        if t.dim() != input.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for d in range(input.dim()):
            if d != along and t.shape[d] != input.shape[d]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {input.shape[d]}, but got tensor.size({d}) = "
                    f"{t.shape[d]}"
                )


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out=True, last="sub",
)  # fmt: skip
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The differences of neighbouring elements along a dimension.

    Args:
        n: the number of times to take differences.
        dim: the dimension.
        prepend, append: tensors that are concatenated with the input before and after it.

    Raises:
        RuntimeError: for a 0-d tensor, and sizes that do not match.

    Example:
        >>> torch.diff(torch.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    others = [t for t in (prepend, append) if t is not None]
    _check_diff(input, n, dim, others)
    if others:
        parts = [t for t in (prepend, input, append) if t is not None]
        input = names_of("torch")["cat"](parts, dim)
    if n == 0:
        return names_of("torch")["zeros_like"](input).copy_(input)
    along = wrap_dim(dim, input.dim())
    for _ in range(min(n, input.shape[along])):
        count = max(input.shape[along] - 1, 0)
        after, before = narrow(input, dim, 1 if count else 0, count), narrow(input, dim, 0, count)
        input = after.logical_xor(before) if input.dtype is dtypes.bool_ else after - before
    return input


# ---------------------------------------------------------------- trapezoids


def _widths(y: Tensor, x: Tensor, dim: int) -> Tensor:
    """The distances of neighbouring positions, in a shape that broadcasts to that of neighbouring values."""
    if x.dim() == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        x = x.view([-1 if d == dim else 1 for d in range(y.dim())])
    elif x.dim() < y.dim():
        x = x.view([1] * (y.dim() - x.dim()) + list(x.shape))
    return slice_view(x, dim, 1, None) - slice_view(x, dim, 0, -1)


def _scaled(t: Tensor, by: float) -> Tensor:
    return mul_number.function(t, by) if t.dtype.category >= dtypes.FLOATING else t * by


def _divided(t: Tensor, by: float) -> Tensor:
    return div_number.function(t, by) if t.dtype.category >= dtypes.FLOATING else t.mul(1.0 / by)


def _pair_sums(y: Tensor, dim: int) -> Tensor:
    return slice_view(y, dim, 0, -1) + slice_view(y, dim, 1, None)


_TRAPEZOID = ("Tensor y, Tensor x, *, int dim = -1", "Tensor y, *, Number dx = 1, int dim = -1")


def _check_kinds(name: str, y: Any, x: Any, dx: Any, dim: Any) -> None:
    """Checks the types of arguments, and that ``x`` and ``dx`` are not both given.

    Raises:
        TypeError: with the signatures of the function.
    """
    number = dx is None or isinstance(dx, (bool, int, float, complex))
    if (x is None or (isinstance(x, Tensor) and dx is None)) and number and hasattr(dim, "__index__"):
        return
    named = {"dx": dx, "dim": None if dim == -1 else dim}
    given = {k: v for k, v in named.items() if v is not None}
    got = wrong_combination(name, [y] if x is None else [y, x], given)
    either = "".join(f" * ({s})\n" for s in _TRAPEZOID)
    raise TypeError(f"{got}, but expected one of:\n{either}")


def _check_trapezoid(name: str, y: Tensor, dx: Any, dim: int) -> int:
    """The dimension of the integral, as a non-negative number.

    Raises:
        IndexError: if it is out of range.
        RuntimeError: for a distance that is not a real number.
    """
    if not y.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return wrap_dim(dim, y.dim())


@composite(
    "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    names="torch.trapezoid", errors="before",
)  # fmt: skip
@composite(
    "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
    "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    names="torch.trapz", errors="before",
)  # fmt: skip
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule.

    Args:
        y: the values.
        x: the positions of the values; None if they are equidistant.
        dx: the distance of equidistant values; 1 by default.
        dim: the dimension.

    Raises:
        RuntimeError: for positions that do not match the values.

    Example:
        >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]))
        tensor(4.)
    """
    _check_kinds("trapezoid", y, x, dx, dim)
    along = _check_trapezoid("trapezoid", y, dx, dim)
    if not y.shape[along]:
        return names_of("torch")["zeros"]([n for d, n in enumerate(y.shape) if d != along], dtype=y.dtype)
    if x is not None:
        return _divided((_pair_sums(y, along) * _widths(y, x, along)).sum(along), 2.0)
    ends = _scaled(select(y, dim, 0) + select(y, dim, -1), 0.5)
    return _scaled(y.sum(dim) - ends, 1.0 if dx is None else dx)


@composite(
    "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    names="torch.cumulative_trapezoid", errors="before",
)  # fmt: skip
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals from the first position to each of the others; arguments as for ``trapezoid``.

    Example:
        >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
        tensor([1.5000, 4.0000])
    """
    _check_kinds("cumulative_trapezoid", y, x, dx, dim)
    along = _check_trapezoid("cumulative_trapezoid", y, dx, dim)
    if x is not None:
        return _divided((_pair_sums(y, along) * _widths(y, x, along)).cumsum(along), 2.0)
    return _scaled(_pair_sums(y, dim), (1.0 if dx is None else dx) / 2.0).cumsum(dim)


# ---------------------------------------------------------------- covariance


def _check_weights(which: str, weights: Tensor | None, count: int) -> None:
    if weights is None:
        return
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {which} to have one or fewer dimensions but got {which} with {weights.dim()} dimensions"
        )
    category = dtypes.INTEGER if which == "fweights" else dtypes.FLOATING
    if weights.dtype.category != category:
        kind = "integral" if which == "fweights" else "floating point"
        raise RuntimeError(
            f"cov(): expected {which} to have {kind} dtype but got {which} with {weights.dtype.scalar_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {which} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if count and (array_of(weights) < 0).any():
        raise RuntimeError(f"cov(): {which} cannot be negative")


@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of variables: the rows of the input, whose columns are observations.

    Args:
        input: a matrix, or a vector for one variable.
        correction: a number that is subtracted from the number of observations, which gives the divisor.
        fweights: the frequency of each observation, integers.
        aweights: the relative weight of each observation.

    Raises:
        RuntimeError: for more dimensions, and weights that do not match.

    Example:
        >>> torch.cov(torch.tensor([[0.0, 2.0], [1.0, 5.0]]))
        tensor([[2., 4.],
                [4., 8.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.view(1, -1) if input.dim() < 2 else input
    count = rows.shape[1]
    _check_weights("fweights", fweights, count)
    _check_weights("aweights", aweights, count)
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    total = names_of("torch")["tensor"](count) if weights is None else weights.sum()
    if weights is not None and not total.item():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (rows if weights is None else rows * weights).sum(1) / total
    freedom = total if weights is not None and not correction else total - correction
    if weights is not None and aweights is not None and correction:
        freedom = total - _scaled((weights * aweights).sum(), correction) / total
    if freedom.item() <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        freedom = freedom.detach() * 0
    centred = rows - mean.unsqueeze(1)
    weighted = (centred if weights is None else centred * weights).t()
    product = centred.mm(weighted.conj() if input.dtype.is_complex else weighted)
    return (product / freedom).squeeze()


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables; arguments as for ``cov``.

    Example:
        >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [1.0, 3.0, 5.0]]))
        tensor([[1., 1.],
                [1., 1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    found = cov(input)
    if found.dim() == 0:
        return found / found
    variance = found.diagonal()
    deviation = (variance.real if variance.is_complex() else variance).sqrt()
    found = found / deviation.view(-1, 1) / deviation.view(1, -1)
    if found.is_complex():
        return names_of("torch")["complex"](found.real.clip(-1, 1), found.imag.clip(-1, 1))
    return found.clip(-1, 1)
