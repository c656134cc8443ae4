"""Elementwise operators on sparse tensors: functions that preserve zero, sums and products."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.autograd.engine import run_backward
from compat._core.dispatch.layout_tensor import rules_of
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.transforms.grad_mode import enable_grad, mode
from compat._core.types.errors import size_text, wrap_dim
from compat._core.types.type_promotion import promote_types
from compat._operators.sparse.compressed import CompressedTensor, as_layout, empty
from compat._operators.sparse.conversion import Gradients, coalesce, elements_at, values, with_elements
from compat._operators.sparse.tensor import (
    AnySparse,
    SparseTensor,
    coalesced,
    empty_coo,
    flat_indices,
    rule,
    segment_sum,
    sparse,
    unravel_index,
)

#: A decorator that makes a function the rule of an operator for all sparse layouts.
sparse_rule = rules_of(SparseTensor, CompressedTensor)

_ADDS_DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."

# ---------------------------------------------------------------- one operand


@sparse_rule("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices at each index of a dimension."""
    return tuple(input.select(dim, i) for i in range(input.shape[wrap_dim(dim, input.dim())]))


#: Parts of names of nodes that differ from those of functions.
_SPELLED = {"log1p": "log1P", "deg2rad": "deg2Rad", "rad2deg": "rad2Deg"}


def _backward_name(name: str) -> str:
    parts = [_SPELLED.get(p, p) for p in name.split("_")]
    return "".join(p[:1].upper() + p[1:] for p in parts) + "Backward0"


def _linear(name: str, input: AnySparse, coalesce_first: bool = False) -> Tensor:
    """A linear function of the elements; with ``coalesce_first``, of those of the coalesced tensor."""
    function: Callable[[Tensor], Tensor] = names_of("torch")[name]
    x = coalesced(input) if coalesce_first else input
    with without_recording():
        result = x.replace_elements(function(x.elements))
    return pulled(_backward_name(name), result, [input], lambda grad, _: [lambda: function(grad)])


def _unary(name: str, input: AnySparse) -> Tensor:
    """A function that preserves zero, of the elements of the coalesced tensor."""
    function: Callable[[Tensor], Tensor] = names_of("torch")[name]
    x = coalesced(input)
    with without_recording():
        result = x.replace_elements(function(x.elements))
    if not result.elements.is_floating_point() and not result.elements.is_complex():
        return result
    return pulled(_backward_name(name), result, [input], partial(_pull_unary, function), self=input)


def _pull_unary(function: Callable[[Tensor], Tensor], grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    def pull() -> Tensor:
        at = coalesce(kept["self"])
        differentiable = bool(mode.grad) and at.requires_grad
        with enable_grad():
            elements = values(at) if differentiable else at._values().requires_grad_()
            roots, inputs = [edge_of(function(elements))], [edge_of(elements)]
            (found,) = run_backward(
                roots,
                [elements_at(grad, at)],
                keep_graph=differentiable,
                create_graph=differentiable,
                inputs=inputs,
                accumulate=False,
            )
        assert found is not None
        return with_elements(at, found)

    return [pull]


_UNARY = """
    abs asin asinh atan atanh ceil erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p relu
    round sgn sign signbit sin sinh sqrt square tan tanh trunc
"""
for _name in _UNARY.split():
    sparse_rule(_name)(partial(_unary, _name))
for _name in ("neg", "positive", "conj_physical"):
    sparse_rule(_name)(partial(_linear, _name))
for _name in ("deg2rad", "rad2deg"):
    sparse_rule(_name)(partial(_linear, _name, coalesce_first=True))


@rule("pow")
def power(input: Any, exponent: Any, **_: Any) -> Tensor:
    """The elements raised to a power, which is a number."""
    if not isinstance(input, AnySparse) or (isinstance(exponent, Tensor) and exponent.dim()):
        raise RuntimeError("pow: of a sparse tensor the exponent must be a number")
    number = exponent.item() if isinstance(exponent, Tensor) else exponent
    if number == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    raised = lambda t: names_of("torch")["pow"](t, number)
    x = coalesced(input)
    with without_recording():
        result = x.replace_elements(raised(x.elements))
    return pulled("PowBackward0", result, [input], partial(_pull_unary, raised), self=input, exponent=number)


# ---------------------------------------------------------------- copies


@sparse_rule("clone")
def clone(input: AnySparse, **_: Any) -> Tensor:
    """A copy."""
    with without_recording():
        result = input.of_values({n: p.clone() if isinstance(p, Tensor) else p for n, p in input.value.items()})
    return pulled("CloneBackward0", result, [input], lambda grad, _: [lambda: grad])


@sparse_rule("_to_copy")
def to_copy(input: AnySparse, dtype: Any = None, **_: Any) -> Tensor:
    """A copy in another dtype."""
    with without_recording():
        result = input.replace_elements(input.elements.to(dtype or input.dtype))
    dtype = input.dtype
    return pulled("ToCopyBackward0", result, [input], lambda grad, _: [lambda: grad.to(dtype)])


@sparse_rule("copy")
def copied(input: Tensor, other: Any, **_: Any) -> Tensor:
    """The new value of a tensor to which another one is copied."""
    if type(input) is not type(other):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {other.type()}"
        )
    return to_copy(other, input.dtype)


@sparse_rule("zero")
def zero(input: AnySparse) -> Tensor:
    """The new value of a tensor that is set to zero, which has no stored elements."""
    if isinstance(input, CompressedTensor):
        return empty(input.shape, input.layout, input.dtype, input.block)
    return empty_coo(input.shape, input.dtype, input.sparse_dim())


# ---------------------------------------------------------------- sums


@sparse_rule("add")
def add(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``input + alpha * other`` of two sparse tensors, or of a dense and a sparse tensor."""
    return _sum("AddBackward0", input, other, alpha, alpha)


@sparse_rule("sub")
def subtract(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``input - alpha * other``."""
    return _sum("SubBackward0", input, other, -alpha, alpha)


@sparse_rule("rsub")
def reverse_subtract(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``other - alpha * input``."""
    return _sum("RsubBackward0", other, input, -alpha, alpha)


def _sum(name: str, a: Any, b: Any, factor: Any, alpha: Any) -> Tensor:
    if not isinstance(b, AnySparse) and isinstance(a, CompressedTensor):
        return _sum_with_dense(name, a, b, factor, alpha)
    if not isinstance(b, AnySparse):
        raise RuntimeError(_ADDS_DENSE)
    if not isinstance(a, AnySparse) and (not isinstance(a, Tensor) or a.shape != b.shape):
        size = tuple(a.shape) if isinstance(a, Tensor) else ()
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{size_text(size)} while other has size {size_text(b.shape)} (FYI: dense-sparse addition does not "
            "currently support broadcasting)"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {size_text(a.shape)} != {size_text(b.shape)}"
        )
    with without_recording():
        result = _added(a, b, factor) if isinstance(a, AnySparse) else _added_to(outside(a), b.as_coo(), factor)
    return pulled(name, result, [a, b], _sum_gradients(a, b, factor), alpha=alpha)


def _sum_gradients(a: Tensor, b: Tensor, factor: Any) -> Callable[..., Gradients]:
    dtypes = a.dtype, b.dtype
    return lambda grad, _: [
        lambda: _as(grad, dtypes[0]),
        lambda: _as(grad if factor == 1 else grad * factor, dtypes[1]),
    ]


def _sum_with_dense(name: str, a: CompressedTensor, b: Any, factor: Any, alpha: Any) -> Tensor:
    """The sum of a compressed and a dense tensor."""
    if not isinstance(b, Tensor) or a.shape != b.shape:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{size_text(b.shape) if isinstance(b, Tensor) else '[]'} while other has size {size_text(a.shape)} (FYI: "
            "op2-sparse addition does not currently support broadcasting)"
        )
    with without_recording():
        result = _added_to(outside(b) * factor, a.as_coo(), 1)
    return pulled(name, result, [a, b], _sum_gradients(a, b, factor), alpha=alpha)


def _as(grad: Tensor, dtype: Any) -> Tensor:
    return grad if grad.dtype is dtype else grad.to(dtype)


def _added(a: AnySparse, b: AnySparse, factor: Any) -> AnySparse:
    if not isinstance(a, CompressedTensor):
        return _added_coo(a.as_coo(), b.as_coo(), factor)
    if isinstance(b, CompressedTensor) and a.plain._storage_ is b.plain._storage_ and a.layout is b.layout:
        return a.replace_elements(a.elements + (b.elements if factor == 1 else b.elements * factor))
    return as_layout(_added_coo(a.as_coo(), b.as_coo(), factor), a)


def _added_coo(a: SparseTensor, b: SparseTensor, factor: Any) -> SparseTensor:
    torch = names_of("torch")
    scaled = b.elements if factor == 1 else b.elements * factor
    if a.coordinates._storage_ is b.coordinates._storage_ and a.elements.shape == b.elements.shape:
        return a.replace_elements(a.elements + scaled, a.coalesced and b.coalesced)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got {a.sparse_dim()} and "
            f"{b.sparse_dim()}"
        )
    dtype = promote_types(a.dtype, scaled.dtype)
    elements = torch["cat"]([a.elements.to(dtype), scaled.to(dtype)])
    result = sparse(torch["cat"]([a.coordinates, b.coordinates], 1), elements, a.shape, False)
    if a.coalesced and b.coalesced:
        return coalesced(result)
    if not (a.elements.is_contiguous() and b.elements.is_contiguous()):
        return result
    first, second = flat_indices(a), flat_indices(b)
    if np.array_equal(first, second):
        return a.replace_elements(a.elements.to(dtype) + scaled.to(dtype))
    if (np.diff(first) < 0).any() or (np.diff(second) < 0).any():
        return result
    # As PyTorch, adds the i-th element at a position of one tensor to the i-th one at that position of the other.
    positions, ranks = np.concatenate([first, second]), np.concatenate([_occurrences(first), _occurrences(second)])
    found, segments = np.unique(np.stack([positions, ranks]), axis=1, return_inverse=True)
    coordinates = from_array(unravel_index(found[0], a.shape[: a.sparse_dim()]))
    return sparse(coordinates, segment_sum(elements, segments.reshape(-1), found.shape[1]), a.shape, False)


def _occurrences(indices: np.ndarray) -> np.ndarray:
    """For each of sorted indices, the number of equal ones before it."""
    return np.arange(len(indices)) - np.searchsorted(indices, indices)


def _added_to(a: Tensor, b: SparseTensor, factor: Any) -> Tensor:
    """The sum of a dense and a sparse tensor, by an addition to the rows that the sparse one has."""
    count = b.sparse_dim()
    rows = a.reshape(-1, *a.shape[count:])
    scaled = b.elements if factor == 1 else b.elements * factor
    dtype = promote_types(a.dtype, scaled.dtype)
    return rows.to(dtype).index_add(0, from_array(flat_indices(b)), scaled.to(dtype)).reshape(a.shape)


# ---------------------------------------------------------------- products


@sparse_rule("mul")
def multiply(input: Any, other: Any, **_: Any) -> Tensor:
    """The product with a number, a dense tensor that broadcasts, or a sparse tensor."""
    a, b = (input, other) if isinstance(input, AnySparse) else (other, input)
    if not isinstance(b, Tensor) or (b.dim() == 0 and not isinstance(b, AnySparse)):
        return _scaled("MulBackward0", a, b)
    product: Callable[..., Tensor] = _intersection if isinstance(b, AnySparse) else _product_with_dense
    with without_recording():
        result = product(outside(a), outside(b))
        if isinstance(a, CompressedTensor) and isinstance(result, SparseTensor):
            result = as_layout(result, a)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["self"], kept["other"]
        return [lambda: _summed_to(grad * second.conj(), first), lambda: _summed_to(grad * first.conj(), second)]

    return pulled("MulBackward0", result, [input, other], pull, self=input, other=other)


def _summed_to(grad: Tensor, operand: Tensor) -> Tensor:
    """A gradient summed to the size of its operand."""
    return grad if grad.shape == operand.shape else grad.to_dense().sum_to_size(operand.shape)


def _product_with_dense(a: AnySparse, b: Tensor) -> Tensor:
    return a.replace_elements(a.elements * elements_at(b.expand(a.shape), a))


def _intersection(a: AnySparse, b: AnySparse) -> Tensor:
    a, b = coalesced(a.as_coo()), coalesced(b.as_coo())
    if a.shape != b.shape:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes, but {size_text(a.shape)} != {size_text(b.shape)}"
        )
    shared, at, other = np.intersect1d(flat_indices(a), flat_indices(b), assume_unique=True, return_indices=True)
    elements = a.elements.index_select(0, from_array(at)) * b.elements.index_select(0, from_array(other))
    return sparse(from_array(unravel_index(shared, a.shape[: a.sparse_dim()])), elements, a.shape, True)


def _scaled(name: str, a: AnySparse, n: Any, inverse: bool = False) -> Tensor:
    """A tensor times a number, or divided by it."""
    combine = operator.truediv if inverse else operator.mul
    with without_recording():
        result = a.replace_elements(combine(a.elements, outside(n) if isinstance(n, Tensor) else n))

    def of_number(grad: Tensor, x: AnySparse, n: Tensor) -> Tensor:
        x = coalesce(x)
        product: Tensor = (elements_at(grad, x) * values(x).conj()).sum()
        return product / (n * n).conj() * -1 if inverse else product

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        x, n = kept["self"], kept["other"]
        if not isinstance(n, Tensor):
            return [lambda: combine(grad, n.conjugate())]
        return [lambda: combine(grad, n.conj()), lambda: of_number(grad, x, n)]

    return pulled(name, result, [a, n] if isinstance(n, Tensor) else [a], pull, self=a, other=n)


@sparse_rule("div", "true_divide")
def divide(input: Any, other: Any, *, rounding_mode: str | None = None, **_: Any) -> Tensor:
    """A sparse tensor divided by a number."""
    if isinstance(other, AnySparse) or not isinstance(input, AnySparse) or (isinstance(other, Tensor) and other.dim()):
        size = size_text(other.shape) if isinstance(other, Tensor) else "[]"
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {size} for divisor)"
        )
    if rounding_mode is not None:
        x = coalesced(input)
        return x.replace_elements(names_of("torch")["div"](x.elements, other, rounding_mode=rounding_mode))
    return _scaled("DivBackward0", input, other, inverse=True)


@rule("floor_divide")
def floor_divide(input: AnySparse, other: Any, **_: Any) -> Tensor:
    """The floor of a sparse tensor divided by a number."""
    return divide(input, other, rounding_mode="floor")
