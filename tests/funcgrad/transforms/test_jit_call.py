"""The callable that ``jit`` returns: JAX's own function outside of transforms, funcgrad's inside."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.core.ir import Program
from funcgrad.core.tracing import Tracer
from funcgrad.runtime import executable
from funcgrad.transforms.jit import Jitted


@fg.jit
def scaled(x: Any, factor: Any = 2.0) -> Any:
    """x times a factor."""
    return x * factor


class Model:
    offset = 10.0

    @functools.partial(fg.jit, static_argnums=0)
    def shifted(self, x: Any) -> Any:
        return x + self.offset


def frames_of_python_in_a_call(function: Any, *arguments: Any) -> int:
    """How many Python functions a call enters."""
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return len(entered)


def test_a_cached_call_enters_no_python_function():
    x = jax.numpy.ones(3)
    scaled(x)
    assert frames_of_python_in_a_call(scaled, x) == 0
    assert frames_of_python_in_a_call(fg.grad(lambda x: fnp.sum(scaled(x))), x) > 0
    assert frames_of_python_in_a_call(scaled, x) == 0, "after a transform has run, again none"


def test_after_an_error_under_a_transform_calls_are_direct_again():
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    for transform in (fg.grad, fg.jit, fg.vmap, fg.trace):
        with pytest.raises(KeyError, match="mine"):
            transform(fails)(np.ones(2)) if transform is not fg.trace else fg.trace(fails, np.ones(2))
        assert isinstance(Jitted.__call__, property)
    assert float(scaled(1.5)) == 3.0


def test_under_a_transform_a_call_is_one_equation():
    program = fg.trace(lambda x: scaled(x) + scaled(x, 3.0), 1.0)
    assert [e.primitive.name for e in program.equations].count("call") == 2
    assert float(fg.grad(scaled)(3.0)) == 2.0
    np.testing.assert_array_equal(fg.vmap(scaled)(np.arange(3.0)), [0.0, 2.0, 4.0])


def test_a_transform_in_one_thread_does_not_touch_the_calls_of_another():
    inside, proceed = threading.Event(), threading.Event()
    found: list[Any] = []

    def waits(x: Any) -> Any:
        inside.set()
        assert proceed.wait(60)
        return scaled(x)

    def tracing() -> None:
        found.append(fg.grad(waits)(4.0))

    thread = threading.Thread(target=tracing)
    thread.start()
    assert inside.wait(60)
    result = scaled(5.0)
    proceed.set()
    thread.join(60)
    assert not isinstance(result, Tracer) and float(result) == 10.0
    assert float(found[0]) == 2.0
    assert isinstance(Jitted.__call__, property)


def test_many_threads_at_once():
    results: dict[int, float] = {}

    def work(i: int) -> None:
        f = fg.jit(lambda x: fg.grad(lambda v: scaled(v) * i)(x) + scaled(x))
        results[i] = sum(float(f(1.0)) + float(scaled(1.0)) for _ in range(5))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert results == {i: 5 * (2.0 * i + 4.0) for i in range(8)}
    assert isinstance(Jitted.__call__, property)


def test_a_jitted_function_has_the_metadata_of_the_function():
    assert scaled.__name__ == "scaled" and scaled.__doc__ == "x times a factor."
    assert scaled.__wrapped__(3.0, 2.0) == 6.0
    assert list(inspect.signature(scaled).parameters) == ["x", "factor"]
    assert callable(scaled) and repr(scaled).startswith("<jit of <function scaled at")
    assert float(scaled(1.0, factor=4.0)) == 4.0


def test_a_jitted_function_is_pickled_and_copied_by_name():
    assert pickle.loads(pickle.dumps(copied := copy.deepcopy(scaled))) is scaled and copied is scaled


def test_jit_of_a_method():
    model = Model()
    assert float(model.shifted(1.0)) == 11.0
    assert float(fg.grad(model.shifted)(1.0)) == 1.0
    assert float(Model.shifted(model, 2.0)) == 12.0


def test_jit_of_jit_is_jit():
    again = fg.jit(scaled)
    assert float(again(2.0)) == 4.0 and again.trace(2.0).check()


def test_errors_of_the_function_come_without_the_backends_notes():
    @fg.jit
    def fails(x: Any) -> Any:
        raise ValueError("from the function")

    for call in (fails, fg.grad(fails)):
        with pytest.raises(ValueError, match="from the function") as caught:
            call(1.0)
        assert not getattr(caught.value, "__notes__", [])
        caught.value.add_note("the user's own")
        assert caught.value.__notes__ == ["the user's own"]


def programs_alive() -> int:
    runtime.wait()  # a thread may be making some
    gc.collect()
    return sum(isinstance(o, Program) for o in gc.get_objects())


def fresh() -> Any:
    """A new function."""
    return fg.jit(lambda x: fnp.sin(x) * 2.0)


def total(f: Any) -> Any:
    return lambda x: fnp.sum(f(x))


USES = {
    "jit": lambda x: [fresh()(x)],
    "grad of jit": lambda x: [fg.grad(total(fresh()))(x)],
    "jit of grad of jit": lambda x: [fg.jit(fg.grad(total(fresh())))(x)],
    "vmap of jit": lambda x: [fg.vmap(fresh())(x)],
    "jvp of jit": lambda x: fg.jvp(fresh(), (x,), (x,)),
    "executable": lambda x: executable(fg.trace(fresh(), x))(x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_programs_go_when_their_functions_do(use):
    """Each use makes a new function, and with it programs, derived programs and executables."""
    x = np.ones(3, np.float32)
    use(x)
    before = programs_alive()
    for _ in range(5):
        use(x)
    assert programs_alive() <= before  # others may go meanwhile
