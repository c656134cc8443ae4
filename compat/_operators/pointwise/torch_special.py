"""Bessel and incomplete gamma functions, zeta, orthogonal polynomials, most of them only in ``torch.special``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from compat._core.operators.declaration import Arguments
from compat._core.operators.op import pointwise
from compat._core.types import dtype
from compat._core.types.errors import lacks
from compat._operators.pointwise.declare import binary, checks, common, document, not_numbers_alone, refuses, unary
from funcgrad import numpy as np
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.primitives.special.polynomials import orthogonal_polynomial


def _no_complex(kernel: str) -> Callable[..., None]:
    return refuses(kernel, "complex")


def _single_or_double(kernel: str) -> Callable[..., None]:
    """A check that operands are float32 or float64 after promotion."""

    def check(*operands: Any, **_: Any) -> None:
        found = common(operands)
        if found in (dtype.float16, dtype.bfloat16):
            raise lacks(kernel, found)

    return checks(refuses(kernel, "complex"), check)


# ---------------------------------------------------------------- functions with derivatives

i0 = unary(
    "i0",
    "I0Backward0",
    p.i0,
    "The modified Bessel function of the first kind of order 0.",
    saves="self",
    aliases="special.i0",
    check=refuses("i0_vml_cpu", "complex"),
)


def _special(
    name: str,
    body: Callable[[Any], Any],
    summary: str,
    node: str | None = None,
    saves: str = "",
    check: Any = _single_or_double,
) -> None:
    """Declares a function of ``torch.special`` of one argument; it is differentiable if it has a node."""
    unary(
        f"special_{name}", node, body, summary, saves=saves, names=f"special.{name}", check=check(f"{name}_cpu"),
        out=True,
    )  # fmt: skip


_special("i0e", p.i0e, "``exp(-|input|) * i0(input)``.", "SpecialI0EBackward0", "result self", _no_complex)
_special(
    "i1", p.i1, "The modified Bessel function of the first kind of order 1.", "SpecialI1Backward0", "result self",
    _no_complex,
)  # fmt: skip
_special("i1e", p.i1e, "``exp(-|input|) * i1(input)``.", "SpecialI1EBackward0", "result self", _no_complex)
_special("ndtri", p.ndtri, "The inverse of ``ndtr``.", "SpecialNdtriBackward0", "result")
_special("log_ndtr", p.log_ndtr, "The logarithm of ``ndtr``.", "SpecialLogNdtrBackward0", "result self")
_special("erfcx", p.erfcx, "``exp(input**2) * erfc(input)``.", "SpecialErfcxBackward0", "result self")


def _with_limits(found: Any, a: Any, x: Any, lower: float) -> Any:
    """Values of an incomplete gamma function, with the limits for parameters of 0 and infinity.

    Args:
        found: the values for other parameters.
        a, x: the parameter and the argument.
        lower: the limit for an infinite parameter: 0 for the lower function, 1 for the upper one.
    """
    zero, infinity = e.number(0, a), e.number(numpy.inf, a)
    undefined = np.logical_or(np.logical_and(a == zero, x == zero), np.logical_and(a == infinity, x == infinity))
    found = np.where(np.logical_and(a == zero, x > zero), e.number(1 - lower, a), found)
    found = np.where(np.logical_and(a == infinity, x >= zero), e.number(lower, a), found)
    return np.where(undefined, e.number(numpy.nan, a), found)


igamma = binary(
    "igamma",
    "IgammaBackward0",
    lambda a, x: _with_limits(p.igamma(a, x), a, x, 0),
    "The regularized lower incomplete gamma function of parameter ``input`` at ``other``.",
    saves="other self",
    aliases="special.gammainc",
    check=refuses("igamma_cpu", "bool integer complex"),
)
igammac = binary(
    "igammac",
    "IgammacBackward0",
    lambda a, x: _with_limits(p.igammac(a, x), a, x, 1),
    "The regularized upper incomplete gamma function of parameter ``input`` at ``other``.",
    saves="other self",
    aliases="special.gammaincc",
    check=refuses("igammac_cpu", "bool integer complex"),
)


def _zeta(s: Any, q: Any) -> Any:
    """Hurwitz's zeta function, with its values at poles and for infinite exponents."""
    one, infinity = e.number(1, q), e.number(numpy.inf, q)
    limit = np.where(q == one, one, infinity)
    found = np.where(np.logical_and(s == infinity, q <= one), limit, p.zeta(s, q))
    pole = np.logical_and(q <= e.number(0, q), q == np.floor(q))
    return np.where(s < one, e.number(numpy.nan, q), np.where(pole, infinity, found))


zeta = binary(
    "special_zeta",
    "SpecialZetaBackward0",
    _zeta,
    "Hurwitz's zeta function: the sum of ``(k + other)**-input``.",
    saves="other self",
    names="special.zeta",
    dtypes="float",
    overloads="default self_scalar other_scalar",
    arguments=Arguments(alone=not_numbers_alone("special_zeta")),
    check=_single_or_double("zeta_cpu"),
    out=True,
)

# ---------------------------------------------------------------- functions without derivatives, as in PyTorch


def _spherical_j0(x: Any) -> Any:
    zero, infinite = e.eq(x, e.number(0, x)), e.eq(np.absolute(x), e.number(numpy.inf, x))
    safe = e.select(e.bitwise_or(zero, infinite), e.number(1, x), x)
    found = e.select(zero, e.number(1, x), e.div(e.sin(safe), safe))
    return e.select(infinite, e.number(0, x), found)


_special("airy_ai", p.airy_ai, "Airy's function Ai.")
_special("bessel_j0", p.j0, "The Bessel function of the first kind of order 0.")
_special("bessel_j1", p.j1, "The Bessel function of the first kind of order 1.")
_special("bessel_y0", p.y0, "The Bessel function of the second kind of order 0.")
_special("bessel_y1", p.y1, "The Bessel function of the second kind of order 1.")
_special("modified_bessel_i0", p.i0, "The modified Bessel function of the first kind of order 0.")
_special("modified_bessel_i1", p.i1, "The modified Bessel function of the first kind of order 1.")
_special("modified_bessel_k0", p.k0, "The modified Bessel function of the second kind of order 0.")
_special("modified_bessel_k1", p.k1, "The modified Bessel function of the second kind of order 1.")
_special("scaled_modified_bessel_k0", p.k0e, "``exp(input) * modified_bessel_k0(input)``.")
_special("scaled_modified_bessel_k1", p.k1e, "``exp(input) * modified_bessel_k1(input)``.")
_special("spherical_bessel_j0", _spherical_j0, "``sin(input) / input``, 1 at 0.")


def _polynomial(family: str, shifted: bool) -> Callable[[Any, Any], Any]:
    """The polynomial of a family, at ``2 x - 1`` if ``shifted``."""

    def body(x: Any, n: Any) -> Any:
        at = e.shift(e.scale(x, 2), -1) if shifted else x
        return orthogonal_polynomial(at, e.trunc(n), family=family)

    return body


for _name, _family, _summary in (
    ("chebyshev_polynomial_t", "chebyshev_t", "Chebyshev's polynomial of the first kind, of degree ``n``."),
    ("chebyshev_polynomial_u", "chebyshev_u", "Chebyshev's polynomial of the second kind, of degree ``n``."),
    ("chebyshev_polynomial_v", "chebyshev_v", "Chebyshev's polynomial of the third kind, of degree ``n``."),
    ("chebyshev_polynomial_w", "chebyshev_w", "Chebyshev's polynomial of the fourth kind, of degree ``n``."),
    ("hermite_polynomial_h", "hermite_h", "The physicist's Hermite polynomial of degree ``n``."),
    ("hermite_polynomial_he", "hermite_he", "The probabilist's Hermite polynomial of degree ``n``."),
    ("laguerre_polynomial_l", "laguerre_l", "Laguerre's polynomial of degree ``n``."),
    ("legendre_polynomial_p", "legendre_p", "Legendre's polynomial of degree ``n``."),
):
    for _prefix in ("", "shifted_") if "chebyshev" in _family else ("",):
        _full_name = f"{_prefix}{_name}"
        _formula: Any = _polynomial(_family, bool(_prefix))
        _formula.__doc__ = document(
            f"special.{_full_name}", _summary if not _prefix else f"{_summary[:-1]}, of ``2 * x - 1``.",
            "x, n: tensors, or one of them a number; their dtypes are promoted.",
            "torch.tensor([0.5, 2.0]), torch.tensor([1.0, 2.0])",
        )  # fmt: skip
        pointwise(
            f"special_{_full_name}(Tensor x, Tensor n) -> Tensor",
            f"special_{_full_name}.x_scalar(Scalar x, Tensor n) -> Tensor",
            f"special_{_full_name}.n_scalar(Tensor x, Scalar n) -> Tensor",
            names=f"special.{_full_name}",
            dtypes="float",
            arguments=Arguments(alone=not_numbers_alone(f"special_{_full_name}")),
            check=_single_or_double(f"{_full_name}_cpu"),
            out=True,
        )(_formula)
