"""Elementwise operations of sparse tensors: zero-preserving ones, sums and products."""

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
from compat._core.types.errors import size_text
from compat._core.types.type_promotion import promote_types
from compat._operators.sparse.compressed import CompressedTensor, as_layout, empty
from compat._operators.sparse.conversion import Gradients, coalesce, gathered, values, with_elements
from compat._operators.sparse.tensor import (
    AnySparse,
    SparseTensor,
    coalesced,
    nothing,
    places_of,
    rule,
    sparse,
    summed,
    unflat,
)

#: Makes a function the rule for all layouts of sparse tensors.
both = rules_of(SparseTensor, CompressedTensor)

_ADDS_DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."

# ---------------------------------------------------------------- one operand


#: Parts of nodes' names that differ from functions' names.
_WRITTEN = {"log1p": "log1P", "deg2rad": "deg2Rad", "rad2deg": "rad2Deg"}


def _backward_name(name: str) -> str:
    parts = [_WRITTEN.get(p, p) for p in name.split("_")]
    return "".join(p[:1].upper() + p[1:] for p in parts) + "Backward0"


def _linear(name: str, input: AnySparse, added_up: bool = False) -> Tensor:
    """A linear function, of each element for itself, or with those of one place added up before."""
    function: Callable[[Tensor], Tensor] = names_of("torch")[name]
    x = coalesced(input) if added_up else input
    with without_recording():
        made = x.alike(function(x.elements))
    return pulled(_backward_name(name), made, [input], lambda grad, _: [lambda: function(grad)])


def _unary(name: str, input: AnySparse) -> Tensor:
    """A function that keeps zeros, of each element; those of one place are added up before."""
    function: Callable[[Tensor], Tensor] = names_of("torch")[name]
    x = coalesced(input)
    with without_recording():
        made = x.alike(function(x.elements))
    if not made.elements.is_floating_point() and not made.elements.is_complex():
        return made
    return pulled(_backward_name(name), made, [input], partial(_pull_unary, function), self=input)


def _pull_unary(function: Callable[[Tensor], Tensor], grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    def pull() -> Tensor:
        at = coalesce(kept["self"])
        again = bool(mode.grad) and at.requires_grad
        with enable_grad():
            elements = values(at) if again else at._values().requires_grad_()
            roots, inputs = [edge_of(function(elements))], [edge_of(elements)]
            (found,) = run_backward(
                roots, [gathered(grad, at)], keep_graph=again, create_graph=again, inputs=inputs, accumulate=False
            )
        assert found is not None
        return with_elements(at, found)

    return [pull]


_UNARY = """
    abs asin asinh atan atanh ceil erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p relu
    round sgn sign signbit sin sinh sqrt square tan tanh trunc
"""
for _name in _UNARY.split():
    both(_name)(partial(_unary, _name))
for _name in ("neg", "positive", "conj_physical"):
    both(_name)(partial(_linear, _name))
for _name in ("deg2rad", "rad2deg"):
    both(_name)(partial(_linear, _name, added_up=True))


@rule("pow")
def power(input: Any, exponent: Any, **_: Any) -> Tensor:
    """Elements raised to a power, a number."""
    if not isinstance(input, AnySparse) or (isinstance(exponent, Tensor) and exponent.dim()):
        raise RuntimeError("pow: of a sparse tensor the exponent must be a number")
    number = exponent.item() if isinstance(exponent, Tensor) else exponent
    if number == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    raised = lambda t: names_of("torch")["pow"](t, number)
    x = coalesced(input)
    with without_recording():
        made = x.alike(raised(x.elements))
    return pulled("PowBackward0", made, [input], partial(_pull_unary, raised), self=input, exponent=number)


# ---------------------------------------------------------------- copies


@both("clone")
def clone(input: AnySparse, **_: Any) -> Tensor:
    """A copy."""
    with without_recording():
        made = input.of_values({n: p.clone() if isinstance(p, Tensor) else p for n, p in input.value.items()})
    return pulled("CloneBackward0", made, [input], lambda grad, _: [lambda: grad])


@both("_to_copy")
def to_copy(input: AnySparse, dtype: Any = None, **_: Any) -> Tensor:
    """A copy in another dtype."""
    with without_recording():
        made = input.alike(input.elements.to(dtype or input.dtype))
    before = input.dtype
    return pulled("ToCopyBackward0", made, [input], lambda grad, _: [lambda: grad.to(before)])


@both("copy")
def copied(input: Tensor, other: Any, **_: Any) -> Tensor:
    """The value of a tensor after a copy to it."""
    if type(input) is not type(other):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {other.type()}"
        )
    return to_copy(other, input.dtype)


@both("zero")
def zero(input: AnySparse) -> Tensor:
    """The value of a tensor set to zero: without stored elements."""
    if isinstance(input, CompressedTensor):
        return empty(input.shape, input.layout, input.dtype, input.block)
    return nothing(input.shape, input.dtype, input.sparse_dim())


# ---------------------------------------------------------------- sums


@both("add")
def add(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``input + alpha * other``: of two sparse tensors, or of a dense one and a sparse one."""
    return _sum("AddBackward0", input, other, alpha, alpha)


@both("sub")
def subtract(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``input - alpha * other``."""
    return _sum("SubBackward0", input, other, -alpha, alpha)


@both("rsub")
def reverse_subtract(input: Any, other: Any, *, alpha: Any = 1, **_: Any) -> Tensor:
    """``other - alpha * input``."""
    return _sum("RsubBackward0", other, input, -alpha, alpha)


def _sum(name: str, a: Any, b: Any, factor: Any, alpha: Any) -> Tensor:
    if not isinstance(b, AnySparse) and isinstance(a, CompressedTensor):
        return _sum_with_dense(name, a, b, factor, alpha)
    if not isinstance(b, AnySparse):
        raise RuntimeError(_ADDS_DENSE)
    if not isinstance(a, AnySparse) and (not isinstance(a, Tensor) or a.shape != b.shape):
        have = tuple(a.shape) if isinstance(a, Tensor) else ()
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{size_text(have)} while other has size {size_text(b.shape)} (FYI: dense-sparse addition does not "
            "currently support broadcasting)"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {size_text(a.shape)} != {size_text(b.shape)}"
        )
    with without_recording():
        made = _added(a, b, factor) if isinstance(a, AnySparse) else _added_to(outside(a), b.as_coo(), factor)
    kinds = a.dtype, b.dtype

    def pull(grad: Tensor, _: Any) -> Gradients:
        return [lambda: _as(grad, kinds[0]), lambda: _as(grad if factor == 1 else grad * factor, kinds[1])]

    return pulled(name, made, [a, b], pull, alpha=alpha)


def _sum_with_dense(name: str, a: CompressedTensor, b: Any, factor: Any, alpha: Any) -> Tensor:
    """A sum with a dense tensor, or with a number, which is none."""
    if not isinstance(b, Tensor) or a.shape != b.shape:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{size_text(b.shape) if isinstance(b, Tensor) else '[]'} while other has size {size_text(a.shape)} (FYI: "
            "op2-sparse addition does not currently support broadcasting)"
        )
    with without_recording():
        made = _added_to(outside(b) * factor, a.as_coo(), 1)
    kinds = a.dtype, b.dtype

    def pull(grad: Tensor, _: Any) -> Gradients:
        return [lambda: _as(grad, kinds[0]), lambda: _as(grad if factor == 1 else grad * factor, kinds[1])]

    return pulled(name, made, [a, b], pull, alpha=alpha)


def _as(grad: Tensor, dtype: Any) -> Tensor:
    return grad if grad.dtype is dtype else grad.to(dtype)


def _added(a: AnySparse, b: AnySparse, factor: Any) -> AnySparse:
    if not isinstance(a, CompressedTensor):
        return _added_coo(a.as_coo(), b.as_coo(), factor)
    if isinstance(b, CompressedTensor) and a.plain._storage_ is b.plain._storage_ and a.layout is b.layout:
        return a.alike(a.elements + (b.elements if factor == 1 else b.elements * factor))
    return as_layout(_added_coo(a.as_coo(), b.as_coo(), factor), a)


def _added_coo(a: SparseTensor, b: SparseTensor, factor: Any) -> SparseTensor:
    torch = names_of("torch")
    scaled = b.elements if factor == 1 else b.elements * factor
    if a.coordinates._storage_ is b.coordinates._storage_ and a.elements.shape == b.elements.shape:
        return a.alike(a.elements + scaled, a.coalesced and b.coalesced)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got {a.sparse_dim()} and "
            f"{b.sparse_dim()}"
        )
    dtype = promote_types(a.dtype, scaled.dtype)
    elements = torch["cat"]([a.elements.to(dtype), scaled.to(dtype)])
    made = sparse(torch["cat"]([a.coordinates, b.coordinates], 1), elements, a.shape, False)
    if a.coalesced and b.coalesced:
        return coalesced(made)
    if not (a.elements.is_contiguous() and b.elements.is_contiguous()):
        return made
    ours, theirs = places_of(a), places_of(b)
    if np.array_equal(ours, theirs):
        return a.alike(a.elements.to(dtype) + scaled.to(dtype))
    if (np.diff(ours) < 0).any() or (np.diff(theirs) < 0).any():
        return made
    # In order, though places may be there several times: the first of one with the first of the other, and so on.
    keys = np.stack([np.concatenate([ours, theirs]), np.concatenate([_occurrences(ours), _occurrences(theirs)])])
    met, where = np.unique(keys, axis=1, return_inverse=True)
    coordinates = from_array(unflat(met[0], a.shape[: a.sparse_dim()]))
    return sparse(coordinates, summed(elements, where.reshape(-1), met.shape[1]), a.shape, False)


def _occurrences(places: np.ndarray) -> np.ndarray:
    """Of places in order: the how manieth of its kind each is."""
    return np.arange(len(places)) - np.searchsorted(places, places)


def _added_to(a: Tensor, b: SparseTensor, factor: Any) -> Tensor:
    """A dense tensor, a sparse one added: only the rows that this one has are touched."""
    count = b.sparse_dim()
    rows = a.reshape(-1, *a.shape[count:])
    scaled = b.elements if factor == 1 else b.elements * factor
    dtype = promote_types(a.dtype, scaled.dtype)
    return rows.to(dtype).index_add(0, from_array(places_of(b)), scaled.to(dtype)).reshape(a.shape)


# ---------------------------------------------------------------- products


@both("mul")
def multiply(input: Any, other: Any, **_: Any) -> Tensor:
    """A product with a number, with a dense tensor that broadcasts, or with a sparse one."""
    a, b = (input, other) if isinstance(input, AnySparse) else (other, input)
    if not isinstance(b, Tensor) or (b.dim() == 0 and not isinstance(b, AnySparse)):
        return _scaled("MulBackward0", a, b)
    found: Callable[..., Tensor] = _intersection if isinstance(b, AnySparse) else _product_with_dense
    with without_recording():
        made = found(outside(a), outside(b))
        if isinstance(a, CompressedTensor) and isinstance(made, SparseTensor):
            made = as_layout(made, a)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["self"], kept["other"]
        return [lambda: _along(grad * second.conj(), first), lambda: _along(grad * first.conj(), second)]

    return pulled("MulBackward0", made, [input, other], pull, self=input, other=other)


def _along(grad: Tensor, operand: Tensor) -> Tensor:
    """A gradient in its tensor's size."""
    return grad if grad.shape == operand.shape else grad.to_dense().sum_to_size(operand.shape)


def _product_with_dense(a: AnySparse, b: Tensor) -> Tensor:
    return a.alike(a.elements * gathered(b.expand(a.shape), a))


def _intersection(a: AnySparse, b: AnySparse) -> Tensor:
    a, b = coalesced(a.as_coo()), coalesced(b.as_coo())
    if a.shape != b.shape:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes, but {size_text(a.shape)} != {size_text(b.shape)}"
        )
    shared, at, other = np.intersect1d(places_of(a), places_of(b), assume_unique=True, return_indices=True)
    elements = a.elements.index_select(0, from_array(at)) * b.elements.index_select(0, from_array(other))
    return sparse(from_array(unflat(shared, a.shape[: a.sparse_dim()])), elements, a.shape, True)


def _scaled(name: str, a: AnySparse, n: Any, inverse: bool = False) -> Tensor:
    """All elements times a number, or divided by it."""
    combine = operator.truediv if inverse else operator.mul
    with without_recording():
        made = a.alike(combine(a.elements, outside(n) if isinstance(n, Tensor) else n))

    def of_number(grad: Tensor, x: AnySparse, n: Tensor) -> Tensor:
        x = coalesce(x)
        product: Tensor = (gathered(grad, x) * values(x).conj()).sum()
        return product / (n * n).conj() * -1 if inverse else product

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        x, n = kept["self"], kept["other"]
        if not isinstance(n, Tensor):
            return [lambda: combine(grad, n.conjugate())]
        return [lambda: combine(grad, n.conj()), lambda: of_number(grad, x, n)]

    return pulled(name, made, [a, n] if isinstance(n, Tensor) else [a], pull, self=a, other=n)


@both("div", "true_divide")
def divide(input: Any, other: Any, *, rounding_mode: str | None = None, **_: Any) -> Tensor:
    """A sparse tensor divided by a number."""
    if isinstance(other, AnySparse) or not isinstance(input, AnySparse) or (isinstance(other, Tensor) and other.dim()):
        size = size_text(other.shape) if isinstance(other, Tensor) else "[]"
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {size} for divisor)"
        )
    if rounding_mode is not None:
        x = coalesced(input)
        return x.alike(names_of("torch")["div"](x.elements, other, rounding_mode=rounding_mode))
    return _scaled("DivBackward0", input, other, inverse=True)


@rule("floor_divide")
def floor_divide(input: AnySparse, other: Any, **_: Any) -> Tensor:
    """A sparse tensor divided by a number, rounded down."""
    return divide(input, other, rounding_mode="floor")
