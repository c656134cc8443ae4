"""Plain numbers made of differentiated values: an error where the derivative would be lost silently."""

from __future__ import annotations

import array
import cmath
import ctypes
import decimal
import fractions
import functools
import math
import statistics
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.errors import DerivativeLostError


def stored(x: Any) -> Any:
    a = np.zeros(2)
    a[0] = x
    return x * a[0]


def filled(x: Any) -> Any:
    a = np.zeros(2)
    a.fill(x)
    return x * a[0]


def added(x: Any) -> Any:
    a = np.zeros(2)
    a += x
    return x * a[0]


def called(function: Callable[[Any], Any], x: Any) -> Any:
    return function(x)


#: Operations that would make a constant of a value, and the replacement in the message.
WAYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "float": (lambda x: x * float(x), "stop_gradient"),
    "complex": (lambda x: x * complex(x).real, "stop_gradient"),
    "np.float64": (lambda x: x * np.float64(x), "funcgrad.numpy.float64"),
    "np.complex128": (lambda x: x * np.complex128(x).real, "funcgrad.numpy.complex128"),
    "np.asarray": (lambda x: x * np.asarray(x), "funcgrad.numpy.asarray"),
    "np.array of a list": (lambda x: x * np.array([x, x])[0], "funcgrad.numpy.array"),
    "np.full": (lambda x: x * np.full(2, x)[0], "funcgrad.numpy.full"),
    "np.vectorize": (lambda x: x * np.vectorize(math.sin)(x), "funcgrad.numpy.vectorize"),
    "item": (lambda x: x * x.item(), "stop_gradient"),
    "tolist": (lambda x: x * x.tolist(), "stop_gradient"),
    "__float__": (lambda x: x * x.__float__(), "stop_gradient"),
    "math.sin": (math.sin, "funcgrad.numpy.sin"),
    "math.lgamma": (math.lgamma, "funcgrad.special.gammaln"),
    "math.pow": (lambda x: math.pow(x, 2), "funcgrad.numpy.pow"),
    "math.fsum": (lambda x: x * math.fsum([x, x]), "funcgrad.numpy.sum"),
    "math.isnan": (lambda x: x * math.isnan(x), "funcgrad.numpy.isnan"),
    "a function that is passed on": (lambda x: x * called(math.exp, x), "funcgrad.numpy.exp"),
    "functools.partial": (lambda x: x * functools.partial(math.pow, 2.0)(x), "stop_gradient"),
    "map": (lambda x: x * next(map(math.sin, [x])), "stop_gradient"),
    "cmath.exp": (lambda x: x * cmath.exp(x).real, "funcgrad.numpy.exp"),
    "cmath.phase": (lambda x: x * cmath.phase(x), "funcgrad.numpy.angle"),
    "statistics.mean": (lambda x: x * statistics.mean([x, 1.0]), "funcgrad.numpy.mean"),
    "statistics.fmean": (lambda x: x * statistics.fmean([x, 1.0]), "funcgrad.numpy.mean"),
    "array.array": (lambda x: x * array.array("d", [x])[0], "stop_gradient"),
    "ctypes": (lambda x: x * ctypes.c_double(x).value, "stop_gradient"),
}
#: The same, where Python or NumPy raises an error of its own.
REFUSED: dict[str, Callable[[Any], Any]] = {
    "stored": stored,
    "filled": filled,
    "added in place": added,
    "Fraction": lambda x: x * float(fractions.Fraction(x)),
    "Decimal": lambda x: x * float(decimal.Decimal(x)),
    "struct.pack": lambda x: x * struct.unpack("d", struct.pack("d", x))[0],
    "np.copyto": lambda x: np.copyto(np.zeros(2), x),
    "np.fromiter": lambda x: x * np.fromiter([x], float)[0],
}
X = 0.7
#: Primitives that are tested here.
CASES = {"constant": 0}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: fg.grad(f)(X),
    "value_and_grad": lambda f: fg.value_and_grad(f)(X),
    "vjp": lambda f: fg.vjp(f, X),
    "jvp": lambda f: fg.jvp(f, (X,), (1.0,)),
    "linearize": lambda f: fg.linearize(f, X),
    "jacfwd": lambda f: fg.jacfwd(f)(X),
    "jacrev": lambda f: fg.jacrev(f)(X),
    "hessian": lambda f: fg.hessian(f)(X),
    "hvp": lambda f: fg.hvp(f, (X,), (1.0,)),
    "grad of grad": lambda f: fg.grad(fg.grad(f))(X),
    "vmap of grad": lambda f: fg.vmap(fg.grad(f))(np.array([X, X])),
    "grad of vmap": lambda f: fg.grad(lambda v: fnp.sum(fg.vmap(f)(v)))(np.array([X, X])),
    "jit of grad": lambda f: fg.jit(fg.grad(f))(X),
    "closed over by jit": lambda f: fg.grad(lambda x: fg.jit(lambda u: u * f(x))(1.0))(X),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_python_numbers_of_differentiated_values_raise(transform: str) -> None:
    for name, (f, write) in WAYS.items():
        with pytest.raises(DerivativeLostError) as info:
            TRANSFORMS[transform](f)
        text = str(info.value)
        assert "test_constants.py" in text, name
        assert write in text, (name, text)
        assert "funcgrad.stop_gradient(x)" in text, name
    for name, f in REFUSED.items():
        with pytest.raises((TypeError, ValueError, struct.error, fg.FuncgradError)):
            print(name, TRANSFORMS[transform](f))


def staged(f: Any) -> dict[str, Callable[[], Any]]:
    """A function in places that have only types: a value without contents cannot become a number."""
    rule = fg.custom_vjp(f)
    rule.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (ct * f(x),))
    forward = fg.custom_jvp(f)
    forward.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * f(primals[0])))
    return {
        "jit": lambda: fg.grad(fg.jit(f))(X),
        "checkpoint": lambda: fg.grad(fg.checkpoint(f))(X),
        "scan": lambda: fg.grad(lambda x: fg.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(X),
        "cond": lambda: fg.grad(lambda x: fg.cond(True, f, f, x))(X),
        "a rule of custom_vjp, differentiated": lambda: fg.grad(fg.grad(rule))(X),
        "a rule of custom_jvp, differentiated": lambda: fg.grad(fg.grad(forward))(X),
    }


@pytest.mark.parametrize("way", ["float", "np.float64", "item", "math.sin", "statistics.mean"])
def test_inside_of_programs_and_rules(way: str) -> None:
    for name, call in staged(WAYS[way][0]).items():
        with pytest.raises(fg.ConcretizationError) as info:
            print(name, call())
        assert "test_constants.py" in str(info.value)
    with pytest.raises(fg.ConcretizationError, match=r"In place of math\.sin\(\.\.\.\) write funcgrad\.numpy\.sin"):
        fg.jit(math.sin)(X)


def test_the_function_itself_is_named_where_it_is_the_one_that_is_differentiated() -> None:
    with pytest.raises(DerivativeLostError, match=r"^math\.sin\(\.\.\.\) would .*test_constants.*funcgrad\.numpy\.sin"):
        fg.grad(math.sin)(1.0)
    with pytest.raises(ValueError, match="sequence") as info:
        fg.grad(stored)(1.0)
    assert "funcgrad.numpy.stack" in str(info.value.__cause__)


def test_rounding_to_digits_is_refused_and_to_integers_is_not() -> None:
    with pytest.raises(DerivativeLostError, match=r"round\(\.\.\.\) would .* funcgrad\.numpy\.round"):
        fg.grad(lambda x: x * round(x, 1))(X)
    inside = fg.jit(lambda x: x * round(x, 1))  # while it is traced it is not differentiated
    for transform in (fg.grad, fg.jacfwd, fg.hessian):
        with pytest.raises(DerivativeLostError, match=r"round\(\.\.\.\) would .* at test_constants"):
            transform(inside)(X)
    assert inside(1.26) == pytest.approx(1.26 * 1.3)
    assert fg.grad(lambda x: x * round(x))(X) == 1.0


#: Operations that work, with their derivative by ``x`` at 2.5, where they are multiplied by it.
ALLOWED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "int": (int, 2.0),
    "floor, ceil, trunc": (lambda x: math.floor(x) + math.ceil(x) + math.trunc(x), 7.0),
    "range": (lambda x: len(range(int(x))), 2.0),
    "an index": (lambda x: [1, 2, 3][int(x)], 3.0),
    "bool and comparisons": (lambda x: (3.0 if x > 2 else 1.0) if x else 0.0, 3.0),
    "in": (lambda x: 3.0 if x in (2.5, 1.0) else 1.0, 3.0),
    "max": (lambda x: max(x > 1, x < 1), 1.0),
    "format": (lambda x: len(f"{x:.2f}") + len("%.3f" % x) + len("{:5.1f}".format(x)), 14.0),  # noqa: UP031, UP032
    "repr and str": (lambda x: bool(repr(x) and str(x)), 1.0),
    "hash": (lambda x: len({x: 1}), 1.0),
    "len and shape": (lambda x: len(fnp.stack([x, x])) + x.ndim, 2.0),
    "stop_gradient": (lambda x: float(fg.stop_gradient(x)), 2.5),
    "stop_gradient by math": (lambda x: math.sqrt(fg.stop_gradient(x) * 1.6), 2.0),
    "integers": (lambda x: float(x.astype(int)), 2.0),
    "results without a derivative": (lambda x: float(fnp.floor(x)), 2.0),
    "booleans": (lambda x: float(x > 1), 1.0),
    "plain values": (lambda x: float(fnp.asarray(3.0)) + np.float64(2.0), 5.0),
}


def test_numbers_that_lose_no_derivative_are_allowed() -> None:
    for name, (f, wanted) in ALLOWED.items():
        product = lambda x, f=f: x * f(x)
        found = [
            fg.grad(product)(2.5),
            fg.vjp(product, 2.5)[1](1.0)[0],
            fg.jvp(product, (2.5,), (1.0,))[1],
            fg.linearize(product, 2.5)[1](1.0),
            fg.jacrev(product)(2.5),
            fg.grad(lambda x, f=f: fg.grad(lambda y: x * y * f(y))(2.5))(2.5),
        ]
        assert [round(float(x), 5) for x in found] == [wanted] * 6, name
        assert fg.hessian(product)(2.5) == 0.0, name


def test_undifferentiated_arguments_convert_to_numbers() -> None:
    outside = fnp.asarray(2.0)
    assert (
        fg.grad(lambda x, n: x * float(n) * n.item() * float(outside) * math.sqrt(outside))(1.0, fnp.asarray(3.0)) > 25
    )
    assert fg.jvp(lambda x, n: x * float(n), (1.0, np.int64(3)), (1.0, fg.arguments.flatten.no_tangent(())))[1] == 3.0
    # Of the two derivatives the inner one is by another value.
    assert fg.grad(lambda x: fg.grad(lambda y: y * float(fg.stop_gradient(x)))(1.0) * x)(3.0) == 3.0
    with pytest.raises(DerivativeLostError):
        fg.grad(lambda x: fg.grad(lambda y: y * float(x))(1.0))(3.0)
    kept: list[Any] = []
    fg.grad(lambda x: kept.append(x) or x * x)(2.0)
    assert float(kept[0]) == 2.0  # no longer differentiated


def test_custom_rules_may_convert_operands_to_numbers() -> None:
    square = fg.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, float(x)), lambda x, ct: (ct * 2 * math.sqrt(x * x),))
    assert fg.grad(square)(3.0) == 6.0


def test_places_of_the_library_that_took_numbers_keep_derivatives() -> None:
    assert fg.grad(lambda x: fnp.sum(fnp.r_[x:2.0:5j]))(1.0) == 2.5
    assert fg.grad(lambda x: fnp.sum(fnp.mgrid[0.0:x:5j]))(1.0) == 2.5

    def summed(start: Any) -> Any:
        return fnp.sum(fg.lax.reduce_window(np.ones(4, np.float32), start, fg.lax.add, (2,), (1,), "VALID"))

    assert fg.grad(summed)(np.float32(0.0)) == fg.grad(summed)(np.float32(1.0)) == 3.0


def test_known_values_of_a_program_are_constants_unless_they_are_differentiated() -> None:
    def inside(x: Any, y: Any) -> Any:
        return fg.jit(lambda u: u * float(fnp.sin(y)))(x)

    assert float(fg.grad(inside)(1.0, np.float64(0.5))) == pytest.approx(math.sin(0.5))
    with pytest.raises(DerivativeLostError):
        fg.grad(inside, argnums=1)(1.0, 0.5)
    deep = lambda x: fg.jit(lambda u: u * float(functools.reduce(lambda a, _: a * a, range(60), fg.stop_gradient(x))))(
        x
    )
    assert fg.grad(deep)(1.0) == 1.0
