"""Half precision: computed in single precision and rounded once where PyTorch's kernels do so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.nn.functional as F
from funcgrad.runtime import windows

NUMBER = 1.5707963

ONCE: dict[str, Callable[[Any], Any]] = {
    "mul": lambda x: x * NUMBER,
    "mul_": lambda x: x.clone().mul_(NUMBER),
    "mul by a tensor without dimensions": lambda x: x * torch.tensor(NUMBER),
    "div": lambda x: x / NUMBER,
    "floor_divide": lambda x: torch.floor_divide(x * 16, NUMBER),
    "div, rounded": lambda x: torch.div(x * 16, NUMBER, rounding_mode="trunc"),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=NUMBER),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.flip(0), value=NUMBER),
    "lerp": lambda x: torch.lerp(x, x * 2, NUMBER),
    "elu": lambda x: F.elu(-x, NUMBER),
    "celu": lambda x: F.celu(-x, NUMBER),
    "leaky_relu": lambda x: F.leaky_relu(-x, NUMBER),
    "softplus": lambda x: F.softplus(x, NUMBER),
    "softshrink": lambda x: F.softshrink(x, NUMBER),
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": lambda x: F.hardswish(x - 2),
    "glu": F.glu,
    "logsigmoid": F.logsigmoid,
    "log2": torch.log2,
    "log10": torch.log10,
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logaddexp": lambda x: torch.logaddexp(x, x * 2),
    "hypot": lambda x: torch.hypot(x, x * 2),
    "sinc": torch.sinc,
    "rad2deg": torch.rad2deg,
    "std": lambda x: x.std(),
    "to the fourth": lambda x: x**4,
    "addmm": lambda x: torch.addmm(x[:8], x.view(8, 8), x.view(8, 8).t(), beta=NUMBER, alpha=0.3),
    "baddbmm": lambda x: torch.baddbmm(x[:4], x.view(4, 4, 4), x.view(4, 4, 4).mT, beta=NUMBER, alpha=0.3),
}


def values(dtype: Any) -> Any:
    return (torch.arange(64) * 0.0619 + 0.5).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ONCE)
def test_is_rounded_once(name: str, dtype: Any) -> None:
    x = values(dtype)
    assert torch.equal(ONCE[name](x), ONCE[name](x.float()).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_alpha_is_rounded_before(dtype: Any) -> None:
    x = values(dtype)
    rounded = float(torch.tensor(NUMBER, dtype=dtype))
    assert rounded != NUMBER
    assert torch.equal(torch.add(x, x, alpha=NUMBER), torch.add(x.float(), x.float(), alpha=rounded).to(dtype))
    assert torch.equal(torch.add(x, NUMBER), torch.add(x.float(), rounded).to(dtype))
    assert torch.equal(torch.rsub(x, x, alpha=NUMBER), torch.rsub(x.float(), x.float(), alpha=rounded).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_factors_of_vectors_are_rounded_before(dtype: Any) -> None:
    x = values(dtype)
    matrix, vector = x.view(8, 8), x[8:16]
    beta, alpha = torch.tensor([NUMBER, 0.3], dtype=dtype)
    product = alpha.float() * (matrix.float() @ vector.float())
    found = torch.addmv(x[:8], matrix, vector, beta=NUMBER, alpha=0.3)
    assert torch.equal(found, ((beta * x[:8]).float() + product).to(dtype))
    found = torch.addr(matrix, x[:8], vector, beta=NUMBER, alpha=0.3)
    assert torch.equal(found, beta * matrix + (alpha * x[:8])[:, None] * vector)


def test_numbers_beyond_half_precision() -> None:
    x = torch.tensor(100.0, dtype=torch.float16)
    assert (x / 1e5).item() == pytest.approx(1e-3, rel=1e-3)
    assert (torch.tensor(1e-5, dtype=torch.float16) * 1e5).item() == pytest.approx(1.0, rel=2e-3)
    assert torch.lerp(x, x + 1, 7e4).item() == float("inf")


def test_gradients_have_the_operands_dtype() -> None:
    x = values(torch.bfloat16).requires_grad_()
    scale = torch.tensor(NUMBER, requires_grad=True)
    (x * scale).sum().backward()
    assert x.grad is not None and x.grad.dtype is torch.bfloat16
    assert scale.grad is not None and scale.grad.dtype is torch.float32
    assert torch.equal(x.grad, torch.full((64,), NUMBER).to(torch.bfloat16))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, dtype=torch.complex32),
        lambda: torch.tensor([1.0], dtype=torch.complex32),
        lambda: torch.ones(2).to(torch.complex32),
        lambda: torch.ones(2, dtype=torch.float16) * 1j,
        lambda: torch.view_as_complex(torch.ones(2, 2, dtype=torch.float16)),
        lambda: torch.complex(torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float16)),
    ],
)
def test_complex_numbers_of_half_precision_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"there are no arrays of torch\.complex32"):
        make()
    assert torch.result_type(torch.ones(2, dtype=torch.float16), 1j) is torch.complex32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gradient_of_a_gate(dtype: Any) -> None:
    x, ct = values(dtype).requires_grad_(), values(dtype)[:32].flip(0)
    F.glu(x).backward(ct)
    first, second = x.detach().chunk(2)
    gate = second.sigmoid()
    assert x.grad is not None and torch.equal(x.grad[:32], gate * ct)
    wide = (1 - gate.float()) * gate.float() * first.float() * ct.float()
    assert torch.equal(x.grad[32:], wide.to(dtype))


def test_softmax_rounds_on_its_way_where_the_kernels_do() -> None:
    x = torch.tensor([[0.25, -1.5, 2.0], [1.25, 0.5, -0.75]], dtype=torch.float16).repeat(12, 1)
    wide = x.double()
    assert torch.equal(x.softmax(-1), wide.softmax(-1).half())
    assert torch.equal(x.log_softmax(0), wide.log_softmax(0).half())
    top = wide.amax(0, keepdim=True)
    weights = (wide - top).exp()
    assert torch.equal(x.softmax(0), (weights.half() / weights.sum(0, keepdim=True)).half())
    assert not torch.equal(x.softmax(0), wide.softmax(0).half())
    top = wide.amax(-1, keepdim=True)
    total = (wide - top).exp().sum(-1, keepdim=True).half().double().log().half()
    assert torch.equal(x.log_softmax(-1), (wide - top - total).half())
    assert not torch.equal(x.log_softmax(-1), wide.log_softmax(-1).half())


def test_gradients_of_softmax_round_once() -> None:
    x = torch.zeros(2, 3, dtype=torch.float16, requires_grad=True)
    x.log_softmax(0).sum().backward()
    # log(2) is not a float16 number, so exp of the rounded logarithm is not 2; these are PyTorch's results.
    assert x.grad is not None and x.grad.unique().tolist() == [0.00021219253540039062]


def test_a_layer_of_equal_half_precision_values_matches_a_fused_product() -> None:
    x = torch.full((1, 3), -2.355, dtype=torch.float16)
    assert F.layer_norm(x, (3,)).unique().tolist() == [2.384185791015625e-05]  # PyTorch's results
    assert F.layer_norm(x.float(), (3,)).unique().tolist() == [0.0]


@pytest.mark.parametrize(
    ("dtype", "rounding", "x", "y", "want"),
    [
        (torch.float16, "trunc", -4.37109375, -0.1507568359375, 29.0),
        (torch.bfloat16, "trunc", 9.5625, 0.2734375, 35.0),
        (torch.float16, "floor", 8.921875, 0.01230621337890625, 723.0),
        (torch.bfloat16, "floor", -20.875, -0.1748046875, 118.0),
    ],
)
def test_integer_quotients_in_half_precision_round_in_between(
    dtype: Any, rounding: str, x: float, y: float, want: float
) -> None:
    a, b = torch.tensor([x], dtype=dtype), torch.tensor([y], dtype=dtype)
    assert torch.div(a, b, rounding_mode=rounding).item() == want  # PyTorch's results
    assert torch.div(a.double(), b.double(), rounding_mode=rounding).to(dtype).item() != want
    if rounding == "floor":
        assert (a // b).item() == want


def test_small_powers_round_once_or_at_each_step() -> None:
    x, y = values(torch.float16), values(torch.bfloat16)
    assert torch.equal(x**3, (x.double() ** 3).half())
    assert torch.equal(x**-2, (x.double() ** -2).half())
    assert not torch.equal(x**3, x * x * x)
    assert torch.equal(y**3, y * y * y)


#: Gradients by PyTorch's formulas, from the operands, the result and the incoming gradient: each step rounds to half
#: precision; scalars are not rounded.
STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "asin": (lambda x, y: x.asin(), lambda g, x, y, r: g * (1 - x * x).rsqrt()),
    "acos": (lambda x, y: x.acos(), lambda g, x, y, r: g * -(1 - x * x).rsqrt()),
    "atanh": (lambda x, y: x.atanh(), lambda g, x, y, r: g / (1 - x * x)),
    "hypot": (torch.hypot, lambda g, x, y, r: g * x / r),
    "atan2": (torch.atan2, lambda g, x, y, r: g * y * (x * x + y * y).reciprocal()),
    "sinc": (
        lambda x, y: x.sinc(),
        lambda g, x, y, r: g * (((x * math.pi) * (x * math.pi).cos() - (x * math.pi).sin()) / ((x * x) * math.pi)),
    ),
    "exp2": (lambda x, y: x.exp2(), lambda g, x, y, r: g * r * math.log(2)),
    "log2": (lambda x, y: x.log2(), lambda g, x, y, r: g / (x * math.log(2))),
    "log10": (lambda x, y: x.log10(), lambda g, x, y, r: g / (x * math.log(10))),
    "rsqrt": (lambda x, y: x.rsqrt(), lambda g, x, y, r: -0.5 * g * r**3),
    "power": (lambda x, y: x**-1, lambda g, x, y, r: g * -(x**-2)),
    "erf": (lambda x, y: x.erf(), lambda g, x, y, r: (-(x * x)).exp() * (2 / math.sqrt(math.pi)) * g),
    "erfc": (lambda x, y: x.erfc(), lambda g, x, y, r: (-(x * x)).exp() * (-2 / math.sqrt(math.pi)) * g),
    "erfinv": (lambda x, y: x.erfinv(), lambda g, x, y, r: (r * r).exp() * (math.sqrt(math.pi) / 2) * g),
    "digamma": (lambda x, y: x.digamma(), lambda g, x, y, r: g * torch.polygamma(1, x.float()).to(x.dtype)),
    "divisor": (lambda x, y: y / x, lambda g, x, y, r: -g * (y / x / x)),
    "addcmul": (lambda x, y: torch.addcmul(y, x, y, value=NUMBER), lambda g, x, y, r: g * (y * NUMBER)),
    "addcdiv": (lambda x, y: torch.addcdiv(y, y, x, value=NUMBER), lambda g, x, y, r: -g * (y * NUMBER / (x * x))),
    "logaddexp2": (torch.logaddexp2, lambda g, x, y, r: g / (1 + (y - x).exp2())),
    "var": (lambda x, y: x.var(), lambda g, x, y, r: g * (2 / 63) * (x - x.mean())),
    "std": (lambda x, y: x.std(), lambda g, x, y, r: g / (r * 2) * (2 / 63) * (x - x.mean())),
}


def gradient(body: Callable[..., Any], x: Any, *others: Any) -> tuple[Any, Any, Any]:
    """The inputs, the incoming gradient and the result of a gradient formula."""
    x = x.clone().requires_grad_()
    result = body(x, *others)
    ct = (values(x.dtype).flip(0) * 1.3).reshape(-1)[: result.numel()].reshape(result.shape)
    result.backward(ct)
    return result.detach(), ct, x.grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_gradients_round_at_each_step(name: str, dtype: Any) -> None:
    body, steps = STEPS[name]
    x, y = (torch.linspace(0.02, 0.97, 64).to(dtype), values(dtype))
    result, ct, found = gradient(body, x, y)
    want = steps(ct, x, y, result)
    assert want.dtype is dtype and torch.equal(found, want)


def test_gradients_of_kernels_round_once() -> None:
    x = torch.linspace(0.02, 2.97, 64).to(torch.bfloat16)
    result, ct, found = gradient(torch.tanh, x)
    assert torch.equal(found, (ct.float() * (1 - result.float() ** 2)).bfloat16())
    result, ct, found = gradient(torch.sigmoid, x)
    assert torch.equal(found, (ct.float() * (1 - result.float()) * result.float()).bfloat16())
    result, ct, found = gradient(torch.sigmoid, x.half())
    assert torch.equal(found, ct * (1 - result) * result)  # but not of float16
    _, ct, found = gradient(F.logsigmoid, x)
    small = (-x).exp().float()
    assert torch.equal(found, (ct.float() * (small / (1 + small))).bfloat16())


def test_the_slope_of_logsigmoid_has_one_at_zero() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(F.logsigmoid(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    y = x.detach().sigmoid()
    assert torch.allclose(first.detach(), 1 - y) and torch.allclose(second, -y * (1 - y))


UNARY = (
    "acos", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "log",
    "log1p", "rsqrt", "sigmoid", "sin", "sinh", "tan", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_is_rounded_once_by_numpy_and_by_xla(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ((torch.arange(500) + 0.5) / 512).to(dtype)

    def gated(x: Any) -> Any:
        return getattr(x, name)() * x

    wanted = gated(x.float()).double()
    once = (getattr(x.float(), name)().to(dtype).float() * x.float()).to(dtype)
    found = [gated(x).tolist()]
    windows.clear()
    monkeypatch.setattr(windows.Window, "worth_compiling", lambda self: True)
    found.append(gated(x).tolist())
    assert found[0] == found[1] == once.tolist(), (torch.tensor(found[1]) - wanted).abs().max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("alpha", [0.3, 1 / 3, -3.14159])
def test_gradients_multiply_by_alpha_that_is_not_rounded(dtype: torch.dtype, alpha: float) -> None:
    """PyTorch's formulas multiply by a number in opmath, and round products before; its sums round ``alpha``."""
    torch.manual_seed(0)

    def leaf(*size: int) -> torch.Tensor:
        return torch.randn(*size).to(dtype).requires_grad_()

    def scaled(x: torch.Tensor, factor: float = alpha) -> torch.Tensor:
        return (x.float() * factor).to(dtype)

    x, y, row, ct = leaf(5, 6), leaf(5, 6), leaf(6), torch.randn(5, 6).to(dtype)
    rounded = torch.tensor(alpha).to(dtype).item()
    assert torch.equal(torch.add(x, y, alpha=alpha), (x.float() + rounded * y.float()).to(dtype))
    for function, sign in ((torch.add, 1), (torch.sub, -1)):
        found = torch.autograd.grad(function(x, y, alpha=alpha), (x, y), ct)
        assert torch.equal(found[0], ct) and torch.equal(found[1], scaled(ct, sign * alpha))
        (summed,) = torch.autograd.grad(function(x, row, alpha=alpha), row, ct)
        torch.testing.assert_close(summed, scaled(ct, sign * alpha).sum(0))  # sums may differ in their last bit
    (found,) = torch.autograd.grad(torch.rsub(x, y, alpha=alpha), x, ct)
    assert torch.equal(found, scaled(ct, -alpha))
    (found,) = torch.autograd.grad(x.detach().index_add(0, torch.tensor([4, 2]), y[:2], alpha=alpha), y, ct)
    assert torch.equal(found[:2], scaled(ct[[4, 2]]))

    a, b = leaf(5, 7), leaf(7, 6)
    found = torch.autograd.grad(torch.addmm(x, a, b, alpha=alpha), (x, a, b), ct)
    products = ct @ b.detach().t(), a.detach().t() @ ct
    assert torch.equal(found[0], ct) and all(map(torch.equal, found[1:], map(scaled, products)))
    batched = torch.autograd.grad(torch.baddbmm(x[None], a[None], b[None], alpha=alpha), (x, a, b), ct[None])
    assert all(map(torch.equal, batched, found))
    vector = leaf(7)
    found = torch.autograd.grad(torch.addmv(torch.zeros(5, dtype=dtype), a, vector, alpha=alpha), (a, vector), ct[:, 0])
    products = torch.outer(ct[:, 0], vector.detach()), a.detach().t() @ ct[:, 0]
    assert all(map(torch.equal, found, map(scaled, products)))
