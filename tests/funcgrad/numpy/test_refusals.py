"""Wrong arguments of ``funcgrad.numpy``: each raises an error that names the function and the argument."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import operator
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad import numpy_rows

PACKAGE = str(Path(fg.__file__).parent)
X = fnp.array([3.0, 1.0, 2.0])
V = np.array([3.0, 1.0, 2.0])
M = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        # Indices that are arrays with known values.
        (lambda: fnp.take(X, fnp.array([5])), IndexError, "take: 5 is out of bounds for axis 0"),
        (lambda: fnp.take_along_axis(X, fnp.array([0, -4]), 0), IndexError, "take_along_axis: -4 is out of bounds"),
        (lambda: fnp.put(X, fnp.array([3]), 1.0, inplace=False), IndexError, "put: 3 is out of bounds"),
        (lambda: fnp.put([1, 2, 3], 7, 1, inplace=False), IndexError, "put: 7 is out of bounds"),
        (lambda: fnp.put_along_axis(X, fnp.array([3]), 1.0, 0, inplace=False), IndexError, "put_along_axis: 3 is"),
        (lambda: fnp.unravel_index(fnp.array([6]), (2, 3)), ValueError, r"unravel_index: 6 .* the shape \(2, 3\)"),
        (lambda: fnp.ravel_multi_index((fnp.array([2]), [0]), (2, 3)), ValueError, "ravel_multi_index: 2 is out"),
        (lambda: fnp.choose(fnp.array([2]), [[1], [2]]), ValueError, "choose: 2 is out of bounds for the choices"),
        # Options.
        (lambda: fnp.put(X, [0], 1.0, mode="x", inplace=False), ValueError, "put: mode must be .*, got 'x'"),
        (lambda: fnp.choose([0], [[1]], mode="x"), ValueError, 'choose: mode must be "raise", "clip" or "wrap"'),
        (lambda: fnp.unravel_index([0], (2,), mode="x"), ValueError, 'unravel_index: mode must be "raise" or "clip"'),
        (lambda: fnp.unravel_index([0], (2,), "x"), ValueError, 'unravel_index: order must be "C" or "F"'),
        (lambda: fnp.ravel_multi_index(([0],), (2,), "x"), ValueError, "ravel_multi_index: mode must be"),
        (lambda: fnp.trim_zeros(X, "x"), ValueError, "trim_zeros: trim must be"),
        (lambda: fnp.histogram(X, "x"), ValueError, 'histogram: bins must be "auto"'),
        (lambda: fnp.einsum("i,i", X, X, optimize="x"), ValueError, "einsum: optimize is 'x'"),
        (lambda: fnp.reshape(X, (3,), order="x"), ValueError, "reshape: order must be"),
        # Sizes, counts and shapes.
        (lambda: fnp.full((), [1, 2]), ValueError, r"full: a fill_value of shape \(2,\) does not broadcast"),
        (lambda: fnp.full(2, [[1, 2], [3, 4]]), ValueError, r"full: a fill_value of shape \(2, 2\)"),
        (lambda: fnp.tri(-2), ValueError, "tri: N must be at least 0, got -2"),
        (lambda: fnp.eye((2, 3)), TypeError, r"eye: N must be an int, got \(2, 3\)"),
        (lambda: fnp.indices((-1, 2)), ValueError, r"indices: dimensions \(-1, 2\) has a negative size"),
        (lambda: fnp.tril_indices(-1), ValueError, "tril_indices: n must be at least 0"),
        (lambda: fnp.triu_indices_from(X), ValueError, "triu_indices_from: wants a matrix"),
        (lambda: fnp.round(X, 1.5), TypeError, "round: decimals must be an int, got 1.5"),
        (lambda: fnp.broadcast_to(X, (2, 2.5)), TypeError, "broadcast_to: each of shape must be an int, got 2.5"),
        (lambda: fnp.repeat(X, [1, -1, 1]), ValueError, "repeat: repeats must not be negative, got -1"),
        (lambda: fnp.repeat(X, [1, 2]), ValueError, "repeat: repeats must be one number or 3"),
        (lambda: fnp.tile(X, -1), ValueError, "tile: reps must not be negative"),
        (lambda: fnp.vsplit(X, 1), ValueError, "vsplit: wants an array of 2 or more axes"),
        (lambda: fnp.array_split(X, 0), ValueError, "array_split: the number of parts must be at least 1"),
        (lambda: fnp.vander(X, -1), ValueError, "vander: N must be at least 0"),
        (lambda: fnp.arange("x"), TypeError, "arange: stop must be a real number, got 'x'"),
        (lambda: fnp.arange(np.inf), ValueError, "arange: stop must be finite, got inf"),
        (lambda: fnp.fromiter([1, 2], int, 3), ValueError, "fromiter: wants 3 elements, got 2"),
        (lambda: fnp.zeros(2, device="x"), TypeError, "device must be one of JAX's devices"),
        (lambda: fnp.histogram(X, []), ValueError, "histogram: bins must have edges, got none"),
        # Ranks.
        (lambda: fnp.vecmat(1.0, M), ValueError, "vecmat: wants vectors and matrices"),
        (lambda: fnp.matvec(X, X), ValueError, "matvec: wants matrices and vectors"),
        (lambda: fnp.tensordot(X, X, 2), ValueError, "tensordot: .* do not both have 2 axes"),
        (lambda: fnp.tensordot(M, M, ([0], [0, 1])), ValueError, "tensordot: axes must be as many"),
        (lambda: fnp.polyfit(X, 3.0, 1), TypeError, "polyfit: y must be a vector or a matrix"),
        (lambda: fnp.digitize(X, M), ValueError, "digitize: bins must be a vector"),
        (lambda: fnp.rot90(M, 1, (0, 0)), ValueError, "rot90: axis .* names an axis twice"),
        (lambda: fnp.roll(M, (1, 2, 3), (0, 1)), ValueError, r"roll: shift \(1, 2, 3\) and axis \(0, 1\)"),
        # Arguments that are not arrays.
        (lambda: fnp.stack(3), TypeError, "stack: wants a sequence of arrays, got 3"),
        (lambda: fnp.hstack([]), ValueError, "hstack: wants at least one array, got none"),
        (lambda: fnp.asarray([[1, 2], [3]]), ValueError, "asarray: the rows of .* differ in shape"),
        (lambda: fnp.asarray(["x"]), TypeError, "asarray: wants numbers, got"),
        (lambda: fnp.argmax([1j]), TypeError, "argmax: takes real or bool arrays"),
        (lambda: fnp.cov(None), TypeError, "cov: got None"),
        (fnp.result_type, ValueError, "result_type: wants at least one"),
        (lambda: fnp.select(3, [X]), TypeError, "select: condlist must be a sequence"),
        (lambda: fnp.nan_to_num(X, nan="x"), TypeError, "nan_to_num: nan must be a number"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_range_for_each_coordinate() -> None:
    with pytest.raises(ValueError, match="histogram: range has 1 pairs, but the points have 2 coordinates"):
        fnp.histogramdd(np.ones((3, 2)), 2, [(0, 1)])


def test_traced_positions_outside_are_not_seen() -> None:
    assert fg.jit(fnp.take)(X, fnp.array([5])).tolist() == [2.0]
    assert fg.grad(lambda x: fnp.take(x, fnp.array([1, 1])).sum())(X).tolist() == [0.0, 2.0, 0.0]


def test_zeros_are_trimmed_of_every_axis() -> None:
    x = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])
    for trim in ("f", "b", "fb"):
        for axis in (None, 0, (1,)):
            np.testing.assert_array_equal(fnp.trim_zeros(x, trim, axis), np.trim_zeros(x, trim, axis))
    assert fnp.trim_zeros(np.zeros((2, 2))).shape == (0, 0)


def test_quantiles_of_all_nan_and_of_empty_arrays_are_nan() -> None:
    assert np.isnan(fnp.nanmedian(np.zeros(0)))
    assert np.isnan(fnp.nanquantile(np.zeros((2, 0)), [0.5, 0.7], axis=1)).all()
    assert fnp.nanpercentile(np.zeros((0, 3)), 50, axis=0, keepdims=True).shape == (1, 3)


def test_the_condition_of_zeros_is_infinite() -> None:
    for order in (None, -2, 1, "fro"):
        assert fnp.linalg.cond(np.zeros((2, 2)), order) == np.inf


def test_round_with_many_decimals_changes_nothing() -> None:
    assert fnp.round(1.25, 400) == 1.25 and fnp.round(1.25, -400) == 0.0
    assert fnp.round(np.array([1.5, np.inf], np.float32), 39).tolist() == [1.5, np.inf]


def test_einsum_of_bools_is_a_logical_or() -> None:
    a, b = np.array([[True, False], [False, False]]), np.array([True, True])
    for subscripts, operands in (("ij,j->i", (a, b)), ("ij->", (a,)), ("ij->ji", (a,))):
        wanted, found = np.einsum(subscripts, *operands), fnp.einsum(subscripts, *operands)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, wanted)


def test_numbers_take_the_default_dtype() -> None:
    assert fnp.astype(1, float).dtype == np.float32


def test_nan_to_num_changes_a_copy_that_may_be_written_to() -> None:
    x = fnp.asarray([1.0, np.nan], copy=True)
    assert fnp.nan_to_num(x, copy=False) is x
    assert x.tolist() == [1.0, 0.0]


# ---------------------------------------------------------------- every function


class Recorder:
    """NumPy, recording the first call of each of its functions."""

    def __init__(self, namespace: Any = np, calls: dict[str, tuple] | None = None, prefix: str = ""):
        self.namespace, self.prefix = namespace, prefix
        self.calls: dict[str, tuple] = {} if calls is None else calls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.namespace, name)
        if inspect.ismodule(value):
            return Recorder(value, self.calls, f"{name}.")
        if inspect.isclass(value) or not callable(value):
            return value

        def function(*args: Any, **kwargs: Any) -> Any:
            self.calls.setdefault(self.prefix + name, (args, kwargs))
            return value(*args, **kwargs)

        return function


def recorded() -> dict[str, tuple]:
    """A call of each function in the table of rows."""
    recorder = Recorder()
    for function, arguments in numpy_rows.ROWS.values():
        # Functions that NumPy does not have, or has under another name, are not recorded.
        with contextlib.suppress(AttributeError, TypeError), np.errstate(all="ignore"):
            function(recorder, *arguments)
    return recorder.calls


def spoiled(name: str, value: Any) -> list[Any]:
    """Values passed by mistake: another kind of object, an invalid number or name."""
    if name == "axis":
        return ["text", 77, 1.5]
    if isinstance(value, str):
        return ["nonsense", 3]
    if isinstance(value, bool):
        return []
    if isinstance(value, int | np.integer):
        return ["text", 1.5]
    if value is None:
        return ["text"]
    return [object(), "text"]


def mistakes(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    parameters = inspect.signature(f).parameters
    names = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for place, value in enumerate(args):
        for wrong in spoiled(names[place] if place < len(names) else "", value):
            yield (*args[:place], wrong, *args[place + 1 :]), kwargs
    for name, p in parameters.items():
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and name not in names[: len(args)]:
            for wrong in spoiled(name, kwargs.get(name, p.default)):
                yield args, {**kwargs, name: wrong}


def error_of(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception | None:
    try:
        f(*args, **kwargs)
    except (TypeError, ValueError, IndexError) as error:
        return error
    return None


def is_meant(error: Exception) -> bool:
    """Whether a ``raise`` statement of the library raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0)
    return frame.filename.startswith(PACKAGE) and line.lstrip().startswith("raise")


S = np.array([[2.0, 1.0], [1.0, 3.0]])
#: Functions that NumPy does not have, or that the table of rows tests elsewhere.
OTHERS: dict[str, tuple] = {
    **{name: ((3,), {}) for name in ("bartlett", "blackman", "hamming", "hanning")},
    **{name: ((V,), {}) for name in ("at", "cummax", "cummin", "rsqrt", "softmax", "log_softmax", "logsumexp")},
    **{
        f"linalg.{name}": ((S,), {})
        for name in ("cholesky", "qr", "svd", "eigh", "eig", "lu", "inv", "pinv", "det", "slogdet", "norm",
                     "matrix_norm", "vector_norm", "matrix_rank", "cond", "expm", "diagonal", "trace")
    },
    "linalg.solve": ((S, S), {}),
    "linalg.lstsq": ((S, S), {}),
    "linalg.matrix_power": ((S, 2), {}),
    "linalg.multi_dot": (([S, S],), {}),
    "linalg.tensorinv": ((np.eye(4).reshape(2, 2, 2, 2),), {}),
    "linalg.tensorsolve": ((np.eye(4).reshape(2, 2, 2, 2), S), {}),
    "top_k": ((V, 2), {}),
    "dynamic_slice": ((M, [0, 1], [1, 2]), {}),
    "dynamic_update_slice": ((M, np.ones((1, 1)), [0, 1]), {}),
    "isdtype": (("int8", "integral"), {}),
    "promote_types": (("int8", "int16"), {}),
    "result_type": ((V, "int8"), {}),
}  # fmt: skip
CALLS = recorded() | OTHERS


def test_the_rows_are_recorded() -> None:
    assert len(CALLS) > 200


#: Functions that call their function arguments, here NumPy's own.
CALLERS = {"mask_indices"}


@pytest.mark.parametrize("name", sorted(set(CALLS) - CALLERS))
def test_wrong_arguments_are_refused_by_name(name: str) -> None:
    f = operator.attrgetter(name)(fnp)
    if not inspect.isfunction(f):
        pytest.skip("a class")
    for args, kwargs in mistakes(f, *CALLS[name]):
        error = error_of(f, *args, **kwargs)
        assert error is None or is_meant(error), (args, kwargs, repr(error))
