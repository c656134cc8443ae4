"""Rules of operations for sparse tensors: a table, and PyTorch's error for operations without a rule.

A program without sparse tensors pays nothing for them: the first one that is made adds their layer to the dispatcher
(``compat._core.tensor.dispatcher``), and every call with a sparse tensor goes through the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.overloads import overload_of
from compat._core.dispatch.unsupported import refusal
from compat._core.operators import kernel as kernels
from compat._core.operators.inplace import check_recorded
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.dispatcher import Call, Function, add_layer
from compat._core.tensor.registry import load_all
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.memory_format import LAYOUTS
from compat._operators.sparse.tensor import SparseTensor, first, nothing

#: By the operation's name; called with its arguments by name, those left out left out.
RULES: dict[str, Callable[..., Any]] = {}


#: What PyTorch's operations end in that are not there, where that is another.
_ENDS_IN = {
    "aten::mean.default": "aten::mean.dim", "aten::squeeze.default": "aten::as_strided",
    "aten::slice.Tensor": "aten::as_strided",
}  # fmt: skip


def rule(*names: str) -> Any:
    """Makes a function the rule of operations."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(names, function))
        return function

    return note


def is_sparse(values: Any) -> bool:
    """Whether some of the values are sparse tensors."""
    return any(isinstance(t, SparseTensor) for t in tree_leaves(values))


def _by_rule(call: Call, below: Callable[[], Any]) -> Any:
    """The layer of sparse tensors: the operation's rule says what a call gives."""
    if isinstance(call.operator, Function):
        return _like(call, below)
    operator, out = call.operator, call.out
    given = operator.by_name(call.args, call.named)
    found = RULES.get(operator.name)
    if found is not None and out is not None:
        return written(out, found(**given))
    if found is None:
        shown = str(overload_of(operator.name, call.inplace, given, out is not None)).replace(".", "::", 1)
        raise refusal(_ENDS_IN.get(shown, shown.removesuffix(".default")))
    if not call.inplace:
        return found(**given)
    if mode.grad:
        check_recorded(call.args[0])
    return written(call.args[0], found(**given))


def written(target: Tensor, new: Tensor) -> Tensor:
    """A tensor that becomes another one in place, history included."""
    if not isinstance(target, SparseTensor):
        return target.copy_(new)
    assert isinstance(new, SparseTensor)
    target.coordinates, target.elements, target.coalesced = new.coordinates, new.elements, new.coalesced
    target._storage, target._layout = new._storage, new._layout
    target._counter.version += 1
    target._rg, target._node, target._nr = target._rg or new._rg, new._node, new._nr
    return target


def _derivative(kernel: kernels.Kernel, values: Sequence[Any]) -> Sequence[Tensor] | None:
    """A program's derivative of sparse gradients: of all their elements."""
    if not is_sparse(values):
        return None
    return kernel.call([v.to_dense() if isinstance(v, SparseTensor) else v for v in values])


#: Functions that make a tensor like another, and the operation that they end in; it is not there for sparse ones.
_LIKE = {
    "zeros_like": None, "empty_like": None, "ones_like": "fill_.Scalar", "full_like": "fill_.Scalar",
    "rand_like": "uniform_", "randn_like": "normal_", "randint_like": "random_.from",
}  # fmt: skip


def _like(call: Call, below: Callable[[], Any]) -> Any:
    """A function that makes a tensor like another one, which may be sparse: then it keeps nothing."""
    named = call.named or {}
    input = call.args[0] if call.args else named.get("input")
    name = call.operator.name
    if name not in _LIKE or not isinstance(input, SparseTensor) or named.get("layout") is LAYOUTS["strided"]:
        return below()
    if _LIKE[name] is not None:
        raise refusal(f"aten::{_LIKE[name]}")
    return nothing(input.shape, named.get("dtype") or input.dtype, input.sparse_dim())


def _enable() -> None:
    """Adds the layer of sparse tensors."""
    load_all()
    add_layer("sparse", lambda call: is_sparse(call.values), _by_rule)
    kernels.askers.append(_derivative)


first.append(_enable)

__all__ = ["RULES", "is_sparse", "rule", "written"]
