"""Operations run one after the other: in Python and by the C twin alike."""

from __future__ import annotations

import weakref
from typing import Any

import jax
import numpy as np
import pytest

from funcgrad import numpy as fnp
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage
from funcgrad.runtime import numpy_backend, sequence
from funcgrad.runtime.numpy_backend import scipy_functions, threads
from funcgrad.runtime.programs import Executable

X = ArrayType((3,), np.dtype("float32"))
N = ArrayType((), np.dtype("int64"))


@pytest.fixture(params=["C", "Python"])
def _each(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.setattr(sequence, "_native", None)
    elif sequence._native is None:
        pytest.skip("the C twin is not compiled here")


def small(f: Any, *types: ArrayType, numbers: int = 0) -> Executable:
    """An executable that has run by NumPy, and has its steps."""
    code = Executable(stage(f, types), numbers)
    with numpy_backend.quiet():
        code.now([np.ones(t.shape, t.dtype) for t in types[: len(types) - numbers]], [1.0] * numbers)
    assert code.steps is not None
    return code


def run(codes: list[Executable], wires: list[int], inputs: Any, numbers: Any, outputs: list[int]) -> list[Any]:
    with numpy_backend.quiet():
        return sequence.run(codes, wires, inputs, numbers, outputs, lambda code, xs, ns: code.now(xs, ns))


@pytest.mark.usefixtures("_each")
def test_results_are_wired_and_inputs_may_be_buffers() -> None:
    both = small(lambda x, y: [x + y, x * y], X, X)
    scaled = small(lambda x, n: [x * n], X, ArrayType((), np.dtype("float32")), numbers=1)
    x = np.arange(3, dtype=np.float32)
    found = run([both, scaled, both], [~0, ~1, 1, 2, 0], [x, jax.numpy.ones(3)], [4.0], [2, 4, 0])
    np.testing.assert_array_equal(found, [4 * x, 4 * x * (x + 1), x + 1])
    assert all(a.dtype == np.float32 for a in found)


@pytest.mark.usefixtures("_each")
def test_a_number_that_is_a_result_is_an_array() -> None:
    given = small(lambda x, n: [n, x + n], X, ArrayType((), np.dtype("float32")), numbers=1)
    number, _ = run([given], [~0], [np.ones(3, np.float32)], [2.0], [0, 1])
    assert type(number) is np.ndarray
    assert (number.shape, number.dtype, number) == ((), np.float32, 2)


@pytest.mark.usefixtures("_each")
def test_steps_that_numpy_cannot_run_are_compiled() -> None:
    divided = small(lambda x, y: [fnp.floor_divide(x, y)], N, N)
    asked = []

    def now(code: Executable, xs: Any, ns: Any) -> Any:
        asked.append(code)
        return code.now(xs, ns)

    with numpy_backend.quiet():
        (found,) = sequence.run([divided], [~0, ~1], [np.int64(7), np.int64(0)], [], [0], now)
    assert asked == [divided] and isinstance(found, jax.Array)


@pytest.mark.usefixtures("_each")
def test_results_are_released_after_their_last_use() -> None:
    made: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []

    def now(*_: Any) -> list[np.ndarray]:
        alive.append(sum(ref() is not None for ref in made))
        found = np.zeros(3, np.float32)
        made.append(weakref.ref(found))
        return [found]

    code = Executable(stage(lambda x: [x + x], [X]))
    sequence.run([code] * 5, [~0, 0, 1, 1, 3], [np.ones(3, np.float32)], [], [4], now)
    assert alive == [0, 1, 1, 1, 1]


@pytest.mark.usefixtures("_each")
def test_an_error_of_an_operation_is_raised() -> None:
    code = Executable(stage(lambda x: [x + x], [X]))

    def now(*_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sequence.run([code], [~0], [np.ones(3, np.float32)], [], [0], now)


def steps_of(f: Any, *types: ArrayType) -> list[Any]:
    program: Program = stage(f, types)
    return numpy_backend.steps(program).calls


def test_reshapes_that_undo_each_other_and_casts_to_the_same_dtype_are_no_steps() -> None:
    assert steps_of(lambda x: [fnp.reshape(fnp.reshape(x, (1, 3)), (3,)).astype(np.float32) + 1], X)[0][1][0] == 0
    assert len(steps_of(lambda x: [fnp.reshape(fnp.reshape(x, (1, 3)), (3, 1))], X)) == 1
    (found,) = numpy_backend.evaluate(
        stage(lambda x: [fnp.reshape(fnp.reshape(x, (1, 3)), (3, 1))], [X]), [np.arange(3, dtype=np.float32)]
    )
    np.testing.assert_array_equal(found, [[0], [1], [2]])


M = ArrayType((3, 4), np.dtype("float32"))


def test_elementwise_functions_broadcast_their_operands_themselves() -> None:
    calls = steps_of(lambda x, y: [fnp.broadcast_to(x[:, None], (3, 4)) + y], X, M)
    assert [call for call, *_ in calls if isinstance(call, np.ufunc)] == [np.add] and len(calls) == 2
    all_broadcast = stage(lambda x: [fnp.broadcast_to(x, (2, 3)) * fnp.broadcast_to(2 * x, (2, 3))], [X])
    product = stage(lambda x, y: [y @ fnp.broadcast_to(x, (4, 3))], [X, M])
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(numpy_backend.evaluate(all_broadcast, [x])[0], [2 * x * x] * 2)
    np.testing.assert_array_equal(numpy_backend.evaluate(product, [x, np.ones((3, 4), np.float32)])[0], [4 * x] * 3)


def test_a_selection_that_another_one_decides_is_no_step() -> None:
    def relu(x: Any) -> list[Any]:
        return [fnp.where(x <= 0, fnp.where(x < 0, 0 * x, x), x)]

    def other(x: Any) -> list[Any]:
        return [fnp.where(x <= 0, fnp.where(x < 1, 0 * x, x), x)]

    selections = [sum(call is np.where for call, *_ in steps_of(f, X)) for f in (relu, other)]
    assert selections == [1, 2]
    x = np.array([-1.0, -0.0, np.nan], np.float32)
    (found,) = numpy_backend.evaluate(stage(relu, [X]), [x])
    np.testing.assert_array_equal(found.view(np.int32), np.array([-0.0, -0.0, np.nan], np.float32).view(np.int32))


@pytest.mark.usefixtures("_each")
def test_results_are_read_only_and_share_no_memory_with_inputs() -> None:
    same = small(lambda x: [fnp.reshape(x, (3, 1)), x + 1], X)
    x = np.arange(3, dtype=np.float32)
    view, made = run([same], [~0], [x], [], [0, 1])
    assert not view.flags.writeable and not made.flags.writeable and not np.shares_memory(view, x)
    large = small(lambda x: [x + 1], ArrayType((20_000,), np.dtype("float32")))
    (buffer,) = run([large], [~0], [np.zeros(20_000, np.float32)], [], [0])
    assert isinstance(buffer, jax.Array)


def test_scipys_functions_are_those_of_its_packages() -> None:
    found = scipy_functions.special("erf"), scipy_functions.lapack("potrf", np.dtype("float32"))
    import scipy.linalg
    import scipy.special

    assert found[0] is scipy.special.erf
    assert found[1] is scipy.linalg.get_lapack_funcs(("potrf",), dtype=np.float32)[0]


def test_libraries_that_are_loaded_later_use_one_thread_too() -> None:
    with threads.quiet():
        scipy_functions.blas("trsm", np.dtype("float32"))
        threads.loaded()
        counts = [get() for get, _ in threads._libraries()]
    assert len(counts) >= 2 and set(counts) == {1}
