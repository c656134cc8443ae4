"""Sums, means, products, extrema, variances; cumulative reductions; softmax."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from funcgrad import runtime
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("source", "want"), cases("reductions"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


X = np.random.default_rng(3).standard_normal((3, 4))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.prod(1),
        lambda x: x.amax(0),
        lambda x: x.min(1)[0],
        lambda x: x.max(),
        lambda x: x.var(1),
        lambda x: x.std(0, correction=0),
        lambda x: torch.std_mean(x, 1)[0] * torch.std_mean(x, 1)[1],
        lambda x: x.logsumexp(1),
        lambda x: x.softmax(0),
        lambda x: x.log_softmax(1),
        lambda x: x.cumprod(0),
        lambda x: x.cummax(1)[0] ** 2,
        lambda x: x.logcumsumexp(1),
    ],
)
def test_derivatives_are_differences(f: Callable[[Any], Any]) -> None:
    assert_derivatives(torch, f, X)


def test_gradients_where_factors_are_zero() -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0.0, 6.0, 0.0]


def test_halves_are_added_up_in_single_precision() -> None:
    # 4096 ones: in float16 the running sum would stop at 2048.
    ones = torch.ones(4096, dtype=torch.float16)
    assert ones.sum().item() == 4096
    assert ones.mean().item() == 1
    assert ones.cumsum(0)[-1].item() == 4096


def test_softmax_neither_overflows_nor_loses_small_ones() -> None:
    x = torch.tensor([0.0, 1000.0], requires_grad=True)
    assert x.softmax(0).tolist() == [0.0, 1.0]
    assert x.log_softmax(0).tolist() == [-1000.0, 0.0]
    x.log_softmax(0)[0].backward()
    assert x.grad.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("by_numpy", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_softmax_of_infinite_numbers(dtype: Any, by_numpy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # As PyTorch: where the maximum is infinite or not a number, so is the sum.
    monkeypatch.setattr(runtime.settings, "by_numpy", by_numpy)
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[-inf, 3.0], [-inf, -inf], [inf, 1.0], [nan, 1.0]], dtype=dtype)
    rows = [[0.0, 1.0], [nan, nan], [nan, nan], [nan, nan]]
    np.testing.assert_array_equal(x.softmax(1).tolist(), rows)
    np.testing.assert_array_equal(x.log_softmax(1).tolist(), [[-inf, 0.0], *rows[1:]])


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "amin", "logsumexp", "var", "argmax", "cumsum"])
def test_a_dimension_may_be_called_an_axis(name: str) -> None:
    x = torch.tensor(X)
    by_axis, by_dim = (getattr(torch, name)(x, **{word: 1}) for word in ("axis", "dim"))
    if isinstance(by_axis, tuple):
        by_axis, by_dim = by_axis[0], by_dim[0]
    assert by_axis.tolist() == by_dim.tolist()


def test_results_go_into_out() -> None:
    x = torch.tensor(X)
    values, indices = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, indices))
    assert found.values is values
    np.testing.assert_array_equal(values.numpy(), X.max(1))
    np.testing.assert_array_equal(indices.numpy(), X.argmax(1))
    assert torch.sum(x, 1, out=values) is values
    np.testing.assert_allclose(values.numpy(), X.sum(1), rtol=1e-14)


def test_a_missing_dimension_is_named() -> None:
    with pytest.raises(TypeError, match='cumsum\\(\\) missing 1 required positional arguments: "dim"'):
        torch.tensor(X).cumsum()


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_too_few_numbers_for_a_variance(name):
    with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0") as caught:
        getattr(torch, name)(torch.ones(2, 1), 1)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_enough_numbers_for_a_variance():
    assert torch.ones(2).var(correction=1.5).item() == 0.0
    assert torch.ones(1).std(unbiased=False).item() == 0.0
    assert torch.ones(2, 1).var((0, 1)).item() == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(min=3, max=1), "max must be larger than min"),
        (dict(min=0, max=float("inf")), r"range of \[0, inf\] is not finite"),
        (dict(), r"range of \[1, inf\] is not finite"),
        (
            dict(min=0, max=2, out=torch.empty(0, dtype=torch.int32)),
            "input tensor and hist tensor should have the same",
        ),
    ],
)
def test_histogram_of_infinite_values_raises(options, message):
    with pytest.raises(RuntimeError, match=message):
        torch.histc(torch.tensor([1.0, float("inf")]), 2, **options)


def test_places_are_integers():
    with pytest.raises(RuntimeError, match=r"it can only be Int.* but we got output tensor's dtype Float"):
        torch.bucketize(torch.ones(3), torch.ones(3), out=torch.empty(0))
    with pytest.raises(RuntimeError, match="input value can be a scalar only when boundaries tensor dimension is 1"):
        torch.searchsorted(torch.ones(2, 3), 1.0)


def test_distances_are_real_numbers():
    with pytest.raises(RuntimeError, match="trapezoid: Currently, we only support dx as a real number"):
        torch.trapezoid(torch.ones(3), dx=1j)
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        torch.trapezoid(torch.tensor(1.0))


def test_second_derivative_of_logcumsumexp_of_equal_numbers():
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: torch.logcumsumexp(x, 0), x)


def test_the_product_of_one_number_keeps_it() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    node = x.prod(0).grad_fn
    assert node is not None and node._saved_self is x and node._saved_result.item() == 3.0


def test_the_dimension_of_var_may_be_a_tensor():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.var(torch.tensor(1)).tolist() == x.std(dim=[torch.tensor(1)]).tolist() == [1.0, 1.0]
