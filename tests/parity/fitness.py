"""Which operations a tensor of a random program may be used in: its strides, values and origin."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def stray(t: Any) -> bool:
    """Whether it is a view that is in the graph only because its base is: PyTorch crashes where that gets a hook."""
    try:
        return t._is_view() and t.requires_grad and t.is_leaf
    except RuntimeError:
        return True


def made_within(t: Any) -> bool:
    """Whether it, or its gradient, was made in inference mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gradient of a non-leaf
        return t.is_inference() or (t.grad is not None and t.grad.is_inference())


def cut(t: Any) -> bool:
    """Whether it has complex numbers whose imaginary part is zero."""
    return t.is_complex() and bool((t.data.imag == 0).any())


def short(t: Any) -> bool:
    """Whether it has numbers of less than double precision."""
    return t.is_floating_point() and str(t.dtype) != "torch.float64" and t.numel() > 0


def coarse(t: Any) -> bool:
    """Whether it has numbers so large that their rounding shows in their sines."""
    return short(t) and bool((t.data.abs() > 50).any())


def inner(t: Any, named: Any) -> bool:
    """Whether it is a view that PyTorch's own code made of an internal tensor, as of results of inference tensors."""
    return t._is_view() and not t.requires_grad and all(t._base is not other for other in named)


def balanced(t: Any) -> bool:
    """Whether its mean is zero up to rounding."""
    if not t.numel() or not (t.is_floating_point() or t.is_complex()):
        return False
    return bool(t.data.mean().abs() <= 1e-6 * t.data.abs().max())


def level(t: Any) -> bool:
    """Whether along a dimension its numbers are all equal up to rounding, so that their normalized values are zero."""
    if not t.numel() or not t.is_floating_point():
        return False
    most = 1e-6 * t.data.abs().max()
    return any(bool((t.data.amax(d) - t.data.amin(d) <= most).any()) for d in range(t.dim()) if t.shape[d] > 1)


def near_whole(t: Any) -> bool:
    """Whether it has computed numbers that are integers up to rounding, in less than double precision."""
    return short(t) and bool(((t.data - t.data.round()).abs() < 1e-2).any())


def centred(t: Any) -> bool:
    """Whether it has numbers equal to the mean of their row up to rounding, so that normalized they are zero."""
    if not t.numel() or not t.dim() or not t.is_floating_point():
        return False
    rest = t.data - t.data.mean(-1, keepdim=True)
    return bool((rest.abs() <= 1e-6 * t.data.abs().max()).any())


def near_nothing(t: Any) -> bool:
    """Whether it has numbers that are zero up to rounding, and so of either sign."""
    return t.is_floating_point() and bool((t.data.abs() < 1e-6).any())


def normalized(t: Any) -> bool:
    """Whether it was computed with a layer normalization."""
    try:
        waiting, seen = [t.grad_fn], set()
    except RuntimeError:  # a view whose place in the graph is unknown
        return False
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [n for n, _ in node.next_functions]
    return any(node.name() == "NativeLayerNormBackward0" for node in seen)


def tangled(t: Any) -> bool:
    """Whether elements overlap though no stride is zero: PyTorch writes them in an order of its own."""
    if 0 in t.stride():
        return False
    places = np.indices(tuple(t.shape)).reshape(t.dim(), -1).T @ np.array(t.stride(), int) if t.dim() else [0]
    return len(set(places)) < t.numel()


def alone(t: Any, tensors: dict[str, Any]) -> bool:
    """Whether no other of the tensors shares memory with ``t``."""
    return sum(other.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for other in tensors.values()) == 1


def apart(tensors: dict[str, Any], x: str) -> dict[str, Any]:
    """The tensors of one dtype with one of them that share no memory with it, and itself."""
    address, dtype = tensors[x].untyped_storage().data_ptr(), tensors[x].dtype
    found = {n: t for n, t in tensors.items() if t.dtype == dtype and t.untyped_storage().data_ptr() != address}
    return {x: tensors[x], **found}


def broadcasts(a: Any, b: Any) -> bool:
    """Whether two sizes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))
