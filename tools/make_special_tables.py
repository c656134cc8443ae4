"""Writes ``funcgrad/primitives/special/tables.py``: Chebyshev coefficients of Bessel, Airy and Fresnel functions.

Needs mpmath, which the library itself does not: ``pip install mpmath; python tools/make_special_tables.py``. Every
function is transformed to a smooth one on an interval (a power or a logarithm subtracted, the phase and the decay of
the asymptotic form divided out), evaluated to 40 digits at Chebyshev points, and truncated at double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mp

mp.dps = 40
TARGET = Path(__file__).parents[1] / "funcgrad" / "primitives" / "special" / "tables.py"
DEGREE = 60


def coefficients(f: Callable[[Any], Any]) -> list[float]:
    """The Chebyshev coefficients on [-1, 1], the first one halved, up to those below double precision."""
    nodes = [mpmath.cos(mp.pi * (k + mp.mpf(1) / 2) / DEGREE) for k in range(DEGREE)]
    values = [f(t) for t in nodes]
    found = []
    for j in range(DEGREE):
        total = mpmath.fsum(v * mpmath.cos(mp.pi * j * (k + mp.mpf(1) / 2) / DEGREE) for k, v in enumerate(values))
        found.append(total * 2 / DEGREE)
    found[0] /= 2
    least = max(abs(c) for c in found) * mp.mpf(10) ** -18
    last = max(j for j, c in enumerate(found) if abs(c) > least)
    return [float(c) for c in found[: last + 1]]


def phases(order: int, x: Any) -> tuple[Any, Any]:
    """P and Q of Hankel's asymptotic form: ``J = sqrt(2 / (pi x)) (P cos c - Q sin c)``, Y with sine and cosine."""
    c = x - mp.pi * (2 * order + 1) / 4
    j, y = mpmath.besselj(order, x), mpmath.bessely(order, x)
    size = mpmath.sqrt(mp.pi * x / 2)
    return size * (j * mpmath.cos(c) + y * mpmath.sin(c)), size * (y * mpmath.cos(c) - j * mpmath.sin(c))


def near(f: Callable[[Any], Any], end: int) -> list[float]:
    """Coefficients of a function of ``x**2`` for x in [0, end]."""
    return coefficients(lambda t: f(end * mpmath.sqrt((t + 1) / 2)))


def far(f: Callable[[Any], Any], start: Any, power: Any) -> list[float]:
    """Coefficients of a function of ``x**-power`` for x from ``start`` on."""
    return coefficients(lambda t: f(start * ((t + 1) / 2) ** (mp.mpf(-1) / power)))


def bessel() -> dict[str, list[float]]:
    log, j, y, i, k = mpmath.log, mpmath.besselj, mpmath.bessely, mpmath.besseli, mpmath.besselk
    return {
        "J0": near(lambda x: j(0, x), 8),
        "J1": near(lambda x: j(1, x) / x, 8),
        "Y0": near(lambda x: y(0, x) - 2 / mp.pi * log(x) * j(0, x), 8),
        "Y1": near(lambda x: (y(1, x) - 2 / mp.pi * (log(x) * j(1, x) - 1 / x)) / x, 8),
        "P0": far(lambda x: phases(0, x)[0], 8, 2),
        "Q0": far(lambda x: phases(0, x)[1] * x, 8, 2),
        "P1": far(lambda x: phases(1, x)[0], 8, 2),
        "Q1": far(lambda x: phases(1, x)[1] * x, 8, 2),
        "I0": near(lambda x: i(0, x), 2),
        "I1": near(lambda x: i(1, x) / x, 2),
        "K0": near(lambda x: k(0, x) + log(x / 2) * i(0, x), 2),
        "K1": near(lambda x: (k(1, x) - log(x / 2) * i(1, x) - 1 / x) / x, 2),
        "K0_FAR": far(lambda x: mpmath.sqrt(x) * mpmath.exp(x) * k(0, x), 2, 1),
        "K1_FAR": far(lambda x: mpmath.sqrt(x) * mpmath.exp(x) * k(1, x), 2, 1),
    }


def airy_waves(x: Any, derivative: int) -> tuple[Any, Any]:
    """The factors of cosine and sine in the asymptotic form of Ai, or of its derivative, at ``-x``."""
    zeta = 2 * x ** mp.mpf("1.5") / 3 - mp.pi / 4
    a, b = mpmath.airyai(-x, derivative=derivative), mpmath.airybi(-x, derivative=derivative)
    c, s = mpmath.cos(zeta), mpmath.sin(zeta)
    size = mpmath.sqrt(mp.pi) * x ** (mp.mpf(1 - 2 * derivative) / 4)
    # Ai = (P c + Q s), Bi = (Q c - P s): the derivatives are shifted by a quarter of a wave.
    return size * (a * c - b * s), size * (a * s + b * c)


def airy() -> dict[str, list[float]]:
    found = {}
    for name, d in (("AI", 0), ("AI_PRIME", 1)):

        def decaying(x: Any, d: int = d) -> Any:
            zeta = 2 * x ** mp.mpf("1.5") / 3
            return mpmath.airyai(x, derivative=d) * mpmath.exp(zeta) * x ** (mp.mpf(1 - 2 * d) / 4)

        found[name] = coefficients(lambda t, d=d: mpmath.airyai(3 * t - 1, derivative=d))
        found[f"{name}_RIGHT"] = far(decaying, 2, mp.mpf("1.5"))
        # One of the two begins with a power of zeta less.
        first, second = (0, 1) if d == 0 else (1, 0)
        found[f"{name}_COS"] = far(lambda x, d=d, n=first: airy_waves(x, d)[0] * x ** (mp.mpf("1.5") * n), 4, 3)
        found[f"{name}_SIN"] = far(lambda x, d=d, n=second: airy_waves(x, d)[1] * x ** (mp.mpf("1.5") * n), 4, 3)
    return found


def fresnel_waves(x: Any) -> tuple[Any, Any]:
    """f and g of ``S = 1/2 - f cos - g sin``, ``C = 1/2 + f sin - g cos``, of ``pi x**2 / 2``."""
    angle = mp.pi * x**2 / 2
    s, c = mp.mpf(1) / 2 - mpmath.fresnels(x), mp.mpf(1) / 2 - mpmath.fresnelc(x)
    cos, sin = mpmath.cos(angle), mpmath.sin(angle)
    return s * cos - c * sin, s * sin + c * cos


def fresnel() -> dict[str, list[float]]:
    def small(f: Callable[[Any], Any]) -> list[float]:
        return coefficients(lambda t: f(2 * ((t + 1) / 2) ** (mp.mpf(1) / 4)))

    return {
        "FRESNEL_S": small(lambda x: mpmath.fresnels(x) / x**3),
        "FRESNEL_C": small(lambda x: mpmath.fresnelc(x) / x),
        "FRESNEL_F": far(lambda x: fresnel_waves(x)[0] * x, 2, 4),
        "FRESNEL_G": far(lambda x: fresnel_waves(x)[1] * x**3, 2, 4),
    }


def written(name: str, numbers: list[float]) -> str:
    lines, line = [], "   "
    for number in numbers:
        if len(line) + len(repr(number)) > 116:
            lines.append(line)
            line = "   "
        line += f" {number!r},"
    return "\n".join([f"{name} = (", *lines, line, ")  # fmt: skip"])


def main() -> None:
    tables = bessel() | airy() | fresnel()
    head = '"""Chebyshev coefficients, written by ``tools/make_special_tables.py``, which names the functions."""\n\n'
    TARGET.write_text(head + "\n".join(written(name, numbers) for name, numbers in tables.items()) + "\n")


if __name__ == "__main__":
    main()
