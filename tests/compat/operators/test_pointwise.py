"""Arithmetic, unary functions, comparisons and selection, activations."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import compat as torch
import compat.nn.functional as F
from compat._operators.pointwise.exp_log_pow import _pow_number
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe

FAMILIES = ("arithmetic", "functions", "comparison", "activation")


@pytest.mark.parametrize(("source", "want"), [case for family in FAMILIES for case in cases(family)])
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


# Unary functions of NumPy or SciPy, and their domains.
EVERYWHERE, POSITIVE, UNIT = (-3.0, 3.0), (0.1, 3.0), (-0.9, 0.9)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "abs": (np.abs, EVERYWHERE), "neg": (np.negative, EVERYWHERE), "square": (np.square, EVERYWHERE),
    "exp": (np.exp, EVERYWHERE), "exp2": (np.exp2, EVERYWHERE), "expm1": (np.expm1, EVERYWHERE),
    "log": (np.log, POSITIVE), "log2": (np.log2, POSITIVE), "log10": (np.log10, POSITIVE),
    "log1p": (np.log1p, POSITIVE), "sqrt": (np.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "reciprocal": (lambda x: 1 / x, POSITIVE),
    "sin": (np.sin, EVERYWHERE), "cos": (np.cos, EVERYWHERE), "tan": (np.tan, UNIT), "asin": (np.arcsin, UNIT),
    "acos": (np.arccos, UNIT), "atan": (np.arctan, EVERYWHERE),
    "sinh": (np.sinh, EVERYWHERE), "cosh": (np.cosh, EVERYWHERE),
    "tanh": (np.tanh, EVERYWHERE), "asinh": (np.arcsinh, EVERYWHERE), "acosh": (np.arccosh, (1.1, 3.0)),
    "atanh": (np.arctanh, UNIT), "sinc": (np.sinc, EVERYWHERE), "deg2rad": (np.deg2rad, EVERYWHERE),
    "rad2deg": (np.rad2deg, EVERYWHERE), "floor": (np.floor, EVERYWHERE), "ceil": (np.ceil, EVERYWHERE),
    "round": (np.round, EVERYWHERE), "trunc": (np.trunc, EVERYWHERE), "frac": (lambda x: x - np.trunc(x), EVERYWHERE),
    "sign": (np.sign, EVERYWHERE), "erf": (scipy.special.erf, EVERYWHERE), "erfc": (scipy.special.erfc, EVERYWHERE),
    "erfinv": (scipy.special.erfinv, UNIT), "lgamma": (scipy.special.gammaln, POSITIVE),
    "digamma": (scipy.special.digamma, EVERYWHERE), "sigmoid": (scipy.special.expit, EVERYWHERE),
    "logit": (scipy.special.logit, (0.1, 0.9)), "isnan": (np.isnan, EVERYWHERE), "signbit": (np.signbit, EVERYWHERE),
    "logical_not": (np.logical_not, EVERYWHERE),
}  # fmt: skip
# A few units in the last place: XLA's functions and NumPy's round differently.
TOLERANCE = {"float64": 1e-13, "float32": 4e-6, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_numpys(name: str, dtype: str) -> None:
    function, (low, high) = FUNCTIONS[name]
    own = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    values = np.linspace(low, high, 12).astype(own).astype("float64")
    x = torch.tensor(values).to(getattr(torch, dtype)).reshape(3, 4).t()
    got = getattr(torch, name)(x)
    want = function(values.reshape(3, 4).T)
    assert got.dtype is (torch.bool if want.dtype == bool else x.dtype)
    assert got.stride() == x.stride()
    np.testing.assert_allclose(got.double().numpy(), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_empty_and_0d_tensors(name: str) -> None:
    function, (low, high) = FUNCTIONS[name]
    middle = (low + high) / 2 + 0.05
    assert getattr(torch, name)(torch.zeros(0, 3)).shape == (0, 3)
    np.testing.assert_allclose(
        getattr(torch, name)(torch.tensor(middle)).item(), function(middle), rtol=4e-6, atol=1e-6
    )


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "remainder": np.remainder, "fmod": np.fmod,
    "floor_divide": np.floor_divide, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "atan2": np.arctan2, "copysign": np.copysign, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "hypot": np.hypot, "heaviside": np.heaviside, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_xor": np.logical_xor,
}  # fmt: skip
SPECIAL = np.array([-np.inf, -2.5, -1.0, 0.0, 0.5, 1.0, np.inf, np.nan])


@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_pairs_with_special_values_are_numpys(name: str) -> None:
    got = getattr(torch, name)(torch.tensor(SPECIAL)[:, None], torch.tensor(SPECIAL)).numpy()
    want = BINARY[name](SPECIAL[:, None], SPECIAL)
    if name == "floor_divide":  # where NumPy gives NaN, PyTorch gives the quotient, an infinity
        same = np.isfinite(SPECIAL[:, None]) & (SPECIAL != 0)
        got, want = got[same], want[same]
    if name == "remainder":  # NumPy leaves a finite number as it is under an infinite one of the other sign
        same = np.isfinite(SPECIAL)
        got, want = got[:, same], want[:, same]
    if name == "heaviside":  # NumPy's of NaN is NaN, PyTorch's 0
        got, want = got[:-1], want[:-1]
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-16)


X = np.random.default_rng(0).uniform(0.2, 0.9, 5)
UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "sinc", "erf", "erfc", "erfinv", "lgamma", "sigmoid",
    "logit", "square",
]  # fmt: skip
ACTIVATIONS = [
    "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign", "hardswish", "logsigmoid", "tanhshrink",
]  # fmt: skip
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda x, name=name: getattr(torch, name)(x)
        for name in [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "atanh",
            "sinc",
            "erf",
            "erfc",
            "erfinv",
            "lgamma",
            "sigmoid",
            "logit",
            "square",
        ]
    },
    **{
        name: lambda x, name=name: getattr(F, name)(x - 0.5)
        for name in [
            "elu",
            "selu",
            "celu",
            "gelu",
            "silu",
            "mish",
            "softplus",
            "softsign",
            "hardswish",
            "logsigmoid",
            "tanhshrink",
        ]
    },
    "acosh": lambda x: torch.acosh(x + 1),
    "digamma": lambda x: torch.digamma(x - 2),
    "polygamma": lambda x: torch.polygamma(2, x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "pow": lambda x: x**2.5 + x**3 + x**-0.5 + x**0.5 + 2**x,
    "power of itself": lambda x: torch.pow(x, x.flip(0)),
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
    "atan2": lambda x: torch.atan2(x, 2 * x.flip(0) - 1),
    "logaddexp": lambda x: torch.logaddexp(x, x.flip(0)) * torch.logaddexp2(x, 3 * x),
    "xlogy": lambda x: torch.xlogy(x, x.flip(0)) + torch.xlogy(x, 2.0) + torch.xlogy(2, x),
    "lerp": lambda x: torch.lerp(x, x.flip(0), x * x),
    "addcdiv": lambda x: torch.addcdiv(x, x.flip(0), x * x, value=0.7),
    "glu": lambda x: F.glu(torch.cat([x, x * x])),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x.flip(0)) ** 2 * torch.exp(torch.complex(x, x * x))),
    "polar": lambda x: torch.view_as_real(torch.polar(x, x.flip(0))),
    "angle": lambda x: torch.angle(torch.complex(x, x.flip(0))) * torch.abs(torch.complex(x, x.flip(0))),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_differences(name: str) -> None:
    assert_derivatives(torch, DERIVATIVES[name], X)


def test_a_changing_exponent_compiles_nothing_anew() -> None:
    x = torch.ones(7)
    for exponent in (1.7, 1.8, 1.9):
        x**exponent
    before = len(_pow_number.plans)
    for exponent in (0.3, 2.2, -5.1):
        np.testing.assert_allclose((x * 2).pow(exponent).numpy(), np.full(7, 2.0**exponent), rtol=1e-6)
    assert len(_pow_number.plans) == before


class Other:
    """An object that implements the arithmetic with tensors."""

    def __radd__(self, left: Any) -> str:
        return "added"

    def __rpow__(self, left: Any) -> str:
        return "raised"

    def __rmod__(self, left: Any) -> str:
        return "divided"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_operators_leave_strangers_to_them() -> None:
    x = torch.ones(2)
    assert x + Other() == "added"
    assert x ** Other() == "raised"
    assert x % Other() == "divided"
    assert (x == Other()) is True
    for operation in (lambda: x - Other(), lambda: Other() * x, lambda: x < Other()):
        with pytest.raises(TypeError):
            operation()


def test_inplace_operators_keep_the_tensor() -> None:
    x = torch.tensor([7.0, -7.0])
    same = x
    x += 1
    x -= 1
    x *= 2
    x /= 4
    x **= 2
    x //= 5
    x %= 2
    assert x is same
    assert x.tolist() == [0.0, 0.0]
    assert x._version == 7


def test_numpy_numbers_are_numbers() -> None:
    x = torch.ones(2)
    assert (x + np.float32(1.5)).dtype is torch.float32
    assert (x * np.int64(3)).tolist() == [3.0, 3.0]
    assert (x ** np.float64(2)).tolist() == [1.0, 1.0]


def test_signed_zeros_as_numbers() -> None:
    x = torch.ones(1)
    assert (1 / (x * 0.0)).item() == np.inf
    assert (1 / (x * -0.0)).item() == -np.inf


@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y, torch.fmod])
def test_integers_are_not_divided_by_zero(divide: Callable[..., Any]) -> None:
    x = torch.arange(3)
    for zero in (0, torch.zeros(3, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(x, zero)
    assert divide(x, 2).dtype is torch.int64


@pytest.mark.parametrize("name", ["mul_", "add_", "div_", "pow_"])
@pytest.mark.parametrize(("own", "other"), [("float32", "float64"), ("bfloat16", "float32"), ("float64", "float32")])
def test_in_place_with_an_operand_of_another_width(name: str, own: str, other: str) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=getattr(torch, own), requires_grad=True)
    o = torch.tensor([2.0, 3.0, 4.0], dtype=getattr(torch, other), requires_grad=True)
    for _ in range(2):
        x.grad = o.grad = None
        y = x * 1
        getattr(y, name)(o)
        (y * 1).sum().backward()
        assert (y.dtype, x.grad.dtype, o.grad.dtype) == (x.dtype, x.dtype, o.dtype)
        a, b = (t.detach().double().requires_grad_() for t in (x, o))
        getattr(torch, name[:-1])(a, b).sum().backward()
        tolerance = 2e-2 if own == "bfloat16" else 1e-6
        assert torch.allclose(x.grad.double(), a.grad, rtol=tolerance)
        assert torch.allclose(o.grad.double(), b.grad, rtol=tolerance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, out: torch.neg(x, out=out), "Found dtype Double but expected Float"),
        (lambda x, out: torch.abs(x, out=out), "Found dtype Double but expected Float"),
        (lambda x, out: torch.floor(x, out=out), "Found dtype Double but expected Float"),
        (lambda x, out: torch.sgn(x, out=out), "Found dtype Double but expected Float"),
        (lambda x, out: torch.isposinf(x, out=out), "isposinf does not support non-boolean outputs."),
        (lambda x, out: torch.signbit(x, out=out), "signbit does not support non-boolean outputs."),
        (
            lambda x, out: torch.heaviside(x, x, out=out),
            "heaviside is not yet implemented for tensors with different dtypes.",
        ),
        (
            lambda x, out: torch.nan_to_num(x, out=out),
            "nan_to_num: dtype of out: Double should be same as input: Float",
        ),
        (
            lambda x, out: torch.frexp(x, out=(out, torch.empty(0, dtype=torch.int32))),
            r"torch.frexp\(\) expects mantissa to have dtype float but got double",
        ),
        (lambda x, out: torch.all(x, out=out), "all only supports bool tensor for result, got: Double"),
        (
            lambda x, out: torch.amax(x, out=out),
            "Expected the dtype for input and out to match, but got Float for input's dtype and Double for .*",
        ),
        (lambda x, out: torch.logcumsumexp(x, 0, out=out), "expected scalar_type Float but found Double"),
        (
            lambda x, out: torch.cummax(x, 0, out=(out, torch.empty(0, dtype=torch.int64))),
            "expected scalar_type Float but found Double",
        ),
        (
            lambda x, out: torch.mode(x, out=(x.clone(), out)),
            "expected scalar type 'Long' but got 'Double' for indices output",
        ),
        (lambda x, out: torch.isin(x, x, out=out), "Expected out tensor to have dtype bool, but got double instead"),
        (lambda x, out: torch.dot(x, x, out=out), "result dtype Double does not match input dtype Float"),
        (
            lambda x, out: torch.nonzero_static(x, size=1, out=out),
            "nonzero_static: Expected out tensor to have scalar type Long but got scalar typeDouble",
        ),
    ],
)
def test_out_of_another_dtype(call, message):
    out = torch.full((2,), 7.0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        call(torch.tensor([1.5, -2.0]), out)
    assert out.tolist() == [7.0, 7.0]


def test_out_of_joined():
    for join in (torch.cat, torch.stack):
        assert join([torch.ones(2)], out=torch.empty(0, dtype=torch.float64)).dtype is torch.float64
        with pytest.raises(
            TypeError, match=r"^torch.cat\(\): input types can't be cast to the desired output type Int$"
        ):
            join([torch.ones(2)], out=torch.empty(0, dtype=torch.int32))


def test_out_of_moduli():
    x = torch.tensor([3 + 4j])
    assert torch.abs(x, out=torch.empty(1, dtype=torch.float64)).item() == 5.0
    assert torch.abs(x, out=torch.empty(1, dtype=torch.complex64)).item() == 5.0


def test_logcumsumexp_of_complex_numbers():
    x = torch.tensor([1j, 2.0, -1 + 2j])
    assert torch.allclose(torch.logcumsumexp(x, 0), x.exp().cumsum(0).log())


def test_integers_to_negative_powers():
    base, power = torch.tensor([1, -1, -1, 2, 0]), torch.tensor([-3, -3, -2, -1, -1])
    assert (base**power).tolist() == [1, -1, 1, 0, 0]
    assert torch.pow(-1, power).tolist() == [-1, -1, 1, -1, -1]
    assert (torch.tensor([2, 3], dtype=torch.uint8) ** torch.tensor(3)).tolist() == [8, 27]


def test_zero_to_a_complex_power():
    assert (torch.tensor([0j, 1.0]) ** (1 + 1j)).tolist() == [0j, 1 + 0j]


def test_incomplete_gamma_at_the_ends():
    inf = math.inf
    a, x = torch.tensor([0.0, inf, 1.0, 0.0, inf]), torch.tensor([0.5, 0.5, inf, 0.0, inf])
    expected = torch.tensor([1.0, 0.0, 1.0, math.nan, math.nan])
    torch.testing.assert_close(torch.igamma(a, x), expected, equal_nan=True)
    torch.testing.assert_close(torch.igammac(a, x), 1 - expected, equal_nan=True)


def test_zeta_below_zero() -> None:
    # Of float64 as in PyTorch: integer exponents only, the terms below zero summed one by one.
    q = torch.tensor([-0.5, -1.5, -7.5, -8.5, -20.3, -100.7, -3.0, -2.5], dtype=torch.float64)
    sums = lambda s: torch.stack([((v + torch.arange(200, dtype=q.dtype)) ** -s).sum() + torch.special.zeta(s, v + 200)
                                  for v in q])  # fmt: skip
    for s in (2, 3, 9):
        torch.testing.assert_close(torch.special.zeta(s, q), sums(s), rtol=1e-12, atol=1e-12)
    assert torch.special.zeta(2.5, q).isnan().tolist() == [v != -3 for v in q.tolist()]
    torch.testing.assert_close(torch.special.zeta(3, q.float()), sums(3).float(), rtol=1e-4, atol=1e-4)


def test_zeta_at_its_poles():
    s, q = torch.tensor([3.0, 2.5, math.inf, math.inf, 0.5]), torch.tensor([-2.0, -2.0, 1.0, 0.5, -1.0])
    expected = torch.tensor([math.inf, math.inf, 1.0, math.inf, math.nan])
    torch.testing.assert_close(torch.special.zeta(s, q), expected, equal_nan=True)


def test_slope_of_sinc_next_to_zero():
    x = torch.tensor([0.0, 1e-308, 1.0], dtype=torch.float64, requires_grad=True)
    torch.sinc(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64))


def test_integers_that_share_places_are_written_as_they_are() -> None:
    x = torch.arange(3)
    wide = x.broadcast_to(2, 3)
    assert wide.nan_to_num_() is wide and x.tolist() == [0, 1, 2] and x._version == wide._version == 1


def test_clamp_accepts_a_number_beside_a_zero_dimensional_tensor():
    x, low = torch.tensor([-2.0, 0.5, 3.0]), torch.tensor(-1)
    assert x.clamp(low, 1).tolist() == torch.clip(x, min=low, max=1).tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(TypeError, match="clamp"):
        x.clamp(torch.tensor([-1.0]), 1)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.bfloat16])
def test_a_zero_dimensional_weight_of_lerp_may_have_any_dtype(dtype):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    mixed = x.lerp(x + 1, torch.tensor(1, dtype=dtype))
    assert mixed.dtype is torch.float32
    assert mixed.tolist() == [2.0, 3.0]
    mixed.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="expected dtype float for `weight`"):
        x.lerp(x + 1, torch.ones(2, dtype=dtype))


def test_equal_of_known_and_of_recorded_values():
    x = torch.tensor([1.0, float("nan")])
    assert not torch.equal(x, x) and not torch.equal(x + 0, x + 0)
    y = torch.arange(6.0).view(2, 3)
    assert torch.equal(y, y * 1) and torch.equal(y.T, y.T.clone()) and not torch.equal(y, y.T)
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
    assert torch.equal(y.conj(), y) and torch.equal(torch.tensor([1j]).conj(), torch.tensor([-1j]))
