"""Functions of sizes and devices of tensors; ``combinations`` and ``logspace``."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._core.operators.composite import OPTIONS, composite
from compat._core.tensor.registry import function, names_of, not_overridable, publish
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.types.device import place
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import index_number, int64
from compat._core.types.errors import size_text, wrong_combination
from compat._core.types.size import Size
from compat._operators.arguments import tensor_argument
from compat._operators.create.factories import from_table, into_flat, with_grad
from compat._operators.create.ranges import endpoints_dtype


@function("torch.get_device")
def get_device(input: Tensor) -> int:
    """The index of a tensor's device: -1 for the CPU."""
    return tensor_argument("get_device", "input", 1, input).get_device()


@composite("is_signed(Tensor self) -> bool", names="torch.is_signed")
def is_signed(input: Tensor) -> bool:
    """Whether the dtype of a tensor is signed."""
    return tensor_argument("is_signed", "input", 1, input).is_signed()


@composite("is_same_size(Tensor self, Tensor other) -> bool", names="torch.is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size.

    Example:
        >>> torch.is_same_size(torch.ones(2), torch.ones(2, 1))
        False
    """
    return (
        tensor_argument("is_same_size", "input", 1, input).shape
        == tensor_argument("is_same_size", "other", 2, other).shape
    )


@composite("_shape_as_tensor(Tensor self) -> Tensor", names="torch._shape_as_tensor")
def shape_as_tensor(self: Tensor) -> Tensor:
    """The size of a tensor, as a tensor."""
    made: Tensor = names_of("torch")["tensor"](list(self.shape), dtype=int64)
    return made


@function("torch.broadcast_shapes")
@not_overridable
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to.

    Args:
        shapes: each a sequence of integers, or an integer for one dimension.

    Raises:
        RuntimeError: if they do not broadcast.
        ValueError: for a negative size.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    result: list[int] = []
    for i, shape in enumerate(shapes):
        size = (shape,) if isinstance(shape, int) else shape
        if not isinstance(size, (tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
        result = [1] * (len(size) - len(result)) + result
        for dim in range(-1, -1 - len(size), -1):
            n = size[dim]
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if n == 1 or n == result[dim]:
                continue
            if result[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {dim}! Mismatching argument at index "
                    f"{i} had {tuple(size)}; but expected shape should be broadcastable to {size_text(result)}"
                )
            result[dim] = n
    return Size(result)


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", names="torch.combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of ``r`` elements of a vector, one per row, in the order of the vector.

    Args:
        with_replacement: whether an element may be chosen repeatedly.

    Raises:
        RuntimeError: if ``input`` is not a vector, or ``r`` is negative.

    Example:
        >>> torch.combinations(torch.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    if tensor_argument("combinations", "input", 1, input).dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {size_text(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    # An index tuple is a combination if its indices are increasing, or nondecreasing with replacement.
    n, in_order = input.numel(), np.less_equal if with_replacement else np.less
    indices = np.indices((n,) * r)
    is_combination = from_array(np.all(in_order(indices[:-1], indices[1:]), axis=0))
    torch = names_of("torch")
    grids = torch["meshgrid"](*[input] * r, indexing="ij")
    return torch["stack"]([torch["masked_select"](grid, is_combination) for grid in grids], 1)


@composite(
    f"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
    f"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
    f"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
    names="torch.logspace",
)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` numbers from ``base ** start`` to ``base ** end`` whose logarithms are evenly spaced.

    Raises:
        RuntimeError: for a negative number of steps, or an end that is not 0-d.

    Example:
        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    if not hasattr(steps, "__index__"):
        raise wrong_combination("logspace", (start, end, steps))
    where = place(device)
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.dim():
            raise RuntimeError(
                f"logspace only supports 0-dimensional start and end tensors, but got {name} with {value.dim()} "
                "dimension(s)."
            )
    first = start.item() if isinstance(start, Tensor) else start
    last = end.item() if isinstance(end, Tensor) else end
    numbers = bool | int | float | complex | np.number
    if not (isinstance(first, numbers) and isinstance(last, numbers) and isinstance(base, (int, float, np.number))):
        raise wrong_combination("logspace", (start, end, steps))
    steps = index_number(steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype = endpoints_dtype("logspace", first, last, dtype, out, device, layout)
    key = ("logspace", str(base), str(first), str(last), steps)
    made = from_table(key, (steps,), lambda: _powers(base, first, last, steps, dtype), dtype, where)
    return into_flat(out, with_grad(made, requires_grad))


def _powers(base: float, first: Any, last: Any, steps: int, dtype: Dtype) -> np.ndarray:
    """The values of ``logspace``; exponents are computed from both ends towards the middle, so that both are exact."""
    work: Any = np.complex128 if dtype.is_complex else np.float64
    a, b = np.asarray(first, work)[()], np.asarray(last, work)[()]
    step = (b - a) / max(steps - 1, 1)
    index = np.arange(steps)
    exponents = np.where((index < steps // 2) | (steps == 1), a + step * index, b - step * (steps - 1 - index))
    with np.errstate(all="ignore"):
        return np.power(np.asarray(base, work), exponents).astype(dtype.numpy)


publish(names_of("Tensor")["nan_to_num_"], "torch.nan_to_num_")
