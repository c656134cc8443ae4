"""Elementwise functions of nested tensors, and ``*_like`` factories."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nested._internal.nested_tensor import (
    NestedTensor,
    components,
    contiguous,
    element_indices,
    functions_of,
    like,
    packed,
)

by_name = functions_of(NestedTensor)

#: Elementwise functions, by name.
_FUNCTIONS = """
    abs absolute acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or
    bitwise_xor ceil celu clamp clamp_max clamp_min clip conj conj_physical copysign cos cosh deg2rad digamma div
    divide elu eq erf erfc erfinv exp exp2 expm1 float_power floor floor_divide fmax fmin fmod frac ge gelu gt
    greater greater_equal hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite isinf isnan isneginf
    isposinf le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logaddexp logical_and logical_not
    logical_or logical_xor logit logsigmoid lt maximum minimum mish mul multiply nan_to_num ne neg negative
    not_equal positive pow rad2deg reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit
    silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold
    true_divide trunc where xlogy masked_fill dropout alpha_dropout bernoulli to float double half bfloat16 int long
    short bool char byte type_as clone cpu
"""
_OPERATORS = """
    add radd sub rsub mul rmul truediv rtruediv rdiv pow rpow floordiv mod neg abs invert and or xor eq ne lt le gt ge
"""
POINTWISE = (*_FUNCTIONS.split(), *[f"__{name}__" for name in _OPERATORS.split()])


@by_name(*POINTWISE)
def pointwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An elementwise function, applied to the values."""
    found = components([*args, *kwargs.values()])
    first = found[0]
    for other in found[1:]:
        if other.symbol != first.symbol or other.ragged != first.ragged or other.dim() != first.dim():
            shapes = f"{_shape(first)} and {_shape(other)}"
            name = f"{func.__name__.strip('_')}.Tensor"
            raise RuntimeError(f"cannot call binary pointwise function {name} with inputs of shapes {shapes}")
    inner = lambda x: _inner(x, first)
    given = [inner(a) for a in args]
    return like(first, func(*given, **{name: inner(a) for name, a in kwargs.items()}))


def _shape(t: NestedTensor) -> str:
    return f"({', '.join(map(str, t.shape))})"


def _inner(x: Any, t: NestedTensor) -> Any:
    """The operand for the values of a nested tensor that corresponds to an operand for the tensor."""
    if isinstance(x, NestedTensor):
        return x.elements
    if not isinstance(x, Tensor) or x.dim() <= t.dim() - 1 - t.ragged:
        return x
    if x.dim() > t.dim():
        raise RuntimeError(f"a dense tensor of {x.dim()} dimensions does not broadcast with one of shape {_shape(t)}")
    x = x.reshape((1,) * (t.dim() - x.dim()) + tuple(x.shape))
    if x.shape[0] not in (1, len(t)):
        raise RuntimeError(
            f"The size of tensor a ({len(t)}) must match the size of tensor b ({x.shape[0]}) at non-singleton "
            "dimension 0"
        )
    sequence, position, _ = element_indices(t)
    if x.shape[t.ragged] != 1:
        longest = t._get_max_seqlen()
        if x.shape[t.ragged] != longest:
            raise RuntimeError(
                f"The expanded size of the tensor ({longest}) must match the existing size ({x.shape[t.ragged]}) at "
                f"non-singleton dimension {t.ragged}.  Target sizes: {_target(t, longest)}.  Tensor sizes: "
                f"{list(x.shape)}"
            )
        x = x.expand(len(t), *x.shape[1:])
        return x.movedim(t.ragged, 1)[sequence, position].movedim(0, t.ragged - 1)
    if x.shape[0] == 1:
        return x[0]
    return x.index_select(0, sequence).squeeze(t.ragged).movedim(0, t.ragged - 1)


def _target(t: NestedTensor, longest: int) -> list[int]:
    size = [len(t), *t.elements.shape]
    size[t.ragged] = longest
    return size


# ---------------------------------------------------------------- copies and factories


@by_name("contiguous")
def contiguous_(func: Any, t: NestedTensor, **_: Any) -> Any:
    """A copy without gaps between sequences; the tensor itself if it has none."""
    return contiguous(t)


@by_name("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
def factory(func: Any, t: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """A nested tensor of new values with the same offsets."""
    kwargs.pop("layout", None)
    return like(t, func(t.elements.detach(), *args, **kwargs))


@by_name("copy_")
def copy_(func: Any, target: Any, source: Any, *_: Any) -> Any:
    """Copies the values of another nested tensor."""
    if not isinstance(target, NestedTensor) or not isinstance(source, NestedTensor):
        raise RuntimeError("copy_(): only nested tensors can be copied to nested tensors")
    if target.symbol != source.symbol:
        raise RuntimeError("copy_ only supports Nested Tensors that have same size and the exact same offset tensor.")
    target.elements.copy_(source.elements)
    return target


@by_name("zero_", "fill_", "uniform_", "normal_")
def filled(func: Any, target: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """Fills all elements."""
    func(target.elements, *args, **kwargs)
    return target


@by_name("embedding")
def embedding(func: Any, indices: NestedTensor, weight: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Rows of a table for nested indices."""
    return like(indices, func(indices.elements, weight, *args, **kwargs))


@by_name("allclose", "equal")
def compared(func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether two nested tensors have the same sequences."""
    if not (isinstance(a, NestedTensor) and isinstance(b, NestedTensor) and a.starts.equal(b.starts)):
        return False
    return bool(func(packed(a), packed(b), *args, **kwargs))
