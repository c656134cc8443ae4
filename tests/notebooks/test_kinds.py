"""Functions with a node of their own, their derivatives, and their composite forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import Tensor, nn
from compat.nn import functional as F


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


LAST: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "x + 1": (lambda x: x + 1, "AddBackward0"),
    "x ** 2": (lambda x: x**2, "PowBackward0"),
    "x / 2": (lambda x: x / 2, "DivBackward0"),
    "linear": (nn.Linear(2, 2), "AddmmBackward0"),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, x), "SumBackward1"),
    "glu": (F.glu, "GluBackward0"),
    "relu": (F.relu, "ReluBackward0"),
    "sigmoid": (torch.sigmoid, "SigmoidBackward0"),
    "gumbel_softmax": (F.gumbel_softmax, "SoftmaxBackward0"),
    "exp": (torch.exp, "ExpBackward0"),
    "log": (lambda x: torch.log(x.abs()), "LogBackward0"),
}


@pytest.mark.parametrize(("f", "name"), LAST.values(), ids=LAST)
def test_last_operation(f: Callable[[Tensor], Tensor], name: str) -> None:
    assert f(torch.randn(3, 2, requires_grad=True)).grad_fn.name() == name


def test_a_module_is_its_function() -> None:
    linear, x = nn.Linear(2, 2), torch.randn(3, 2)
    assert torch.equal(F.linear(x, linear.weight, linear.bias), linear(x))
    conv, image = nn.Conv1d(2, 3, 2), torch.randn(1, 2, 5)
    assert torch.equal(F.conv1d(image, conv.weight, conv.bias), conv(image))


class MyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


def test_two_layers() -> None:
    data, w1, w2 = torch.randn(4, 3), torch.randn(3, 5, requires_grad=True), torch.randn(5, 2, requires_grad=True)
    gradients = []
    for relu, name in ((lambda h: h.clamp(min=0), "ClampBackward1"), (MyReLU.apply, "MyReLUBackward")):
        loss = (relu(data.mm(w1)).mm(w2) - torch.ones(4, 2)).pow(2).sum()
        node, names = loss.grad_fn, []
        while node is not None:
            names.append(node.name().removesuffix("0"))
            node = node.next_functions[0][0]
        assert " ".join(names) == f"SumBackward PowBackward SubBackward MmBackward {name} MmBackward"
        gradients.append(torch.autograd.grad(loss, (w1, w2)))
    assert all(map(torch.equal, *gradients))


def test_cosine_similarity_of_itself() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    similarity = F.cosine_similarity(x, x)
    assert torch.allclose(similarity, torch.ones(3))
    similarity.sum().backward()
    assert torch.allclose(x.grad, torch.zeros(3, 4), atol=1e-6)


def test_gumbel_softmax_of_a_seed() -> None:
    sample = F.gumbel_softmax(torch.zeros(2, 3), tau=1.0)
    assert str(sample) == "tensor([[0.1047, 0.2984, 0.5969],\n        [0.1974, 0.4831, 0.3195]])"
    torch.manual_seed(0)
    assert F.gumbel_softmax(torch.zeros(2, 3), hard=True).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_nothing_to_differentiate() -> None:
    x = torch.randn(3, 2, requires_grad=True)
    assert not x.argmax(1).requires_grad and not (x > 0).requires_grad
    assert torch.ones(3).exp().grad_fn is None


def test_in_place_where_the_value_is_needed() -> None:
    y = torch.sigmoid(torch.randn(3, requires_grad=True))
    F.relu(y, inplace=True)
    with pytest.raises(RuntimeError, match=r"has been modified by an inplace operation: \[torch.FloatTensor \[3\]\]"):
        y.sum().backward()


def test_in_place_where_it_is_not() -> None:
    x, linear = torch.randn(3, 2, requires_grad=True), nn.Linear(2, 2)
    y = linear(x)
    assert F.relu(y, inplace=True) is y and (y.grad_fn.name(), y._version) == ("ReluBackward0", 1)
    y.sum().backward()
    by_copy = torch.autograd.grad(F.relu(linear(x)).sum(), x)[0]
    assert torch.equal(x.grad, by_copy)


# ---------------------------------------------------------------- derivatives


def test_softmax() -> None:
    logits = torch.randn(4, requires_grad=True)
    y = F.softmax(logits, dim=0)
    (row,) = torch.autograd.grad(y[1], logits)
    own = torch.arange(4) == 1
    assert torch.allclose(row, torch.where(own, y - y**2, -y * y[1]), atol=1e-6)
    certain = torch.tensor([3e20, 1.0, 0.0], requires_grad=True)
    (row,) = torch.autograd.grad(F.softmax(certain, dim=0)[0], certain)
    assert str(row) == "tensor([0., -0., -0.])"


def test_sigmoid_is_softmax_against_zero() -> None:
    x = torch.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    s = torch.sigmoid(x)
    (slope,) = torch.autograd.grad(s.sum(), x)
    assert torch.allclose(slope, s - s**2)
    assert torch.allclose(s, F.softmax(torch.stack([x, torch.zeros(3)]), dim=0)[0])


def test_log() -> None:
    x = torch.tensor([0.5, 1.0, 4.0], requires_grad=True)
    torch.log(x).sum().backward()
    assert x.grad.tolist() == [2.0, 1.0, 0.25]


def test_log_softmax() -> None:
    logits = torch.randn(4, requires_grad=True)
    (row,) = torch.autograd.grad(F.log_softmax(logits, dim=0)[1], logits)
    assert torch.allclose(row, F.one_hot(torch.tensor(1), 4) - F.softmax(logits, dim=0), atol=1e-6)
    assert torch.allclose(F.log_softmax(logits, dim=0), torch.log(F.softmax(logits, dim=0)), atol=1e-6)


def test_cross_entropy() -> None:
    scores, target = torch.randn(3, 4, requires_grad=True), torch.tensor([2, 0, 1])
    loss = F.cross_entropy(scores, target, reduction="sum")
    apart = nn.NLLLoss(reduction="sum")(nn.LogSoftmax(dim=1)(scores), target)
    assert torch.equal(loss, apart)
    assert [loss.grad_fn.name(), loss.grad_fn.next_functions[0][0].name()] == [
        "NllLossBackward0",
        "LogSoftmaxBackward0",
    ]
    loss.backward()
    assert torch.allclose(scores.grad, F.softmax(scores, 1) - F.one_hot(target, 4), atol=1e-6)


@pytest.mark.parametrize("size", [(), (1,), (3,)])
def test_the_loss_of_the_certain_is_no_loss(size: tuple[int, ...]) -> None:
    scores = torch.tensor([200.0, 0.0, 0.0]).expand(*size, 3)
    loss = F.cross_entropy(scores, torch.zeros(size, dtype=torch.int64))
    assert repr(loss) == "tensor(0.)", "and not -0."


def test_cat_splits_gradients() -> None:
    first, second = torch.ones(2, 2, requires_grad=True), torch.ones(2, 1, requires_grad=True)
    torch.cat([first, second], dim=1).backward(torch.arange(6.0).view(2, 3))
    assert first.grad.tolist() == [[0, 1], [3, 4]] and second.grad.tolist() == [[2], [5]]


def test_mean() -> None:
    x = torch.ones(4, requires_grad=True)
    x.mean().backward()
    assert x.grad.tolist() == [0.25] * 4


def test_no_grad_in_the_middle() -> None:
    w1, w2 = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        h = w1 * 5
    (h * w2 + w1).backward()
    assert (w1.grad.item(), w2.grad.item()) == (1.0, 10.0)


# ---------------------------------------------------------------- equivalent functions


@pytest.mark.parametrize(
    "options", [{}, {"padding": 1}, {"stride": 2}, {"dilation": 2}, {"padding": 2, "stride": 3, "dilation": 2}], ids=str
)
def test_convolution_is_unfold_and_a_product(options: dict[str, int]) -> None:
    images = torch.randn(2, 3, 10, 12, requires_grad=True)
    weight = torch.randn(4, 3, 3, 2, requires_grad=True)
    direct = F.conv2d(images, weight, **options)
    product = F.unfold(images, (3, 2), **options).transpose(1, 2).matmul(weight.view(4, -1).t()).transpose(1, 2)
    folded = F.fold(product, direct.shape[2:], (1, 1))
    assert torch.equal(folded, product.view_as(direct))
    assert torch.allclose(folded, direct, atol=1e-5)
    g = torch.randn(direct.shape)
    for ours, theirs in zip(
        torch.autograd.grad(folded, (images, weight), g), torch.autograd.grad(direct, (images, weight), g)
    ):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_convolution_of_one_is_a_linear_layer() -> None:
    pixels, fc = torch.randn(2, 3, 4, 4), nn.Linear(3, 5)
    by_fc = fc(pixels.movedim(1, -1)).movedim(-1, 1)
    assert torch.allclose(F.conv2d(pixels, fc.weight[:, :, None, None], fc.bias), by_fc, atol=1e-6)
    assert torch.allclose(F.conv1d(pixels.flatten(2), fc.weight[:, :, None], fc.bias), by_fc.flatten(2), atol=1e-6)


def test_a_linear_layer_is_a_convolution() -> None:
    pixels, fc = torch.randn(2, 3, 4, 4), nn.Linear(48, 5)
    by_window = F.conv2d(pixels, fc.weight.view(5, 3, 4, 4), fc.bias)
    assert by_window.shape == (2, 5, 1, 1)
    assert torch.allclose(by_window.flatten(1), fc(pixels.flatten(1)), atol=1e-5)


# ---------------------------------------------------------------- large numbers


def test_softmax_of_large_numbers() -> None:
    huge = torch.tensor([1e20, 1e10, 0.0])
    assert torch.isnan(torch.exp(huge) / torch.exp(huge).sum())[0]
    assert F.softmax(huge, dim=0).tolist() == [1, 0, 0]
    assert torch.allclose(F.log_softmax(huge, dim=0), torch.tensor([0, -1e20, -1e20]))
    scores = torch.tensor([3.0, 1.0, 0.2])
    assert str(F.softmax(scores, dim=0)) == "tensor([0.8360, 0.1131, 0.0508])"
    parts = np.exp(scores.numpy() - np.max(scores.numpy()))
    np.testing.assert_allclose(F.softmax(scores, dim=0).numpy(), parts / parts.sum(), rtol=1e-6)


@pytest.mark.parametrize("f", [F.softmax, F.log_softmax, torch.logsumexp], ids=["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("scale", [12345.678, 1e20, 1e30])
def test_large_numbers_that_were_just_computed(f: Callable[..., Tensor], scale: float) -> None:
    """Compiled together with the product, which a compiler may leave unrounded in one place and not in another."""
    x = torch.tensor([1.76, 0.4, 0.98], requires_grad=True)
    with torch.no_grad():
        ready = x * scale
        str(ready)
        expected = f(ready, 0).tolist()
    for _ in range(3):
        y = f(x * scale, 0)
        assert y.tolist() == expected
        y.sum().backward()
        assert torch.isfinite(x.grad).all()
