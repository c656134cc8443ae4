"""The steps of a ``vmap`` under PyTorch's private names, called and replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import compat as torch
from compat._functorch import vmap as steps


class Box:
    """A container that is not a pytree."""

    def __init__(self, value: Any):
        self.value = value


@pytest.fixture
def boxes_are_batched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces the steps, as tensordict does, by steps for functions of one box."""

    def process(in_dims: Any, args: tuple, func: Any) -> tuple:
        return args[0].value.shape[0], [0], list(args), steps.tree_flatten(args)[1]

    def create(dims: Any, leaves: Any, level: int, tree: Any) -> tuple:
        return (Box(torch._C._functorch._add_batch_dim(leaves[0].value, 0, level)),)

    def unwrap(result: Any, out_dims: Any, level: int, size: int, func: Any) -> Box:
        return Box(steps._maybe_remove_batch_dim("f", result.value, level, size, out_dims))

    with monkeypatch.context() as replaced:
        replaced.setattr(steps, "_process_batched_inputs", process)
        replaced.setattr(steps, "_create_batched_inputs", create)
        replaced.setattr(steps, "_unwrap_batched", unwrap)
        yield


def test_a_package_replaces_steps(boxes_are_batched: None) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(lambda b: Box(b.value.sum()))(Box(x)).value.tolist() == [3, 12]


def test_in_place_writes_of_a_mapped_function_change_the_argument(boxes_are_batched: None) -> None:
    x = torch.zeros(2, 3)
    found = torch.vmap(lambda b: Box(b.value.add_(1)))(Box(x)).value
    assert x.sum() == 6 and found.data_ptr() == x.data_ptr()


def test_steps_are_put_back() -> None:
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(steps, "_unwrap_batched", lambda *given: "mine")
        assert torch.vmap(torch.sin)(torch.ones(2)) == "mine"
    assert torch.equal(torch.vmap(torch.sin)(torch.ones(2)), torch.ones(2).sin())


def test_the_steps_themselves_are_vmap() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(steps, "_unwrap_batched", lambda *given, own=steps._unwrap_batched: own(*given))
        a, b = torch.vmap(lambda x, y: (x * y, 1 + y), (1, None), (1, None))(x, torch.ones(2))
        with pytest.raises(ValueError, match="sizes \\[2, 3\\]"):
            torch.vmap(torch.add)(x, torch.ones(3))
    assert torch.equal(a, x) and b.tolist() == [2, 2]


def test_a_vmap_entered_by_hand() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    with steps.vmap_increment_nesting(3, "error") as level:
        element = steps._add_batch_dim(x, -1, level)
        assert element.shape == (2,) and torch._C._functorch.is_batchedtensor(element)
        back = steps._remove_batch_dim(element * 2, level, 3, 0)
    assert torch.equal(back, 2 * x.T)
    with pytest.raises(RuntimeError, match="vmap_level=1: no vmap runs at this level; 0 transforms are running"):
        steps._add_batch_dim(x, 0, 1)
