"""NumPy's numbers beside tensors, Python's types as dtypes, overflow checks, and ``out`` of another shape."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("numbers"))
def test_numbers_are_converted_as_pytorch_does(source: str, want: Any) -> None:
    assert_same(observe(torch, source), want)


def test_overflow_is_checked_in_every_call() -> None:
    x = torch.tensor([1.0])
    assert x.clamp(max=2.0).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        x.clamp(max=1e300)
    assert (x + 1).tolist() == [2.0] and (x + 2**63).tolist() == [2.0**63] and (x + 1).tolist() == [2.0]


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.int8(2)])
def test_numpys_numbers_are_numbers(number: Any) -> None:
    x = torch.tensor([1.0, 3.0])
    for found, wanted in [
        (x + number, [3, 5]),
        (number + x, [3, 5]),
        (x * number, [2, 6]),
        (number * x, [2, 6]),
        (x / number, [0.5, 1.5]),
        (x**number, [1, 9]),
        (number - x, [1, -1]),
        (torch.add(x, number), [3, 5]),
        (x.clone().mul_(number), [2, 6]),
        (torch.clamp(x, max=number), [1, 2]),
    ]:
        assert found.dtype is torch.float32 and found.tolist() == wanted
    assert (x > number).tolist() == [False, True]
    assert (torch.tensor([1]) * np.float64(2)).dtype is torch.float32


def test_numbers_alone() -> None:
    assert torch.add(True, True).item() is True
    assert torch.mul(2, 3).item() == 6 and torch.mul(2, 3).dtype is torch.int64


def test_pythons_types_are_dtypes() -> None:
    assert torch.zeros(1, dtype=int).dtype is torch.ones(1).to(int).dtype is torch.arange(3, dtype=int).dtype
    assert torch.randn(2, dtype=float).dtype is torch.ones(2).sum(dtype=float).dtype is torch.float64
    with pytest.raises(TypeError, match=r"zeros\(\): argument 'dtype' must be torch.dtype, not type"):
        torch.zeros(1, dtype=str)


@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_out_of_an_integers_range(source: Any) -> None:
    """As on x86: the smallest number of a register, of which small integers have the low bits."""
    x = torch.tensor([-1.5, -200.0, 3e9, float("inf"), float("nan")], dtype=source)
    least = -(2**31)
    assert x.to(torch.uint8).tolist() == [255, 56, 0, 0, 0]
    assert x.to(torch.int8).tolist() == [-1, 56, 0, 0, 0]
    assert x.to(torch.int32).tolist() == [-1, -200, least, least, least]
    assert x.to(torch.int64).tolist()[3:] == [-(2**63)] * 2
    assert torch.zeros(1, dtype=torch.uint8).copy_(torch.tensor([256.0])).tolist() == [0]


@pytest.mark.parametrize("name", ["arange", "range", "linspace", "logspace"])
def test_sequences_keep_the_shape_of_out(name: str) -> None:
    make = getattr(torch, name)
    x = torch.zeros(2, 3)
    arguments = {"arange": (0, 4), "range": (0, 3)}.get(name, (0, 3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make(*arguments, out=x.narrow(1, 1, 2))
        assert made.flatten().tolist() == make(*arguments, dtype=torch.float32).tolist()
    assert made.shape == (2, 2) and x[:, 0].tolist() == [0, 0]
    assert x[0, 1:].tolist() + x[1, 1:].tolist() == made.flatten().tolist()


def test_errors() -> None:
    with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[2, 4, 536870912"):
        torch.empty([2, 4, 2**29, 2**29])
    for size, error in (
        ((8, 2**29, 2**29), r"Storage size calculation overflowed with sizes=\[8, 536870912"),
        ((2**40, 2**40), "numel: integer multiplication overflow"),
        ((0, 4, 2**61), "Stride calculation overflowed"),
    ):
        x = torch.ones(2)
        with pytest.raises(RuntimeError, match=error):
            x.resize_(size)
        assert x.tolist() == [1, 1]
    assert torch.ones(2).resize_(2**48, 0, 2**20).shape == (2**48, 0, 2**20)
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        torch.tensor(nested)
    with pytest.raises(RuntimeError, match="Expected out tensor to have scalar type Long"):
        torch.nonzero(torch.ones(2), out=torch.zeros(2))
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        torch.range(0, 1)


def test_a_list_of_lists_stands_for_a_tuple() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for index in ([[0, 1], [1, 2]], [torch.tensor([0, 1]), torch.tensor([1, 2])]):
        with pytest.warns(UserWarning, match="non-tuple sequence"):
            assert x[index].tolist() == [1, 6]
    assert x[np.array([[0, 1], [1, 2]])].shape == (2, 2, 4)
    with pytest.raises(TypeError, match=r"can't assign a numpy.ndarray to a torch.FloatTensor"):
        x[0] = np.arange(4.0)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        x[0] = 1j


@pytest.mark.filterwarnings("ignore:This overload")
def test_the_second_operand_of_a_deprecated_sum_may_be_a_number() -> None:
    x = torch.ones(2, dtype=torch.int32)
    assert torch.add(x, 2, 3).tolist() == [7, 7] and torch.add(x, 2, 3).dtype is torch.int32
    assert x.sub(2, 2.5).tolist() == [-4.0, -4.0] and x.add_(2, True).tolist() == [3, 3]
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        torch.add(x, x, 1)


@pytest.mark.parametrize("make", [lambda: torch.eye(2**25, 2**25), lambda: torch.linspace(0, 1, 2**50)])
def test_allocations_that_are_too_large_raise_runtime_errors(make: Any) -> None:
    with pytest.raises(RuntimeError, match=f"you tried to allocate {2**52} bytes"):
        make()


def test_indices_of_triangles_are_as_many_as_are_counted() -> None:
    for row, col in ((3, 4), (4, 2), (0, 3), (3, 0)):
        for offset in range(-5, 6):
            for indices, part in ((torch.tril_indices, np.tril), (torch.triu_indices, np.triu)):
                wanted = np.stack(part(np.ones((row, col)), offset).nonzero())
                assert np.array_equal(indices(row, col, offset).numpy(), wanted)
    with pytest.raises(RuntimeError, match=f"you tried to allocate {16 * (2**24 * (2**25 + 1))} bytes"):
        torch.tril_indices(2**25, 2**25)
