"""``torch.masked.MaskedTensor``: printed forms, functions, reductions, gradients, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import compat as torch
from compat.masked import as_masked_tensor, is_masked_tensor, masked_tensor

DATA = torch.arange(6.0).view(2, 3) - 2
MASK = torch.tensor([[True, False, True], [False, False, True]])


def _given(requires_grad: bool = False) -> Any:
    return masked_tensor(DATA.clone(), MASK, requires_grad)


#: What PyTorch 2.13 prints.
_PRINTED = """MaskedTensor(
  [
    [ -2.0000,       --,   0.0000],
    [      --,       --,   3.0000]
  ]
)"""


def test_printed_forms_are_those_of_pytorch() -> None:
    x = _given()
    assert repr(x) == str(x) == _PRINTED
    assert str(x[0]) == "MaskedTensor(\n  [ -2.0000,       --,   0.0000]\n)"
    assert str(x.sum()) == "MaskedTensor(  1.0000, True)" and str(x[0, 1]) == "MaskedTensor(--, False)"
    counts = masked_tensor(torch.arange(4), torch.arange(4) > 1)
    assert str(counts) == "MaskedTensor(\n  [      --,       --, 2, 3]\n)"
    assert is_masked_tensor(x) and not is_masked_tensor(DATA) and len(x) == 2 and x.shape == (2, 3)


@pytest.mark.parametrize(
    ("function", "values", "mask"),
    [
        (lambda x: x.abs(), [[2, 0, 0], [0, 0, 3]], MASK),
        (lambda x: 1 - x * 2, [[5, 0, 1], [0, 0, -5]], MASK),
        (lambda x: x + DATA, [[-4, 0, 0], [0, 0, 6]], MASK),
        (lambda x: torch.maximum(x, -x), [[2, 0, 0], [0, 0, 3]], MASK),
        (lambda x: x.sum(1), [-2, 3], torch.tensor([True, True])),
        (lambda x: x.mean(0), [-2, 0, 1.5], torch.tensor([True, False, True])),
        (lambda x: x.prod(), 0, torch.tensor(True)),
        (lambda x: x.amax(1, keepdim=True), [[0], [3]], torch.tensor([[True], [True]])),
        (lambda x: x.argmin(1), [0, 2], torch.tensor([True, True])),
        (lambda x: (x > 0).all(1), [0, 1], torch.tensor([True, True])),
        (lambda x: x.t(), [[-2, 0], [0, 0], [0, 3]], MASK.t()),
        (lambda x: torch.cat([x, x[:1]]), [[-2, 0, 0], [0, 0, 3], [-2, 0, 0]], MASK[[0, 1, 0]]),
        (lambda x: x.view(3, 2).unbind()[1], [0, 0], torch.tensor([True, False])),
        (lambda x: x.clone().add_(1), [[-1, 0, 1], [0, 0, 4]], MASK),
        (torch.ones_like, [[1, 0, 1], [0, 0, 1]], MASK),
        (copy.deepcopy, [[-2, 0, 0], [0, 0, 3]], MASK),
        (lambda x: pickle.loads(pickle.dumps(x)), [[-2, 0, 0], [0, 0, 3]], MASK),
    ],
)
def test_functions(function: Any, values: Any, mask: Any) -> None:
    found = function(_given())
    assert found.get_mask().tolist() == mask.tolist() and found.to_tensor(0).tolist() == values


def test_gradients_have_the_mask_and_none_comes_through_masked_elements() -> None:
    x = _given(True)
    (x.exp() * x).sum().backward()
    want = (DATA.exp() * (DATA + 1)).masked_fill(~MASK, 0)
    assert is_masked_tensor(x.grad) and torch.equal(x.grad.to_tensor(0), want)
    data = torch.tensor([1.0, torch.inf, 4.0], requires_grad=True)
    as_masked_tensor(data.sqrt(), torch.tensor([True, False, True])).mean().backward()
    assert data.grad.tolist() == [0.25, 0.0, 0.125]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: masked_tensor([1.0], MASK), TypeError, "data must be a Tensor"),
        (lambda x: masked_tensor(DATA, 3), TypeError, "mask must be a Tensor"),
        (lambda x: masked_tensor(DATA, MASK.float()), TypeError, "mask must have dtype bool"),
        (lambda x: masked_tensor(DATA, MASK[0]), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
        (lambda x: masked_tensor(DATA, MASK[:1]), ValueError, r"data.size\(\) must equal mask.size\(\)"),
        (lambda x: x + masked_tensor(DATA, ~MASK), ValueError, "Input masks must match"),
        (torch.fft.fft, TypeError, "on types that implement MaskedTensor"),
        (lambda x: x.numpy(), RuntimeError, "not supported for tensor subclasses"),
    ],
)
def test_errors(function: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(_given())


def test_where_chooses_values_and_masks() -> None:
    x = torch.tensor([-1.0, 2.0, 3.0])
    a, b = masked_tensor(x, x < 0, requires_grad=True), masked_tensor(x * 10, x > 0, requires_grad=True)
    found = torch.where(x < 3, a, b)
    assert str(found) == "MaskedTensor(\n  [ -1.0000,       --,  30.0000]\n)"
    found.sum().backward()
    assert a.grad.to_tensor(0).tolist() == [1, 0, 0] and b.grad.to_tensor(0).tolist() == [0, 0, 1]
    assert str(torch.where(x < 3, a, 7.0)) == "MaskedTensor(\n  [ -1.0000,       --,   7.0000]\n)"


def test_autograd_functions_take_masked_tensors() -> None:
    x, unused = _given(requires_grad=True), _given(requires_grad=True)
    (found,) = torch.autograd.grad((x * x).sum(), x)
    assert is_masked_tensor(found) and str(found) == str(masked_tensor(DATA * 2, MASK)) and x.grad is None
    ones = masked_tensor(torch.ones(2, 3), MASK)
    (found,) = torch.autograd.grad([x * x, x + 1], [x], [ones, ones])
    assert str(found) == str(masked_tensor(DATA * 2 + 1, MASK))
    (found,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert str(torch.autograd.grad(found.sum(), x)[0]) == str(masked_tensor(DATA * 6, MASK))
    assert torch.autograd.grad(x.sum(), [x, unused], allow_unused=True)[1] is None
    torch.autograd.backward([x * 2], [ones])
    assert str(x.grad) == str(masked_tensor(torch.full((2, 3), 2.0), MASK))
    x.grad = None
    (x * 3).backward(torch.ones(2, 3))
    assert str(x.grad) == str(masked_tensor(torch.full((2, 3), 3.0), MASK))
