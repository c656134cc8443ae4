"""The runtime below both APIs: windows, deferred transforms, and the cache on disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.core.caching import limited
from funcgrad.core.ir import ArrayType
from funcgrad.interpreters.staging import stage
from funcgrad.runtime import Deferred, background, constants, deferred, programs, report, windows
from funcgrad.runtime.constants import filled
from tests.funcgrad.tolerances import FEW32, MANY32

pytestmark = pytest.mark.deferral


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    runtime.flush_all()
    runtime.wait()
    gc.collect()
    windows.clear()
    programs.WINDOWS.turn()  # no generation ends within a test: entries of the last one would be missing
    report.reset()
    yield
    runtime.flush_all()
    runtime.wait()


def executable(f: Any, operands: int = 1, numbers: int = 0) -> Any:
    types = [ArrayType((4,), np.dtype(np.float32))] * operands + [ArrayType((), np.dtype(np.float32))] * numbers
    return runtime.executable(stage(lambda *xs: [f(*xs)], types), numbers)


def warmed(code: Any) -> Any:
    """The executable, which has run."""
    code.now([START] * code.buffers, [0.0] * len(code.numbers))
    return code


START = runtime.from_numpy(np.arange(4, dtype=np.float32))


@pytest.mark.parametrize("size", [1 << 10, 1 << 18])
def test_buffers_keep_the_contents_of_the_array_at_creation(size: int) -> None:
    busy = jax.jit(lambda x: x @ x)
    work = jax.numpy.ones((600, 600))
    for _ in range(20):
        for _ in range(4):  # JAX is busy first
            busy(work)
        array = np.ones(size, np.float32)
        buffer = runtime.from_numpy(array)
        array[:] = 2
        assert runtime.to_numpy(buffer).max() == 1


# ---------------------------------------------------------------- tiers


def test_a_window_of_warm_operations_runs_one_by_one_first_and_is_compiled_later() -> None:
    sin, plus = warmed(executable(fnp.sin)), warmed(executable(fnp.add, 1, 1))
    wanted = np.sin(np.arange(4, dtype=np.float32)) + 0.5

    def run() -> None:
        result = runtime.record(plus, [runtime.record(sin, [START])], [0.5])
        np.testing.assert_allclose(runtime.ready(result), wanted, rtol=FEW32)

    run()
    assert (report.stats.one_by_one, report.stats.compiles, report.stats.hits) == (1, 0, 0)
    run()
    runtime.wait()
    assert (report.stats.one_by_one, report.stats.compiles, report.stats.hits) == (2, 1, 0)
    run()
    assert (report.stats.one_by_one, report.stats.compiles, report.stats.hits) == (2, 1, 1)


def test_waiting_for_compiling_disables_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "patience", 1e9)
    sin, plus = warmed(executable(fnp.sin)), warmed(executable(fnp.add, 1, 1))
    for _ in range(3):
        runtime.ready(runtime.record(plus, [runtime.record(sin, [START])], [0.5]))
        runtime.insist()
        runtime.wait()
    assert (report.stats.one_by_one, report.stats.compiles, report.stats.hits) == (2, 1, 1)


def test_an_operation_is_compiled_once_for_arrays_and_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.Executable, "light", lambda self: False)
    add, x = executable(fnp.add, 2), np.arange(4, dtype=np.float32)
    add.now([START, START], [])
    other = executable(fnp.negative)
    other.run(START)  # JAX's trace of the first is released
    compiled: list[str] = []

    def listen(event: str, *_: Any, **__: Any) -> None:
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for operands in ([START, x], [x, START], [x, x]):
            np.testing.assert_array_equal(np.asarray(add.now(operands, [])[0]), x + x)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled == []


def test_new_shapes_are_put_on_the_device_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax.numpy, "array", None)
    array = np.arange(17.0)
    buffer = constants.copied(array)
    array[0] = 5.0
    np.testing.assert_array_equal(buffer, np.arange(17.0))


def test_results_of_the_numpy_backend_are_moved_to_the_device_once_when_needed() -> None:
    double = executable(lambda x: fnp.multiply(x, np.float32(2)))
    result = runtime.record(double, [np.arange(3, dtype=np.float32)])
    seen = runtime.to_numpy(result)
    assert seen.tolist() == [0, 2, 4] and not seen.flags.writeable
    assert isinstance(result.value, np.ndarray) and runtime.to_numpy(result) is result.value
    buffer = runtime.ready(result)
    assert isinstance(buffer, jax.Array) and runtime.ready(result) is buffer
    # XLA may overwrite a buffer without other references, but not one that NumPy shares.
    assert not np.shares_memory(np.asarray(buffer), seen)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bool", "int8", "uint64", "complex128", "bfloat16", "float8_e4m3fn"]
)
def test_buffers_of_numpy_arrays_equal_jaxs(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.arange(24).reshape(4, 6).astype(jax.numpy.dtype(dtype))
    for array in (
        whole,
        whole.T,
        whole[::2, ::3],
        whole[::-1],
        whole[:, :0],
        whole[1, 2],
        np.broadcast_to(whole[0], (2, 6)),
    ):
        made, wanted = constants.copied(np.asarray(array)), jax.device_put(np.array(array))
        assert (made.aval, made.committed, made.sharding) == (wanted.aval, wanted.committed, wanted.sharding)
        assert np.asarray(made).tobytes() == np.asarray(wanted).tobytes()
    made, before = constants.copied(whole), whole.copy()
    whole[...] = 0
    assert np.asarray(made).tobytes() == before.tobytes()
    monkeypatch.setattr(constants, "_put", None)  # a version of JAX without it
    assert np.asarray(constants.copied(before)).tobytes() == before.tobytes()


def test_small_arrays_of_python_stay_numpys_until_a_program_takes_them() -> None:
    double = executable(lambda x: fnp.multiply(x, np.float32(2)))

    def quadrupled(x: Any) -> Any:
        result = runtime.to_numpy(runtime.record(double, [runtime.record(double, [x])])).tolist()
        runtime.wait()
        return result

    for _ in range(2):
        quadrupled(START)
    array = np.arange(4, dtype=np.float32)
    mine = runtime.on_host(array)
    array += 1
    assert isinstance(mine.value, np.ndarray)
    assert quadrupled(mine) == [0, 4, 8, 12]
    assert isinstance(mine.value, jax.Array) and report.stats.hits == 1
    assert isinstance(runtime.on_host(np.zeros(programs.SMALL + 1, np.int8)), jax.Array)


def test_a_window_after_a_single_operation_with_a_program_of_its_own_is_kept_with_the_others() -> None:
    sin, plus = warmed(executable(fnp.sin)), warmed(executable(fnp.add, 1, 1))
    start = runtime.record(sin, [START])
    start.type = ArrayType((4,), np.dtype(np.float32))
    runtime.flush()
    last, _ = fg.scan(lambda total, x: (total + x, x), np.float32(0), start)  # its program lives as long as it does
    np.testing.assert_allclose(last, np.sin(np.arange(4)).sum(), rtol=FEW32)
    runtime.ready(runtime.record(plus, [runtime.record(sin, [START])], [0.5]))
    assert [window.codes for window in windows._windows.values()] == [[sin, plus]]


def test_a_new_window_of_cold_operations_is_compiled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "by_numpy", False)
    codes = [executable(lambda x, k=k: fnp.multiply(x, np.float32(k))) for k in (3, 5, 7)]
    result: Any = START
    for code in codes:
        result = runtime.record(code, [result])
    assert runtime.ready(result).tolist() == [0, 105, 210, 315]
    assert (report.stats.compiles, report.stats.one_by_one) == (1, 0)
    assert not any(code.warm for code in codes)


def test_the_rule_compares_cold_operations_with_the_whole_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "by_numpy", False)
    warm = [warmed(executable(lambda x, k=k: fnp.add(x, np.float32(k)))) for k in range(3)]
    (cold,) = [executable(lambda x: fnp.multiply(x, np.float32(9)))]

    def new(codes: list[Any]) -> bool:
        result: Any = START
        for code in codes:
            result = runtime.record(code, [result])
        ops = deferred.local.ops[:]
        runtime.flush()
        recording = windows.Recording([(c, [START], (), (Deferred(),)) for c, *_ in ops])
        del result
        return windows.Window(recording, (True,) * len(ops)).worth_compiling()

    assert not new(warm)
    assert not new([*warm, cold])  # operation by operation one of them is compiled, as a whole all of them
    cold_ones = [executable(lambda x, k=k: fnp.subtract(x, np.float32(k))) for k in range(8)]
    assert new([*warm, *cold_ones]) and new(cold_ones[:2])


def test_windows_used_last_are_kept() -> None:
    sin, cos = warmed(executable(fnp.sin)), warmed(executable(fnp.cos))

    def run(*codes: Any) -> None:
        result: Any = START
        for code in codes:
            result = runtime.record(code, [result])
        runtime.ready(result)

    with limited(4, "windows"):
        for length in range(2, 9):
            run(sin, sin)
            run(*[cos] * length)
        kept = [*windows._windows, *windows._windows._old]
        assert len(kept) <= 4
        assert (sin, sin) in [key[0] for key in kept]  # used each time
        assert report.stats.windows == 14
        known = windows._windows | windows._windows._old
        assert [w.seen for key, w in known.items() if key[0] == (sin, sin)] == [7]
    windows.clear()
    assert not windows._windows
    run(sin, sin)
    assert len(windows._windows) == 1


def test_a_compiled_window_costs_more_if_python_waits_for_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WAKE_COST", 0.125)  # it is 0 on one core
    sin, cos = executable(fnp.sin), executable(fnp.cos)
    windows.clear()
    first: Any = runtime.record(cos, [runtime.record(sin, [START])])
    runtime.flush()
    runtime.to_numpy(runtime.record(sin, [runtime.record(cos, [START])]))
    third: Any = runtime.record(cos, [runtime.record(cos, [START])])
    runtime.flush_all()
    of = {key[0]: window for key, window in windows._windows.items()}
    assert [of[codes].awaited for codes in ((sin, cos), (cos, sin), (cos, cos))] == [False, True, False]
    assert of[cos, sin].takes_whole() == pytest.approx(of[sin, cos].takes_whole() + 0.125)
    assert runtime.ready(first) is not None and runtime.ready(third) is not None


def test_of_many_waiting_windows_the_latest_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.wait()
    going, compile_ = threading.Event(), windows.Window.compile
    monkeypatch.setattr(windows.Window, "compile", lambda self, free: (going.wait(60), compile_(self, free))[1])
    sin = executable(fnp.sin)
    lengths = range(2, 2 + 2 * background.MOST_WAITING)

    def run(length: int) -> None:
        result: Any = START
        for _ in range(length):
            result = runtime.record(sin, [result])
        runtime.ready(result)

    for length in lengths:
        run(length)
        run(length)
    assert len(background._waiting) == background.MOST_WAITING
    going.set()
    runtime.wait()
    compiled = {len(w.codes) for w in windows._windows.values() if w.made is not None}
    assert set(lengths[-background.MOST_WAITING :]) <= compiled and len(compiled) <= background.MOST_WAITING + 1
    run(4)  # a dropped compilation is done at the run that needs it
    assert 4 in {len(w.codes) for w in windows._windows.values() if w.run is not None}


def test_two_results_of_one_value_are_computed_once() -> None:
    sin = executable(fnp.sin)
    for _ in range(3):
        a, b = runtime.record(sin, [START]), runtime.record(sin, [START])
        assert runtime.ready(a).tolist() == runtime.ready(b).tolist()
        runtime.wait()
    (window,) = windows._windows.values()
    assert window.run is not None and window.spread is not None and len(window.outputs) == 2
    assert runtime.ready(a) is runtime.ready(b)


def test_constants_distinguish_signed_zeros() -> None:
    kind = np.dtype(np.float32)
    assert filled((2,), 0.0, kind) is filled((2,), 0.0, kind)
    assert np.signbit(filled((2,), -0.0, kind)).all() and not np.signbit(filled((2,), 0.0, kind)).any()
    assert filled((), True, np.dtype(np.bool_)).dtype == bool and filled((), 1, np.dtype(np.int64)).dtype == np.int64
    assert np.isnan(filled((2,), float("nan"), kind)).all()
    assert filled((), 2**62 + 1, np.dtype(np.int64)).item() == 2**62 + 1


# ---------------------------------------------------------------- transforms


def network(w: Any, x: Any) -> Any:
    for _ in range(3):
        x = fnp.tanh(x @ w)
    return fnp.sum(x * x)


def test_gradients_equal_those_of_jit() -> None:
    w, x = fnp.linspace(-1, 1, 9).reshape(3, 3), fnp.linspace(0, 1, 6).reshape(2, 3)
    plain, compiled = fg.value_and_grad(network), fg.jit(fg.value_and_grad(network))
    for _ in range(3):
        for found, wanted in zip(plain(w, x), compiled(w, x)):
            np.testing.assert_allclose(found, wanted, rtol=MANY32)
        runtime.wait()
    assert report.stats.hits >= 1


def test_operations_in_a_transform_are_deferred() -> None:
    counts = []

    def f(v: Any) -> Any:
        y = fnp.sin(v) * 2
        counts.append(len(deferred.local.ops))
        return fnp.sum(y)

    fg.grad(f)(fnp.ones(3))
    assert counts[0] >= 2


def branching(v: Any) -> Any:
    s = fnp.sum(v * v)
    while s > 1:
        s, v = s / 2, v / 2
    return fnp.sum(v * s) if s > 0.6 else fnp.sum(v)


@pytest.mark.parametrize("scale", [0.3, 0.9, 3.0])
def test_if_and_while_work_on_values(scale: float) -> None:
    v = fnp.linspace(0.1, 1, 4) * np.float32(scale)
    found = fg.grad(branching)(v)
    for i in range(4):
        step = np.zeros(4, np.float32)
        step[i] = 1e-2
        slope = (branching(v + step) - branching(v - step)) / 2e-2
        # float32, and so a wide step: both it and rounding leave an error of a hundredth.
        np.testing.assert_allclose(found[i], slope, rtol=2e-2, atol=1e-3)


def arrays_in(tree: Any) -> list[Any]:
    return jax.tree.leaves(tree)


@pytest.mark.parametrize("mapped", [False, True])
def test_results_of_a_transform_are_computed(mapped: bool) -> None:
    def f(v: Any) -> Any:
        y = fnp.sin(v)
        aux = {"list": [y, (y + 1, {"deep": fnp.sum(y)})], "none": None, "number": 3.5, "constant": fnp.cos(2.0)}
        return fnp.sum(y), aux

    v = fnp.linspace(0, 1, 3)
    results: list[Any] = [
        fg.grad(f, has_aux=True)(v),
        fg.value_and_grad(f, has_aux=True)(v),
        fg.jvp(f, (v,), (v,), has_aux=True),
        fg.vjp(f, v, has_aux=True)[::2],
        fg.vjp(f, v, has_aux=True)[1](1.0),
        fg.grad(fg.grad(lambda t: f(fnp.sin(t) * v)[0]))(0.5),
    ]
    if mapped:
        results = [fg.vmap(fg.grad(f, has_aux=True))(fnp.stack([v, v * 2])), fg.hessian(lambda t: f(t)[0])(v)]
    for result in results:
        leaves = arrays_in(result)
        assert leaves and all(isinstance(leaf, jax.Array | np.ndarray | float) for leaf in leaves), leaves


def test_values_stored_inside_are_read_later() -> None:
    kept: list[Any] = []
    c = fnp.linspace(0, 1, 3)

    def f(v: Any, fail: bool) -> Any:
        kept.append(fnp.multiply(c, 3))
        if fail:
            raise ValueError("on purpose")
        return fnp.sum(v * kept[-1])

    fg.grad(f)(fnp.ones(3), False)
    with pytest.raises(ValueError, match="on purpose"):
        fg.grad(f)(fnp.ones(3), True)
    for stored in kept:
        np.testing.assert_allclose(np.asarray(stored), [0, 1.5, 3])
        np.testing.assert_allclose(np.asarray(fnp.add(stored, 1)), [1, 2.5, 4])
        assert float(stored[2]) == 3 and stored.tolist() == [0, 1.5, 3]


def test_numpy_arrays_may_be_changed_before_the_flush() -> None:
    a = np.ones(3, np.float32)

    def f(v: Any) -> Any:
        y = fnp.multiply(v, a)
        z = fnp.multiply(fnp.ones(3), a)
        a[:] = 100
        return fnp.sum(y * z)

    value, gradient = fg.value_and_grad(f)(fnp.ones(3))
    assert value == 3 and gradient.tolist() == [1, 1, 1]


def test_a_numpy_function_sees_a_deferred_values_array() -> None:
    def f(v: Any) -> Any:
        inner = fnp.sin(fnp.full((3,), 2.0))
        assert np.asarray(inner).shape == (3,)
        return fnp.sum(v) * float(np.sum(np.asarray(inner)))

    assert np.isclose(fg.grad(f)(fnp.ones(3))[0], 3 * np.sin(2.0), rtol=MANY32)


# ---------------------------------------------------------------- the cache on disk

SCRIPT = """
import jax
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
import funcgrad as fg, funcgrad.numpy as fnp, numpy as np
from funcgrad.runtime import cache
@fg.jit
def f(x):
    for k in range({size}):
        x = fnp.sin(x @ x) + fnp.sum(x, axis=0) * k
    return x
f(fnp.ones((4, 4))).block_until_ready()
print(len(hits), jax.config.jax_compilation_cache_dir)
"""


def other_process(**environment: str) -> list[str]:
    clean = {k: v for k, v in os.environ.items() if "CACHE" not in k}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{size}", "30")],
        env={**clean, "JAX_PLATFORMS": "cpu", **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_second_process_reuses_compiled_programs(tmp_path: Path) -> None:
    first = other_process(FUNCGRAD_CACHE_DIR=str(tmp_path / "kept"))
    files = set((tmp_path / "kept").iterdir())
    second = other_process(FUNCGRAD_CACHE_DIR=str(tmp_path / "kept"))
    assert first == ["0", str(tmp_path / "kept")] and files
    assert int(second[0]) >= 1
    files = {f for f in (tmp_path / "kept").iterdir() if f.is_file()}  # the second may have kept more
    for file in files:  # a full disk, a bad one, a write that was cut off
        file.write_bytes(file.read_bytes()[:-9])
    assert other_process(FUNCGRAD_CACHE_DIR=str(tmp_path / "kept"))[0] == "0"
    # Programs that compile in less than WORTH_KEEPING are not kept: how many depends on the load of the machine.
    assert int(other_process(FUNCGRAD_CACHE_DIR=str(tmp_path / "kept"))[0]) >= 1


def test_nothing_is_kept_if_the_folder_is_empty(tmp_path: Path) -> None:
    assert other_process(FUNCGRAD_CACHE_DIR="", HOME=str(tmp_path))[1] == "None"
    assert not list(tmp_path.rglob("*xla*"))


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"FUNCGRAD_CACHE_DIR": "/somewhere"}, Path("/somewhere")),
        ({"FUNCGRAD_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/caches"}, Path("/caches/funcgrad/xla")),
        ({"HOME": "/home/somebody"}, Path("/home/somebody/.cache/funcgrad/xla")),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere caches have other folders")
def test_the_folder(environment: dict[str, str], wanted: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FUNCGRAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert runtime.cache.folder() == wanted


def test_a_configured_jax_cache_folder_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", "/somewhere/else")
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", "/the/users")
    try:
        runtime.cache.set_up()
        assert jax.config.jax_compilation_cache_dir == "/the/users"
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
