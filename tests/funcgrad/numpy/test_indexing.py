"""Indexing: every form that NumPy has, reading and writing, static and traced, batched; and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close, examples

X = np.arange(24.0).reshape(2, 3, 4)
I = np.array([0, 1, 1])  # noqa: E741
J = np.array([[0], [-1]])

INDICES: list[Any] = [
    0, -1, (0, 1), (0, 1, 2), (np.int64(1), I[0]), slice(None), slice(1, None), (slice(None), slice(None, None, 2)),
    (..., slice(None, None, -1)), (slice(None), slice(2, 0, -1), slice(0, 0)), slice(5, 2),
    (slice(None, None, -2), slice(-1, None, -1)), (None, 0), (slice(None), None, 1, ..., None), (0, ..., -1), (), ...,
    I, (I, I), (slice(None), I), (slice(None), I, I), (0, slice(None), I), (I, slice(None), 0), (I, None, 0),
    (slice(None), I, ..., I), (slice(None), I, None, 0), (J, I), (slice(None), J, I), (..., I), (0, 1, I),
    X[..., 0] > 5, (slice(None), X[0] > 3), (0, X[1, :, 0] > 12, slice(1, 3)), True, False, (slice(None), True, I),
    ([0, 1],), [1, 0], [], (I[:0], I[:0]), (slice(None, None, -1), I, slice(0, 1)), np.array([True, False]),
]  # fmt: skip


def numpy_index(index: Any) -> Any:
    """The index for NumPy: an empty list is a list of no integers."""
    return np.zeros(0, int) if isinstance(index, list) and not index else index


@pytest.mark.parametrize("number", range(len(INDICES)))
def test_read_and_written(number: int) -> None:
    index = INDICES[number]
    place = numpy_index(index)
    wanted = X[place]
    rng = np.random.default_rng(number)
    ct, values = rng.normal(size=wanted.shape), rng.normal(size=wanted.shape)
    whole = rng.normal(size=X.shape)

    @fg.jit
    def ask(x: Any, ct: Any, values: Any, whole: Any) -> Any:
        out, pullback = fg.vjp(lambda x: x[index], x)
        added, pull_added = fg.vjp(lambda x, v: x.at[index].add(v), x, values)
        put, pull_put = fg.vjp(lambda x, v: x.at[index].set(v), x, values)
        others = x.at[index].multiply(values), x.at[index].min(values), x.at[index].max(values), x.at[index].subtract(1)
        return out, pullback(ct)[0], added, pull_added(whole), put, pull_put(whole), others

    out, x_ct, added, added_cts, put, put_cts, others = ask(X, ct, values, whole)
    assert_close(out, np.asarray(wanted), "read")
    back = np.zeros_like(X)
    np.add.at(back, place, ct)
    assert_close(x_ct, back, "vjp of read")

    def changed(ufunc: np.ufunc, by: Any = values) -> np.ndarray:
        x = X.copy()
        ufunc.at(x, place, by)
        return x

    assert_close(added, changed(np.add), "add")
    assert_close(added_cts[0], whole, "vjp of add by x")
    assert_close(added_cts[1], np.asarray(whole[place]), "vjp of add by the values")
    for got, ufunc, by in zip(
        others, (np.multiply, np.minimum, np.maximum, np.subtract), (values, values, values, 1.0), strict=True
    ):
        assert_close(got, changed(ufunc, by), ufunc.__name__)
    # If an index names an element twice, which value stays is not defined, but it is one of them.
    outside = np.ones(X.shape, bool)
    outside[place] = False
    assert_close(np.asarray(put)[outside], X[outside], "set leaves the rest")
    assert_close(put_cts[0], np.where(outside, whole, 0.0), "vjp of set by x")
    stayed = np.asarray(put_cts[1]) != 0
    assert_close(np.asarray(put)[place][stayed], np.asarray(values)[stayed], "set")
    back = np.zeros_like(X)
    np.add.at(back, place, np.asarray(put_cts[1]))
    assert_close(back, np.where(outside, 0.0, whole), "vjp of set by the values: each place has one")


@pytest.mark.parametrize("number", range(0, len(INDICES), 2))
def test_batched_and_eager(number: int) -> None:
    index = INDICES[number]
    stacked = np.stack([X, X * 2, X - 5])
    wanted = np.stack([x[numpy_index(index)] for x in stacked])
    assert_close(fg.vmap(lambda x: x[index])(stacked), wanted, "vmap")
    assert_close(fnp.at(X)[index].get(), np.asarray(X[numpy_index(index)]), "of a NumPy array")
    assert_close(fg.vjp(lambda x: x[index], X)[0], np.asarray(X[numpy_index(index)]), "outside jit")


@st.composite
def shapes_and_indices(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))

    def entry(n: int) -> Any:
        kind = draw(st.sampled_from(["int", "slice", "slice", "array"]))
        if kind == "int":
            return draw(st.integers(-n, n - 1))
        if kind == "slice":
            bound = st.none() | st.integers(-n - 1, n + 1)
            return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))
        own = tuple(draw(st.sampled_from([1, m])) for m in common)
        count = int(np.prod(own))
        places = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
        return np.array(places, draw(st.sampled_from(["int8", "int32", "int64"]))).reshape(own)

    # The axes before an ellipsis from the front, those after it from the back.
    before = draw(st.integers(0, len(shape)))
    after = draw(st.integers(0, len(shape) - before))
    entries = [entry(n) for n in shape[:before]]
    if after or draw(st.booleans()):
        entries += [..., *[entry(n) for n in shape[len(shape) - after :]]]
    if not any(isinstance(e, np.ndarray) for e in entries) and before and draw(st.booleans()):
        entries[0] = np.array(draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])))
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    return shape, tuple(entries)


@examples(40)
@given(shapes_and_indices())
def test_any_index(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    wanted = x[index]
    assert fg.trace(lambda x: x[index], x).output_types[0].shape == wanted.shape
    assert_close(fg.jit(lambda x: x[index])(x), np.asarray(wanted), f"{index}")


# ---------------------------------------------------------------- traced indices


def test_traced_ints() -> None:
    @fg.jit
    def ask(x: Any, i: Any) -> Any:
        return (
            x[i],
            x[:, i],
            x[i, ::2, -1],
            x[..., i, None],
            fnp.at(X)[0, i].get(),
            x.at[i, 1].set(9.0),
            x.at[:, i, ::-2].add(1.0),
        )

    for i in (np.int32(1), np.int8(-2), np.uint8(1), 1, np.array(0)):
        k = int(i)
        put, added = X.copy(), X.copy()
        put[k, 1], added[:, k, ::-2] = 9.0, added[:, k, ::-2] + 1
        wanted = X[k], X[:, k], X[k, ::2, -1], X[..., k, None], X[0, k], put, added
        for a, b in zip(ask(X, i), wanted, strict=True):
            assert_close(a, b, f"at {k}")


def test_traced_arrays_and_masks() -> None:
    @fg.jit
    def ask(x: Any, i: Any, mask: Any) -> Any:
        masked = x.at[mask].set(0.0), x.at[mask].add(1.0), x.at[mask].set(fnp.arange(4.0)), x.at[mask].max(3.0)
        return x[:, i], x[i, i], fnp.take(x, i, axis=2), x.at[0, i].add(1.0), fnp.at(X)[..., i].get(), *masked

    mask = X[..., 0] > 3
    added = X.copy()
    np.add.at(added[0], I, 1.0)
    m = mask[..., None]
    masked = np.where(m, 0.0, X), X + m, np.where(m, np.arange(4.0), X), np.where(m, np.maximum(X, 3.0), X)
    wanted = X[:, I], X[I, I], X[..., I], added, X[..., I], *masked
    for a, b in zip(ask(X, I, mask), wanted, strict=True):
        assert_close(a, b, "traced")


def test_traced_places_outside() -> None:
    """Reading clamps the index, writing does nothing; far outside too, and in narrow integers."""
    long = np.arange(300.0)
    far = np.array([300, 10**9, -301, -(2**40), 2**40, -1])

    @fg.jit
    def ask(x: Any, i: Any, narrow: Any) -> Any:
        return x[i], x.at[i].set(-1.0), x[narrow], fnp.take(x, i, mode="clip"), fnp.take(x, i, mode="wrap")

    read, written, narrow, clipped, wrapped = ask(long, far, np.array([-128, 127], np.int8))
    assert_close(read, np.array([299.0, 299, 0, 0, 299, 299]), "read")
    expected = long.copy()
    expected[-1] = -1.0
    assert_close(written, expected, "written")
    assert_close(narrow, long[[-128, 127]], "int8 against an axis of 300")
    assert_close(clipped, long[np.clip(far, 0, 299)], "clip")
    assert_close(wrapped, long[far % 300], "wrap")


def test_places_from_vmap() -> None:
    got = fg.vmap(lambda x, i: (x[i], x.at[i].set(7.0), fnp.take_along_axis(x, i[None], 0)), (0, 0))(
        X[:, :, 0], np.array([2, 1])
    )
    put = X[:, :, 0].copy()
    put[[0, 1], [2, 1]] = 7.0
    assert_close(got[0], X[[0, 1], [2, 1], 0], "read")
    assert_close(got[1], put, "written")
    assert_close(got[2], X[[0, 1], [2, 1], 0][:, None], "along an axis")
    table = jnp.asarray(X[0])
    assert_close(fg.vmap(lambda i: fnp.at(table)[i].get())(np.array([2, 0])), X[0][[2, 0]], "a table shared by all")


def test_gradients_through_traced_places() -> None:
    def f(x: Any, i: Any) -> Any:
        return fnp.sum(x[i] ** 2 + fnp.take_along_axis(x, fnp.argsort(x, axis=0), 0)[0] * x[-1])

    def theirs(x: Any, i: Any) -> Any:
        return jnp.sum(x[i] ** 2 + jnp.take_along_axis(x, jnp.argsort(x, axis=0), 0)[0] * x[-1])

    x = np.random.default_rng(0).normal(size=(4, 2))
    assert_close(fg.jit(fg.grad(f))(x, 2), jax.jit(jax.grad(theirs))(x, 2), "grad")
    assert_close(fg.jit(fg.hessian(f))(x, 2), jax.jit(jax.hessian(theirs))(x, 2), "hessian")


def test_put_along_axis() -> None:
    x, i, values = X[0], np.array([[2, 0], [1, 3], [-1, 0]]), np.array([[1.0, 2.0]])
    wanted = x.copy()
    np.put_along_axis(wanted, i, np.broadcast_to(values, i.shape), 1)
    assert_close(fnp.put_along_axis(x, i, values, 1, inplace=False), wanted, "put_along_axis")
    out, pullback = fg.vjp(lambda x, v: fnp.put_along_axis(x, i, v, 1, inplace=False), x, values)
    assert_close(out, wanted, "value")
    x_ct, v_ct = pullback(np.ones_like(x))
    untouched = np.ones_like(x)
    np.put_along_axis(untouched, i, 0.0, 1)
    assert_close(x_ct, untouched, "vjp by x")
    assert_close(v_ct, np.array([[3.0, 3.0]]), "vjp by the values")


# ---------------------------------------------------------------- the primitives used


def primitives(f: Any, *args: Any) -> list[str]:
    return [str(e.primitive) for e in fg.trace(f, *args).equations]


def test_slices_are_slices() -> None:
    assert primitives(lambda x: x[1], X) == ["slice", "reshape"]
    assert primitives(lambda x: x[:, ::-1], X) == ["reverse"]
    assert primitives(lambda x: x[None, ..., 1:2], X) == ["slice", "reshape"]
    assert primitives(lambda x: x[...], X) == []
    assert primitives(lambda x: x[I], X) == ["gather"]
    assert primitives(lambda x: x[1, I], X) == ["slice", "reshape", "gather"]
    assert primitives(lambda x: x.at[1:].set(0.0), X) == ["broadcast", "dynamic_update_slice"]
    assert primitives(lambda x: x.at[...].add(1.0), X) == ["broadcast", "add"]


def test_a_loop_over_places_compiles_once() -> None:
    x = np.arange(57.0)
    compiled = []
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("jax._src.interpreters.pxla.logger.log", lambda *a, **k: compiled.append(a))
        # Small arrays would run with NumPy at first, without compilation.
        patch.setattr("funcgrad.runtime.numpy_backend.milliseconds", lambda program: np.inf)
        fg.grad(lambda x: fnp.sum(x[3] * x[5]))(x)
        before = len(compiled)
        assert before
        for i in range(6, 50):
            fg.grad(lambda x: fnp.sum(x[i] * x[i - 4]))(x)  # noqa: B023
    assert len(compiled) == before


def test_iteration_and_length() -> None:
    assert_close(
        fg.grad(lambda x: sum(i * row.sum() for i, row in enumerate(x)))(X),
        np.broadcast_to([[[0.0]], [[1.0]]], X.shape),
        "iteration",
    )
    assert fg.jit(len)(X) == 2
    parts = fg.jit(tuple)(X)
    assert_close(parts[1], X[1], "unpacking")
    with pytest.raises(TypeError, match="without axes"):
        fg.grad(sum)(1.0)
    with pytest.raises(TypeError, match="without axes"):
        fg.grad(len)(1.0)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: x[2], IndexError, r"2 is out of bounds for axis 0 of f64\[2,3,4\], of size 2"),
        (lambda x: x[:, -4], IndexError, "-4 is out of bounds for axis 1"),
        (lambda x: x[0, np.array([1, 7])], IndexError, "7 is out of bounds for axis 1"),
        (lambda x: x[0, 0, 0, 0], IndexError, "4 indices for an array of type .*, which has 3 axes"),
        (lambda x: x[..., 0, ...], IndexError, "once only"),
        (lambda x: x[1.5], IndexError, r"got an array of type f32\[\]|got 1.5 of type float"),
        (lambda x: x["a"], IndexError, "got 'a' of type str"),
        (lambda x: x[x], IndexError, r"got an array of type f64\[2,3,4\]"),
        (lambda x: x[np.array([True, False, True])], IndexError, r"mask of shape \(3,\) does not fit"),
        (lambda x: x["a":], IndexError, "bounds of slice"),
        (lambda x: x[x > 1], fg.ConcretizationError, "traced mask of type bool.*funcgrad.numpy.where"),
        (lambda x: x[: fnp.argmax(x)], fg.ConcretizationError, "slice's bounds must be known.*funcgrad.numpy.arange"),
        (lambda x: x[I[:2], I], ValueError, r"index: operands of shapes \(2,\) and \(3,\)"),
        (lambda x: x[:, 0:0][:, fnp.argmax(x) * I], IndexError, "axis 1 of .* has no elements to take"),
        (lambda x: x.at[0].set(np.ones(5)), ValueError, r"f64\[5\] does not broadcast to the indexed shape \(3, 4\)"),
        (lambda x: x.at[0].set("a"), TypeError, "got 'a' of type str"),
        (lambda x: x.at[0].set(1j), TypeError, "complex64 does not fit into an array of dtype float64"),
        (lambda x: fnp.argmax(x, axis=0).at[0].add(0.5), TypeError, "float32 does not fit into an array of"),
        (lambda x: x.__setitem__(0, 1.0), TypeError, r"immutable.*x\.at\[index\]\.set\(y\)"),
    ],
)  # fmt: skip
def test_refusals(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fg.jit(f)(X)


def test_masks_and_slices_of_values_work_outside_jit() -> None:
    def f(x: Any) -> Any:
        return fnp.sum(x[x > 4] ** 2) + fnp.sum(x[: int(fnp.argmax(x))])

    x = np.array([5.0, 1.0, 7.0, 2.0])
    assert_close(fg.grad(f)(x), np.array([11.0, 1.0, 14.0, 0.0]), "grad")


def test_of_several_values_for_one_place_one_is_credited_or_every_one() -> None:
    x, v, weights = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    for every, wanted in ((False, [0.0, 1.0, 4.0]), (True, [1.0, 1.0, 4.0])):
        loss = lambda v, every=every: fnp.sum(fnp.at(x)[np.array([0, 0, 2])].set(v, every=every) * weights)
        assert_close(fg.grad(loss)(v), np.array(wanted), f"every={every}")
        assert_close(fg.vmap(fg.grad(loss))(v[None]), np.array([wanted]), f"every={every}, batched")


def test_masks_that_have_a_value_pick_elements() -> None:
    x, mask = fnp.arange(3.0), fnp.asarray([True, False, True], copy=True)
    np.testing.assert_array_equal(x[mask], [0, 2])  # a copy that may be written to
    of_constants = lambda x: x[fnp.asarray([1, 0, 1]) == fnp.ones(3)]
    for f in (lambda x: x[mask], of_constants):
        np.testing.assert_array_equal(fg.jit(f)(x), [0, 2])
        np.testing.assert_array_equal(fg.grad(lambda x, f=f: fnp.sum(f(x)))(x), [1, 0, 1])
