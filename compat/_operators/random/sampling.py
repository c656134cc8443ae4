"""Sampling with parameters given by tensors: ``bernoulli``, ``poisson``, ``binomial``, ``multinomial``, ``normal``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.memory.meta import on_meta
from compat._core.memory.strides import broadcast_size, contiguous_layout
from compat._core.operators.composite import OPTIONS, composite
from compat._core.operators.op_node import Underivable
from compat._core.operators.out import resize_out
from compat._core.random.generator import engine_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import vmap_checks
from compat._core.types.dtype import get_default_dtype, int64
from compat._core.types.errors import wrong_argument
from compat._operators import samplers
from compat._operators.create.factories import blank
from compat._operators.random.factories import Options, size_of
from compat._operators.random.inplace import drawing_kernel, number
from compat._operators.random.vmap_random import batched_tensor, check_same, parameter_values, random_tensor

_BERNOULLI = drawing_kernel("BernoulliBackward0", "input")
_POISSON = drawing_kernel("PoissonBackward0", "input")
_NORMAL_MEAN = drawing_kernel("NormalBackward1", "mean", saves="mean.sym_sizes")
_NORMAL_STD = drawing_kernel("NormalBackward2", "std", saves="std.sym_sizes")
_NORMAL = drawing_kernel("NormalBackward3", "mean", "std", saves="mean.sym_sizes std.sym_sizes")
#: Operators without a derivative in PyTorch.
_BERNOULLI_P = drawing_kernel(Underivable, "input", name="bernoulli")
_BINOMIAL = drawing_kernel(Underivable, "count", "prob", name="binomial")


def _into_out(out: Any, result: Tensor) -> Tensor:
    """The result, or ``out`` with the result written into it."""
    if out is None:
        return result
    resize_out(out, tuple(result.shape))
    return out.copy_(result)


@composite(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    without_out="p",
)
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """Zeros and ones: an element is one with the probability in ``input``.

    Args:
        p: one probability for all elements, instead of those in ``input``.

    Raises:
        RuntimeError: for probabilities outside ``[0, 1]``.
        NotImplementedError: for probabilities of an integer dtype.

    Example:
        >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    engine = engine_of("bernoulli", generator)
    if p is not None:
        probability = number("bernoulli", "p", 2, p)
        check_same(vmap_checks.drawing(), input)
        layout = contiguous_layout(input.shape, input.dtype, device=input.device)
        sample = random_tensor(lambda n, dtype: samplers.bernoulli(engine, n, dtype, probability), layout)
        return _into_out(out, _BERNOULLI_P.call([input, sample])[0])
    if on_meta(input):
        return _into_out(out, _BERNOULLI.call([input, blank(input.shape, input)])[0])
    (probabilities,), vmaps = parameter_values(input)
    values = samplers.bernoulli(engine, probabilities.shape, input.dtype.numpy, probabilities)
    return _into_out(out, _BERNOULLI.call([input, batched_tensor(values, vmaps, input.dtype)])[0])


@composite("poisson(Tensor self, Generator? generator=None) -> Tensor", names="torch.poisson")
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Poisson-distributed numbers with the rates in ``input``.

    Raises:
        RuntimeError: for a negative rate.
    """
    if on_meta(input):
        return _POISSON.call([input, blank(input.shape, input)])[0]
    (rates,), vmaps = parameter_values(input)
    values = samplers.poisson(engine_of("poisson", generator), rates)
    return _POISSON.call([input, batched_tensor(values, vmaps, input.dtype)])[0]


@composite("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", names="torch.binomial")
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """The numbers of successes in ``count`` trials of probability ``prob``; the two broadcast against each other."""
    size = broadcast_size(tuple(count.shape), tuple(prob.shape))
    if on_meta(count):
        return _BINOMIAL.call([count, prob, blank(size, count)])[0]
    (counts, probabilities), vmaps = parameter_values(count.expand(size), prob.expand(size))
    values = samplers.binomial(engine_of("binomial", generator), counts, probabilities)
    return _BINOMIAL.call([count, prob, batched_tensor(values, vmaps, count.dtype)])[0]


@composite(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
)
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Random indices, with the weights in each row of ``input``; without ``replacement`` all different.

    Args:
        input: weights, of one or two dimensions; they need not add up to 1.
        num_samples: the number of indices to draw for each row.

    Returns:
        An int64 tensor of shape (num_samples,) or (rows, num_samples).

    Raises:
        RuntimeError: for weights that are negative, not finite, all zero or not floating-point, and for fewer weights
            than ``num_samples`` without ``replacement``.

    Example:
        >>> torch.multinomial(torch.tensor([0.0, 10.0, 0.0]), 1)
        tensor([1])
    """
    if out is not None and out.dtype is not int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    samples = number("multinomial", "num_samples", 2, num_samples, "int")
    if not isinstance(replacement, (bool, np.bool_)):
        raise wrong_argument("multinomial", "replacement", 3, "bool", replacement)
    engine = engine_of("multinomial", generator)
    if on_meta(input):
        return _into_out(out, blank((*input.shape[:-1], int(samples)), input, int64))
    (weights,), vmaps = parameter_values(input)
    rows = weights.reshape(-1, weights.shape[-1]) if vmaps else weights
    values = samplers.multinomial(engine, rows, int(samples), bool(replacement))
    return _into_out(out, batched_tensor(values.reshape((*weights.shape[:-1], int(samples))), vmaps))


# ---------------------------------------------------------------- normal

_OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False"
)
_SIGNATURES = (
    " * (Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, "
    f"{_OPTIONS})\n"
)


@composite(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    f"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, {OPTIONS}) -> Tensor",
    names="torch.normal", errors="before", out="own",
)  # fmt: skip
def normal(mean: Any = None, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> Tensor:
    """Normally distributed numbers.

    Args:
        mean, std: the means and standard deviations: tensors that broadcast against each other, or numbers.
        size: the size of the result if both are numbers.

    Raises:
        RuntimeError: for a negative ``std``, or tensors that do not broadcast.
        TypeError: if neither a tensor nor a size is given.
    """
    engine = engine_of("normal", generator)
    if mean is None:
        raise TypeError('normal() missing 1 required positional arguments: "mean"')
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        out = options.pop("out", None)
        return _into_out(out, _normal_of(engine, mean, std))
    if size is None:
        got = f"{type(mean).__name__}, {type(std).__name__}"
        raise TypeError(
            f"normal() received an invalid combination of arguments - got ({got}), but expected one of:\n{_SIGNATURES}"
        )
    mean, std = number("normal", "mean", 1, mean), number("normal", "std", 2, std)
    draw: Callable[..., np.ndarray] = lambda n, dtype: samplers.normal(engine, n, dtype, mean, std)
    return Options("normal", **options).tensor(size_of("normal", (size,), 3), draw, get_default_dtype())


def _normal_of(engine: Any, mean: Any, std: Any) -> Tensor:
    operands = [t for t in (mean, std) if isinstance(t, Tensor)]
    size = broadcast_size(*[tuple(t.shape) for t in operands])
    dtype = operands[0].dtype
    kernel = _NORMAL if len(operands) == 2 else _NORMAL_MEAN if isinstance(mean, Tensor) else _NORMAL_STD
    if on_meta(operands[0]):
        return kernel.call([*operands, blank(size, operands[0])])[0]
    kind = np.dtype(dtype.numpy)
    if not isinstance(std, Tensor):
        (shift,), vmaps = parameter_values(mean)
        values = samplers.normal(engine, shift.shape, kind, 0.0, number("normal", "std", 2, std))
        return kernel.call([mean, batched_tensor((values + shift).astype(kind, copy=False), vmaps, dtype)])[0]
    (shift, scale), vmaps = parameter_values(mean, std)
    if scale.size and not (scale >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(mean, Tensor):
        shift = kind.type(number("normal", "mean", 1, mean))
    full_size = (*[m.size for m in vmaps], *size)
    values = (samplers.normal(engine, full_size, kind) * scale + shift).astype(kind, copy=False)
    return kernel.call([*operands, batched_tensor(values, vmaps, dtype)])[0]
