"""Operators that fill tensors with random numbers, which are drawn in the memory order of the tensor, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compat._core.autograd.rebase_history import check_recorded
from compat._core.memory.meta import on_meta
from compat._core.memory.strides import dense_layout, overlaps_itself, preserved_strides
from compat._core.operators.composite import composite
from compat._core.operators.inplace import check_memory, put
from compat._core.operators.kernel import Kernel
from compat._core.operators.op_node import make_node_class, metadata
from compat._core.random.generator import engine_of
from compat._core.tensor import capture_checks
from compat._core.tensor.tensor import Tensor, array_of, from_array, sync_written
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import index_number
from compat._core.types.errors import OVERLAPS_ITSELF, wrong_argument
from compat._operators import samplers
from compat._operators.random.vmap_random import (
    Draw,
    batched_tensor,
    check_fill,
    has_contiguous_elements,
    memory_order,
    parameter_values,
    random_tensor,
)
from funcgrad import runtime
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import zeros


def _zeros_for(count: int) -> Callable[..., list[Any]]:
    """A backward formula: zeros for the first ``count`` inputs, since random numbers do not depend on them."""

    def backward(inputs: Sequence[Any], results: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return [zeros(type_of(x).strong()) if i < count else None for i, x in enumerate(inputs)]

    return backward


def drawing_kernel(node: Any, *operands: str, saves: str = "", name: str = "") -> Kernel:
    """An operator that returns its last operand, ``values``; its node gives the other operands gradients of zeros.

    Args:
        node: the class of the nodes, or the name of a new class.
        operands: the names of the operands before ``values``.
        saves: the ``_saved_...`` attributes of a new class: metadata of operands, such as ``mean.sym_sizes``.
        name: the name of the operator; by default that of the new class, without ``Backward``.
    """

    def saved(entry: str) -> Any:
        operand, _, field = entry.partition(".")
        index = operands.index(operand)
        return lambda node: metadata(field, node.plan.kinds[index])

    if isinstance(node, str):
        name = node.partition("Backward")[0].lower()
        node = make_node_class(node, {entry.replace(".", "_"): saved(entry) for entry in saves.split()})
    return Kernel(
        name,
        lambda *arrays: [arrays[-1]],
        (*operands, "values"),
        node=node,
        with_edges=range(len(operands)),
        stated=_zeros_for(len(operands)),
    )


def fill(t: Tensor, draw: Draw, kernel: Kernel, *others: Tensor) -> Tensor:
    """Writes random numbers into a tensor, in its memory order; returns the tensor.

    Args:
        draw: the sampler.
        kernel: the ``drawing_kernel`` of the tensor and ``others``.

    Raises:
        RuntimeError: if the tensor cannot be written in place, or if ``draw`` raises.
    """
    if t._view_ is not None:
        sync_written(t)
    if t._storage_.born < mode.since:
        capture_checks.refuse(t, kernel.name, {})
    recorded = mode.grad and (t._rg_ or any(o._rg_ for o in others))
    if recorded:
        check_recorded(t)
    layout = t._layout_
    if overlaps_itself(layout.size, layout.stride):
        raise RuntimeError(OVERLAPS_ITSELF)
    check_memory(t, others)
    assert layout.dtype.numpy is not None
    # Even the storage of an empty tensor may have elements.
    whole_storage = (
        layout.whole
        and layout.numel == layout.base.numel
        and layout.dense
        and layout.dtype is layout.base.dtype
        and not (layout.conj or layout.neg)
    )
    check_fill(t)
    if whole_storage and not recorded and not layout.base.traced:
        put(t, runtime.drawn(lambda: draw(layout.numel, layout.dtype.numpy).reshape(layout.base.shape)), False)
        return t
    if vmap_checks.drawing() or on_meta(t):
        size, stride = tuple(layout.size), preserved_strides(tuple(layout.size), layout.stride)
        values = random_tensor(draw, dense_layout(size, stride, layout.dtype, device=t.device), t)
    else:
        flat = draw(layout.numel, layout.dtype.numpy)
        values = from_array(_from_memory_order(flat, layout.size, layout.stride))
    operands = (t, *others, values)
    mask = tuple(o._rg_ for o in operands) if mode.grad else None
    return kernel.plan(tuple(o._layout_ for o in operands), mask, 0).run(operands)


def _from_memory_order(flat: np.ndarray, size: Sequence[int], stride: Sequence[int]) -> np.ndarray:
    """Numbers in the memory order of a tensor with strides, as an array of ``size``."""
    order = sorted(range(len(size)), key=lambda d: -stride[d])
    values = flat.reshape([size[d] for d in order]).transpose(np.argsort(order)) if order else flat.reshape(())
    return np.asarray(values, order="C")


UNIFORM = drawing_kernel("UniformBackward0", "input")
NORMAL = drawing_kernel("NormalBackward0", "input")
LOG_NORMAL = drawing_kernel("LogNormalBackward0", "input")
_EXPONENTIAL = drawing_kernel("ExponentialBackward0", "input")
_CAUCHY = drawing_kernel("CauchyBackward0", "input")
_GEOMETRIC = drawing_kernel("GeometricBackward0", "input")
_RANDOM = [drawing_kernel(f"RandomBackward{i}", "input") for i in range(3)]
_BERNOULLI_P = drawing_kernel("BernoulliBackward1", "input", "p")
_BERNOULLI = drawing_kernel("BernoulliBackward2", "input")


def number(name: str, argument: str, position: int, value: Any, kind: str = "float") -> Any:
    """An argument that must be a number of a kind, ``"float"`` or ``"int"``, or a 0-d tensor.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    if isinstance(value, Tensor) and value.dim() == 0:
        return value.item()
    if isinstance(value, bool) or not hasattr(value, "__index__" if kind == "int" else "__float__"):
        raise wrong_argument(name, argument, position, kind, value)
    return index_number(value) if kind == "int" else value


@composite(
    "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.uniform_",
)
def uniform_(self: Tensor, *bounds: float, generator: Any = None, **named: float) -> Tensor:
    """Fills the tensor with uniform numbers from ``[from, to)``, by default ``[0, 1)``; returns it.

    Raises:
        RuntimeError: if ``from`` exceeds ``to``, or the dtype is not floating point.

    Example:
        >>> torch.empty(2).uniform_(1, 2, generator=torch.Generator().manual_seed(0))
        tensor([1.4963, 1.7682])
    """
    low, high = _bounds("uniform_", bounds, named, (0.0, 1.0))
    engine = engine_of("uniform_", generator)
    low, high = number("uniform_", "from", 1, low), number("uniform_", "to", 2, high)
    return fill(self, lambda n, dtype: samplers.uniform(engine, n, dtype, low, high), UNIFORM)


def _bounds(name: str, positional: tuple, named: dict[str, Any], defaults: tuple) -> tuple:
    """The arguments ``from`` and ``to``; ``from``, a keyword of Python, cannot be the name of a parameter."""
    if len(positional) > 2:
        raise TypeError(f"{name}() takes from 0 to 2 positional arguments but {len(positional)} were given")
    given = dict(zip(("from", "to"), positional))
    for key, value in named.items():
        if key not in ("from", "to"):
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in given:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        given[key] = value
    return given.get("from", defaults[0]), given.get("to", defaults[1])


@composite(
    "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.random_",
)
def random_(self: Tensor, *bounds: Any, generator: Any = None, **named: Any) -> Tensor:
    """Fills the tensor with integers: ``random_()``, ``random_(to)`` from ``[0, to)``, ``random_(from, to)``.

    Without ``to`` the largest one is the largest integer that the dtype represents exactly.

    Raises:
        RuntimeError: if there are no integers between the bounds, or the dtype cannot hold them.

    Example:
        >>> torch.zeros(3).random_(1)
        tensor([0., 0., 0.])
    """
    engine = engine_of("random_", generator)
    missing: Any = object()
    if len(bounds) == 1 and not named:
        low, high = missing, bounds[0]
    else:
        low, high = _bounds("random_", bounds, named, (missing, missing))
    for argument, position, value in (("from", 1, low), ("to", 2, high)):
        if value is not missing and value is not None:
            number("random_", argument, position, value, "int")
    kernel = _RANDOM[2 if high is missing and low is missing else 1 if low is missing else 0]
    low, high = (None if v is missing or v is None else int(v) for v in (low, high))
    return fill(self, lambda n, dtype: samplers.random(engine, n, dtype, low, high), kernel)


@composite(
    "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.normal_",
)
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fills the tensor with normal numbers; returns it.

    Raises:
        RuntimeError: for a negative ``std``.

    Example:
        >>> torch.empty(2, 3).normal_().shape
        torch.Size([2, 3])
    """
    engine = engine_of("normal_", generator)
    mean, std = number("normal_", "mean", 1, mean), number("normal_", "std", 2, std)
    # A batch element is contiguous in memory unless ``vmap`` interleaves them.
    contiguous = self._layout_.contiguous and has_contiguous_elements(self)
    return fill(self, lambda n, dtype: samplers.normal(engine, n, dtype, mean, std, contiguous=contiguous), NORMAL)


@composite(
    "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.log_normal_",
)
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Fills the tensor with the exponentials of normal numbers; returns it."""
    engine = engine_of("log_normal_", generator)
    return fill(self, lambda n, dtype: samplers.log_normal(engine, n, dtype, mean, std), LOG_NORMAL)


@composite(
    "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.exponential_",
)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fills the tensor with exponentially distributed numbers of rate ``lambd``; returns it."""
    engine = engine_of("exponential_", generator)
    return fill(self, lambda n, dtype: samplers.exponential(engine, n, dtype, lambd), _EXPONENTIAL)


@composite(
    "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.cauchy_",
)
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fills the tensor with Cauchy-distributed numbers; returns it."""
    engine = engine_of("cauchy_", generator)
    return fill(self, lambda n, dtype: samplers.cauchy(engine, n, dtype, median, sigma), _CAUCHY)


@composite(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.geometric_",
)
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Fills the tensor with numbers of trials of probability ``p`` up to the first success; returns it."""
    engine = engine_of("geometric_", generator)
    return fill(self, lambda n, dtype: samplers.geometric(engine, n, dtype, p), _GEOMETRIC)


@composite(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    names="Tensor.bernoulli_",
)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fills the tensor with ones, with probability ``p``, and zeros; returns it.

    Args:
        p: a number, or a tensor of probabilities that broadcasts to this one.

    Raises:
        RuntimeError: for probabilities outside ``[0, 1]``, and sizes that do not broadcast.

    Example:
        >>> torch.zeros(2).bernoulli_(1.0)
        tensor([1., 1.])
    """
    engine = engine_of("bernoulli_", generator)
    if not isinstance(p, Tensor):
        p = number("bernoulli_", "p", 1, p)
        return fill(self, lambda n, dtype: samplers.bernoulli(engine, n, dtype, p), _BERNOULLI)
    if not self.numel():
        return self
    expanded = p.detach().expand(self.shape)
    if level_stack.state.levels:
        return _batched_bernoulli(self, expanded, engine)
    order = sorted(range(self.dim()), key=lambda d: -self.stride(d))
    # The probabilities of the elements, in the order in which these are drawn.
    probabilities = array_of(expanded).transpose(order).reshape(-1)
    return fill(self, lambda n, dtype: samplers.bernoulli(engine, n, dtype, probabilities), _BERNOULLI_P, p)


def _batched_bernoulli(t: Tensor, p: Tensor, engine: Any) -> Tensor:
    """``bernoulli_`` under transforms, with a probability for each element."""
    (probabilities,), vmaps = parameter_values(p)
    vmap_checks.check_write("bernoulli", t._storage_.buffer, p._storage_.buffer)
    check_fill(t)
    dtype = t.dtype.numpy
    assert dtype is not None
    order = memory_order(t, vmaps, t.dim())
    in_memory = np.asarray(probabilities.transpose(order), order="C")
    values = samplers.bernoulli(engine, in_memory.shape, dtype, in_memory).transpose(np.argsort(order))
    return t.copy_(batched_tensor(np.asarray(values, order="C"), vmaps, t.dtype))


def truncated_normal_(
    tensor: Tensor, mean: float, std: float, low: float, high: float, generator: Any = None
) -> Tensor:
    """Fills the tensor with normal numbers within ``[low, high]``; returns it."""
    engine = engine_of("trunc_normal_", generator)
    return fill(tensor, lambda n, dtype: samplers.truncated_normal(engine, n, dtype, mean, std, low, high), NORMAL)
