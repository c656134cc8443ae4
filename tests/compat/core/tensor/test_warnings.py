"""Warnings name the line of the program, and some are issued once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import compat as torch
from compat._core.types.errors import Once


@pytest.fixture(autouse=True)
def _unsaid() -> Iterator[None]:
    said = set(Once.said)
    Once.said.clear()
    yield
    Once.said.clear()
    Once.said.update(said)
    torch.set_warn_always(False)


def _warned(function: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    assert all(w.filename == __file__ for w in found)
    return [str(w.message).partition(" ")[0] for w in found]


def test_a_scalar_of_the_graph() -> None:
    x = torch.ones((), requires_grad=True)
    assert _warned(lambda: [float(x), complex(x), float(x * 2)]) == ["Converting"]
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled() and _warned(lambda: [float(x), complex(x)]) == ["Converting"] * 2
    for quiet in (
        lambda: int(x),
        x.item,
        lambda: bool(x),
        lambda: float(x.detach()),
        torch.no_grad()(lambda: float(x)),
    ):
        assert _warned(quiet) == []


def _not_a_leaf() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    _ = x.grad


def _graph_of_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    x.grad = None


def _order() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1)
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()


def _checkpointed() -> None:
    torch.utils.checkpoint.checkpoint(torch.relu, torch.ones(2), use_reentrant=True)


@pytest.mark.parametrize(
    ("function", "first"),
    [(_not_a_leaf, "The"), (_graph_of_gradients, "Using"), (_order, "Detected"), (_checkpointed, "None")],
)
def test_the_line_is_the_programs(function: Callable[[], Any], first: str) -> None:
    assert first in _warned(function)


def test_warnings_of_beta_operators_and_slow_layouts() -> None:
    one, at = torch.ones(1), torch.tensor([0])
    assert _warned(lambda: [torch.ones(3).index_reduce(0, at, one, "prod") for _ in range(2)]) == ["index_reduce()"]
    columns = torch.arange(6.0).view(2, 3).t()
    assert _warned(lambda: torch.searchsorted(columns, torch.ones(3, 1))) == ["torch.searchsorted():"]
    assert _warned(lambda: torch.bucketize(columns, torch.arange(3.0))) == ["torch.searchsorted():"]
    assert not _warned(lambda: torch.searchsorted(columns, columns))


def test_meshgrid_without_indexing_warns() -> None:
    x = torch.ones(2)
    assert _warned(lambda: [torch.meshgrid(x, x), torch.meshgrid([x])]) == ["torch.meshgrid:"]
    assert not _warned(lambda: [torch.meshgrid(x, x, indexing="ij"), torch.cartesian_prod(x, x)])


_MATRIX = torch.eye(3) * 2


@pytest.mark.parametrize(
    ("run", "begin"),
    [
        (lambda: torch.qr(_MATRIX), "torch.qr is deprecated in favor of torch.linalg.qr"),
        (lambda: torch.cholesky(_MATRIX), "torch.cholesky is deprecated in favor of torch.linalg.cholesky"),
        (lambda: torch.lu_solve(_MATRIX, *torch.linalg.lu_factor(_MATRIX)), "torch.lu_solve is deprecated in favor"),
        (lambda: torch.triangular_solve(_MATRIX, _MATRIX), "torch.triangular_solve is deprecated in favor"),
        (lambda: torch.chain_matmul(_MATRIX, _MATRIX), "torch.chain_matmul is deprecated"),
        (lambda: torch.cross(_MATRIX, _MATRIX), "Using torch.cross without specifying the dim arg is deprecated"),
        (lambda: torch.ones(2, 2, 2).T, "The use of `x.T` on tensors of dimension other than 2"),
        (lambda: torch.ones(()).T, "Tensor.T is deprecated on 0-D tensors"),
        (lambda: torch.stft(torch.ones(64), 16, return_complex=True), "A window was not provided"),
        (
            lambda: torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 4), padding="same"),
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy",
        ),
        (lambda: torch.where(torch.ones(2, dtype=torch.uint8), _MATRIX[:2, 0], 0.0), "where received a uint8 cond"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "The PyTorch API of nested tensors is"),
    ],
)
def test_what_pytorch_warns_of_once(run: Callable[[], Any], begin: str) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
        run()
    assert len(found) == 1 and str(found[0].message).startswith(begin)


def test_a_warning_of_masked_tensors_and_of_resize() -> None:
    with pytest.warns(UserWarning, match="The PyTorch API of MaskedTensors is in prototype stage"):
        torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        torch.ones(2).resize(2)
