"""What the ``ctx`` of a function of one's own shows while its ``forward`` and its ``backward`` run."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat import Tensor

#: What a ``ctx`` shows while ``forward`` runs, and while ``backward`` does where that differs.
ATTRIBUTES = {
    "dirty_tensors": None,
    "metadata": {},
    "needs_input_grad": (True,),
    "non_differentiable": None,
    "requires_grad": True,
    "saved_for_forward": None,
    "saved_tensors": (),
    "saved_variables": (),
    "to_save": None,
    "_materialize_non_diff_grads": True,
    "_raw_saved_tensors": (),
}


def shown(ctx: Any) -> dict[str, Any]:
    """What can be read of a ``ctx`` that is no method, None for what only can be written."""
    names = [name for name in dir(ctx) if not name.startswith("__")]
    return {name: value for name in names if not callable(value := getattr(ctx, name, None))}


@pytest.mark.filterwarnings("ignore:'saved_variables' is deprecated:DeprecationWarning")
def test_attributes_of_ctx() -> None:
    seen: list[dict[str, Any]] = []

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, i: Tensor) -> Tensor:
            seen.append(shown(ctx))
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            seen.append(shown(ctx))
            (result,) = ctx.saved_tensors
            return grad_output * result

    x = torch.tensor(2.0, requires_grad=True)
    y = Exp.apply(x)
    assert repr(y) == "tensor(7.3891, grad_fn=<ExpBackward>)"
    assert x.grad is None
    y.backward()
    assert repr(x.grad) == "tensor(7.3891)"
    forward, backward = seen
    assert {name: forward.get(name, "missing") for name in ATTRIBUTES} == ATTRIBUTES
    changed = {"saved_tensors", "saved_variables", "_raw_saved_tensors"}
    assert {name: backward.get(name, "missing") for name in ATTRIBUTES.keys() - changed} == {
        name: ATTRIBUTES[name] for name in ATTRIBUTES.keys() - changed
    }
    for name in ("saved_tensors", "saved_variables"):
        assert repr(backward[name]) == "(tensor(7.3891, grad_fn=<ExpBackward>),)"
    assert [type(kept).__name__ for kept in backward["_raw_saved_tensors"]] == ["SavedTensor"]
    for found in seen:
        ((node, number),) = found["next_functions"]
        assert node.variable is x and number == 0


@pytest.mark.filterwarnings("default:'saved_variables' is deprecated:DeprecationWarning")
def test_saved_variables_is_an_old_name() -> None:
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.clone()

    y = Kept.apply(torch.ones(1, requires_grad=True))
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        assert y.grad_fn.saved_variables == y.grad_fn.saved_tensors
