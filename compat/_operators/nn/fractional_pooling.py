"""Fractional max pooling: windows of pseudorandom positions.

Source: B. Graham, "Fractional max-pooling", 2014.
"""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.operators.declaration import Gradients
from compat._core.operators.op import Op, aten
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import size_text
from compat._operators.nn.adaptive import window_maxima
from compat._operators.nn.pooling import max_pool_backward
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.indexing import take_along
from funcgrad.primitives.shape import full, reshape

Dims = tuple[int, ...]

_DIMENSIONS = {2: ("height", "width"), 3: ("time", "height", "width")}


def _check_samples(n: int, input: Tensor, samples: Tensor) -> None:
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    if samples.shape[0] < (input.shape[0] if input.dim() == n + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != input.shape[-n - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}.")


def _check(n: int) -> Any:
    name = "fractional_max_pool2d" if n == 2 else "fractional_max_pool3d_out"
    count = "Ints" if n == 2 else "three Ints"

    def check(input: Tensor, kernel_size: Dims, output_size: Dims, random_samples: Tensor) -> None:
        for what, given in (("kernel_size", kernel_size), ("output_size", output_size)):
            if len(given) != n:
                raise RuntimeError(f"fractional_max_pool{n}d: {what} must either be a single Int or tuple of {count}")
        size = tuple(input.shape)
        if len(size) not in (n + 1, n + 2):
            raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {size_text(size)}")
        for d in range(len(size) - n - 1, len(size)):
            if not size[d]:
                raise RuntimeError(
                    f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got"
                    f"{size_text(size)} with dimension {d} being empty."
                )
        _check_samples(n, input, random_samples)
        for dim, n_in, n_out, kernel in zip(_DIMENSIONS[n], size[-n:], output_size, kernel_size):
            if n_out + kernel - 1 > n_in:
                raise RuntimeError(f"{name}(): pool {dim} {kernel} too large relative to input {dim} {n_in}")

    return check


def _starts(sample: Any, size: int, count: int, kernel: int) -> Any:
    """The starts of the windows of each plane: ``(planes, count)``, from ``(planes,)`` random numbers."""
    planes, dtype = type_of(sample).size, type_of(sample).dtype
    last = full(fdtypes.int64.type(size - kernel), (planes, min(count, 1)))
    if count <= 1:
        return last
    step = np.divide(np.array(size - kernel, dtype), np.array(count - 1, dtype))
    sample = reshape(sample, shape=(planes, 1))
    truncated = lambda x: np.astype(x, fdtypes.int64)
    steps = np.add(np.arange(count - 1, dtype=dtype), sample)
    inner = np.subtract(truncated(np.multiply(steps, step)), truncated(np.multiply(sample, step)))
    return np.concatenate([inner, last], axis=1)


def _window_indices(samples: Any, spatial: Dims, kernel: Dims, counts: Dims) -> Any:
    """The flat indices of the elements of all windows: ``(planes, *counts, k)``."""
    n = len(spatial)
    flat: Any = 0
    for d in range(n):
        # In two dimensions PyTorch uses the samples in reverse order.
        starts = _starts(samples[:, 1 - d if n == 2 else d], spatial[d], counts[d], kernel[d])
        indices = np.add(np.expand_dims(starts, 2), np.arange(kernel[d]))
        at = [type_of(indices).shape[0], *(1,) * (2 * n)]
        at[1 + d], at[1 + n + d] = counts[d], kernel[d]
        flat = np.add(flat, np.multiply(reshape(indices, shape=tuple(at)), prod(spatial[d + 1 :])))
    return reshape(flat, shape=(type_of(flat).shape[0], *counts, prod(kernel)))


def _pool(n: int) -> Op:
    def body(input, kernel_size, output_size, random_samples):
        shape = type_of(input).shape
        lead, spatial, planes = shape[:-n], shape[-n:], prod(shape[:-n])
        if not planes * prod(output_size):
            size = (*lead, *output_size)
            return full(type_of(input).dtype.type(0), size), full(fdtypes.int64.type(0), size)
        samples = reshape(random_samples, shape=(type_of(random_samples).size // n, n))[:planes]
        indices = _window_indices(samples, spatial, kernel_size, output_size)
        rows = reshape(indices, shape=(planes, prod(type_of(indices).shape[1:])))
        windows = take_along(reshape(input, shape=(planes, prod(spatial))), rows, axis=1)
        found = window_maxima(reshape(windows, shape=type_of(indices).shape), indices)
        return tuple(reshape(x, shape=(*lead, *output_size)) for x in found)

    body.__doc__ = f"The maxima of randomly spaced windows over the last {n} dimensions, and their flat indices."
    declared = aten(
        f"fractional_max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples)"
        " -> (Tensor, Tensor)",
        node=f"FractionalMaxPool{n}DBackward0", saves="kernel_size output_size result1! self!",
        names=f"_C._nn.fractional_max_pool{n}d", check=_check(n), out=False,
        gradients=Gradients(without="random_samples"),
    )(body)  # fmt: skip

    declared.backward(max_pool_backward(n))
    return declared


_POOL = {n: _pool(n) for n in (2, 3)}

# ---------------------------------------------------------------- public functions

_DOC = """The maxima of randomly spaced windows over the last {n} dimensions.

    Args:
        input: the pooled dimensions, preceded by channels and optionally a batch.
        kernel_size: the window size, a number or one per dimension.
        output_size: the size of the result in the pooled dimensions, a number or one each.
        output_ratio: the ratio of that size to the input size, if ``output_size`` is None.
        return_indices: whether to also return the flat indices of the maxima in the pooled dimensions.
        _random_samples: ``(N, C, {n})`` numbers in [0, 1) that determine the windows; random by default.

    Raises:
        ValueError: if neither a size nor a ratio is given.
        RuntimeError: if the parameters are invalid or do not match the input.

    Example:
        >>> torch.nn.functional.fractional_max_pool{n}d(torch.ones(1, 4, {size}), 2, output_ratio=0.5).shape
        torch.Size([1, 4, {out}])
    """


def _each(value: Any, n: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _publish(n: int) -> None:
    function, name = _POOL[n].function, f"fractional_max_pool{n}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        found = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return found if return_indices else found[0]

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The same pooling with ``return_indices=True``."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratios = _each(output_ratio, n)
            output_size = [int(input.size(d - n) * ratios[d]) for d in range(n)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = names_of("torch")["rand"](batch, input.size(-n - 1), n, dtype=input.dtype)
        return function(input, _each(kernel_size, n), _each(output_size, n), _random_samples)

    pool.__doc__ = _DOC.format(n=n, size=", ".join("8" * n), out=", ".join("4" * n))
    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    publish(pool, f"F.{name}")
    publish(with_indices, f"F.{name}_with_indices")


for _n in (2, 3):
    _publish(_n)
