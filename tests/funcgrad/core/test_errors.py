"""Errors name the user's line and say what to do instead."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import funcgrad as fg
import funcgrad.numpy as fnp

X = np.array([0.5, -1.0, 2.0])


def message(call: Any, error: type[Exception] = fg.ConcretizationError) -> str:
    with pytest.raises(error) as info:
        call()
    return str(info.value)


# ---------------------------------------------------------------- values of tracers without values


def branching(x: Any) -> Any:
    if x > 0:  # asked here
        return x
    return -x


def looping(x: Any) -> Any:
    while x < 10:  # asked here
        x = x * 2
    return x


def converting(x: Any) -> Any:
    return float(x)  # asked here


def rounding(x: Any) -> Any:
    return range(int(x))  # asked here


def indexing(x: Any) -> Any:
    return [1, 2, 3][fnp.argmax(fnp.stack([x, x]))]  # asked here


def reading(x: Any) -> Any:
    return x.item()  # asked here


def listing(x: Any) -> Any:
    return x.tolist()  # asked here


def asserting(x: Any) -> Any:
    assert fnp.all(x > 0)  # asked here
    return x


def arraying(x: Any) -> Any:
    return np.asarray(x)  # asked here


@pytest.mark.parametrize(
    "f", [branching, looping, converting, rounding, indexing, reading, listing, asserting, arraying]
)
@pytest.mark.parametrize(
    "transform", ["jit", "vmap", "trace", "jit of grad", "grad of jit", "vmap of jvp", "hessian of jit"]
)
def test_the_line_is_named(transform: str, f: Any) -> None:
    call = {
        "jit": lambda: fg.jit(f)(1.0),
        "vmap": lambda: fg.vmap(f)(X),
        "trace": lambda: fg.trace(f, 1.0),
        "jit of grad": lambda: fg.jit(fg.grad(f))(1.0),
        "grad of jit": lambda: fg.grad(fg.jit(f))(1.0),
        "vmap of jvp": lambda: fg.vmap(lambda x: fg.jvp(f, (x,), (x,)))(X),
        "hessian of jit": lambda: fg.hessian(fg.jit(f))(1.0),
    }[transform]
    text = message(call)
    assert "test_errors.py" in text
    assert f"(in {f.__name__})" in text
    assert "# asked here" in text
    assert "bool[]" in text or "f32[]" in text or "f64[]" in text or "i64[]" in text
    if f in (converting, reading, listing, arraying) and transform in ("jit of grad", "vmap of jvp"):
        assert "derivative would be lost" in text
    elif f is not arraying:
        assert "funcgrad.numpy.where" in text
        assert (
            "stands for 3 values" if transform.startswith("vmap") else "has a shape and a dtype but no value"
        ) in text


def test_tracebacks_are_short() -> None:
    """The traceback ends with the user's function and the one that raises; no state is left half-changed."""
    with pytest.raises(fg.ConcretizationError) as info:
        fg.jit(branching)(1.0)
    assert info.value.__cause__ is None
    assert not [n for n in getattr(info.value, "__notes__", []) if "JAX" in n]
    assert float(fg.grad(branching)(-2.0)) == -1.0
    assert float(fg.jit(fnp.sin)(0.0)) == 0.0


def test_storing_into_numpy_arrays_is_refused() -> None:
    """Otherwise the gradient would be lost silently."""

    def store(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x
        return fnp.sum(a * x)

    def store_slice(x: Any) -> Any:
        a = np.zeros((3, 2))
        a[1:, 0] = x * fnp.ones(2)
        return fnp.sum(a)

    for f in (store, store_slice):
        with pytest.raises((TypeError, ValueError)) as info:
            fg.grad(f)(1.0)
        causes = [info.value, info.value.__cause__, info.value.__context__]
        assert any(isinstance(c, fg.ConcretizationError) and "derivative would be lost" in str(c) for c in causes)


# ---------------------------------------------------------------- leaks


def leak(transform: Any) -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        return fnp.sum(x)

    transform(f)
    return kept[0]


@pytest.mark.parametrize(
    ("name", "transform"),
    [
        ("grad", lambda f: fg.grad(f)(X)),
        ("jvp", lambda f: fg.jvp(f, (X,), (X,))),
        ("vmap", lambda f: fg.vmap(f)(X)),
        ("jit", lambda f: fg.jit(f)(X)),
        ("trace", lambda f: fg.trace(f, X)),
    ],
)
def test_leaked_tracers(name: str, transform: Any) -> None:
    tracer = leak(transform)
    text = message(lambda: tracer + 1, fg.LeakedTracerError)
    assert f"traced by {name} at" in text
    assert text.count("test_errors.py") == 2 + (name in ("grad", "jit", "trace"))  # the context knows where it was made
    assert "Return it from the traced function" in text
    # Every use raises, and repr still works for a debugger.
    message(lambda: fg.grad(lambda x: x * fnp.sum(tracer))(1.0), fg.LeakedTracerError)
    message(lambda: fg.jit(lambda x: x * tracer)(1.0), fg.LeakedTracerError)
    assert repr(tracer).startswith("Traced<")


def test_a_tracer_after_an_error_inside() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x)
        raise KeyError("mine")

    for transform in (fg.grad, fg.jit, fg.vmap):
        with pytest.raises(KeyError, match="mine"):
            transform(f)(X)
        message(lambda: kept[-1] * 2, fg.LeakedTracerError)
    assert float(fg.grad(lambda x: x * x)(3.0)) == 6.0


def test_copies_of_tracers_are_the_tracers() -> None:
    assert float(fg.grad(lambda x: copy.deepcopy({"x": x})["x"] * copy.copy(x))(3.0)) == 6.0


def test_tracers_cannot_be_pickled() -> None:
    assert "cannot be pickled" in message(lambda: fg.grad(pickle.dumps)(3.0), TypeError)


# ---------------------------------------------------------------- no derivative


def test_a_primitive_without_a_rule_names_itself_and_the_line() -> None:
    from jax import lax

    from funcgrad.core.ir import ArrayType
    from funcgrad.core.primitive import Primitive

    mystery = Primitive("mystery", infer=lambda x: ArrayType(x.shape, x.dtype), lower=lax.sin)
    for transform in (
        lambda f: fg.grad(f)(1.0),
        lambda f: fg.jvp(f, (1.0,), (1.0,)),
        lambda f: fg.jit(fg.grad(f))(1.0),
    ):
        text = message(lambda t=transform: t(mystery), fg.NonDifferentiableError)
        assert "'mystery' has no derivative rule" in text
        assert "test_errors.py" in text
    text = message(lambda: fg.vmap(mystery)(X), fg.FuncgradError)
    assert "'mystery' has no batching rule" in text
    assert float(mystery(0.0)) == 0.0


def test_shape_errors_are_the_same_everywhere() -> None:
    """Eager, staged, differentiated and batched, a wrong call raises the same error."""

    def f(x: Any) -> Any:
        return x @ np.ones((4, 2))

    texts = {
        message(call, ValueError)
        for call in (
            lambda: fnp.matmul(X, np.ones((4, 2))),
            lambda: fg.jit(f)(X),
            lambda: fg.vjp(f, X),
            lambda: fg.jvp(f, (X,), (X,)),
            lambda: fg.vmap(f)(np.stack([X, X])),
        )
    }
    assert {text.partition("; at ")[0] for text in texts} == {"matmul: f64[3] has 3 columns but f64[4,2] has 4 rows"}
    assert all("; at test_errors.py:" in text for text in texts)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: x + fnp.ones((4, 2)), "add: operands of shapes (3,) and (4, 2) do not broadcast together"),
        (lambda x: fnp.concatenate([x, fnp.ones((4, 2))]), "got f64[3], f64[4,2]"),
        (lambda x: fnp.reshape(x, (2, 2)), "cannot give f64[3] the shape (2, 2): 3 elements against 4"),
        (
            lambda x: fg.scan(lambda c, _: (fnp.concatenate([c, c]), None), x, length=2),
            "f64[3] before a step and f64[6]",
        ),
    ],
)
def test_wrong_shapes_name_the_operands_and_the_line(f: Any, said: str) -> None:
    for transform in (fg.jit(f), lambda x: fg.vjp(f, x), lambda x: fg.vmap(f)(fnp.stack([x, x]))):
        text = message(lambda t=transform: t(X), (TypeError, ValueError))
        assert said in text and "; at test_errors.py:" in text and "lambda x:" in text


def test_leaked_tracer_errors_name_the_line() -> None:
    kept = []

    def f(x: Any) -> Any:
        kept.append(fnp.sin(x))  # made here
        kept.append(fnp.cumsum(x))  # and here
        return fnp.sum(x)

    for transform in (fg.jit(f), fg.grad(f)):
        transform(X)
        for leaked, line in ((kept[0], "fnp.sin(x)"), (kept[1], "fnp.cumsum(x)")):
            text = message(lambda x=leaked: x + 1, fg.LeakedTracerError)
            assert f"made at test_errors.py:{f.__code__.co_firstlineno + 1 + (line != 'fnp.sin(x)')}" in text
            assert f"kept.append({line})" in text and "was used at test_errors.py" in text
        kept.clear()


def test_lines_of_installed_libraries_come_with_the_line_that_called_them() -> None:
    def loss(x: Any) -> Any:
        return fnp.sum(fnp.asarray(scipy.linalg.expm(x)))

    text = message(lambda: fg.grad(loss)(fnp.eye(2)))
    line = loss.__code__.co_firstlineno + 1
    called = ", called from test_errors.py:"
    assert "(in expm)" in text and f"{called}{line} (in loss): return fnp.sum" in text
    assert called not in message(lambda: fg.jit(np.asarray)(X))


def test_errors_name_the_functions_to_use_instead() -> None:
    text = message(lambda: fg.jit(lambda x: x if x.sum() > 0 else -x)(X), fg.ConcretizationError)
    for name in ("funcgrad.numpy.where", "funcgrad.cond", "while_loop", "static_argnums", "test_errors.py:"):
        assert name in text
