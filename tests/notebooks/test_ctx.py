"""The ``ctx`` of a custom function while its ``forward`` and its ``backward`` run."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat import Tensor

#: The attributes of a ``ctx`` while ``forward`` runs, and while ``backward`` does where they differ.
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
    "_compiled_autograd_backward_state": None,
    "_input_metadata": (),
    "_is_pure_view": None,
    "_materialize_non_diff_grads": True,
    "_raw_saved_tensors": (),
    "materialize_grads": None,
}


def shown(ctx: Any) -> dict[str, Any]:
    """The readable attributes of a ``ctx`` that are not methods, None for write-only ones."""
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
    for found in seen:
        ((node, number),) = found.pop("next_functions")
        assert node.variable is x and number == 0
        assert type(found.pop("_autograd_function_id")) is int
    assert forward == ATTRIBUTES
    changed = {"saved_tensors", "saved_variables", "_raw_saved_tensors", "_input_metadata"}
    assert {name: backward[name] for name in backward.keys() - changed} == {
        name: ATTRIBUTES[name] for name in ATTRIBUTES.keys() - changed
    }
    for name in ("saved_tensors", "saved_variables"):
        assert repr(backward[name]) == "(tensor(7.3891, grad_fn=<ExpBackward>),)"
    assert [type(kept).__name__ for kept in backward["_raw_saved_tensors"]] == ["SavedTensor"]
    (expected,) = backward["_input_metadata"]
    assert repr(expected).startswith("<torch._C._autograd._InputMetadata object at 0x")
    assert (expected.shape, expected.dtype, expected.device.type) == ([], torch.float32, "cpu")


def test_dict_of_ctx_is_the_users() -> None:
    class Noting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            assert vars(ctx) == {}
            ctx._note = ctx.note = 1
            ctx.save_for_backward(x)
            return x.clone()

    node = Noting.apply(torch.ones(1, requires_grad=True)).grad_fn
    assert vars(node) == {"note": 1, "_note": 1} and {"note", "_note"} <= set(dir(node))


def test_names_of_a_changed_view_s_node() -> None:
    t = torch.ones(2, requires_grad=True) * 1
    t[0] = 2.0
    names = {name for name in dir(t.grad_fn) if not name.startswith("__")}
    shown = {"_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr"}
    methods = {"metadata", "name", "next_functions", "register_hook", "register_prehook", "requires_grad"}
    assert (t.grad_fn.name(), names) == ("torch::autograd::CopySlices", shown | methods)


def test_attributes_that_can_only_be_set() -> None:
    class Setting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            for name in ("materialize_grads", "_is_pure_view"):
                with pytest.raises(AttributeError, match=f"attribute '{name}' of .* objects is not readable"):
                    getattr(ctx, name)
                with pytest.raises(
                    TypeError, match=r"invalid combination of arguments - got \(\), but expected \(bool\)"
                ):
                    setattr(ctx, name, 1)
            return x.clone()

    Setting.apply(torch.ones(1))


@pytest.mark.parametrize("pure", [False, True])
def test_a_pure_view_may_be_written(pure: bool) -> None:
    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx._is_pure_view = pure
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad.view(2, 2)

    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    flat = Flat.apply(y)
    if not pure:
        with pytest.raises(RuntimeError, match="view was created inside a custom Function"):
            flat.mul_(2)
        return
    flat.mul_(2)
    assert [t.grad_fn.name() for t in (flat, y)] == ["AsStridedBackward0", "torch::autograd::CopySlices"]
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.filterwarnings("default:'saved_variables' is deprecated:DeprecationWarning")
def test_saved_variables_is_a_deprecated_name() -> None:
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.clone()

    y = Kept.apply(torch.ones(1, requires_grad=True))
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        assert y.grad_fn.saved_variables == y.grad_fn.saved_tensors
