"""Programs compiled in pieces, the estimate of compile times, and long tapes processed in pieces."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage
from funcgrad.runtime import pieces, staged_backward, windows
from funcgrad.runtime.estimate import KERNEL, compile_cost, equations_cost
from funcgrad.runtime.pieces import Pieces, Progress, cuts
from tests.funcgrad.tolerances import MANY32

FLOAT = np.dtype(np.float32)
VECTOR = ArrayType((8,), FLOAT)
START = np.linspace(0.5, 1.5, 8, dtype=np.float32)


def chain(length: int, held: bool) -> Program:
    """Multiplications one after the other, by elements of a vector."""

    def run(x: Any, numbers: Any) -> list[Any]:
        found = []
        for i in range(length):
            x = x * fnp.reshape(fg.lax.slice(numbers, (i,), (i + 1,)), ())
            found.append(x)
        return found if held else found[-1:]

    return stage(run, [VECTOR, ArrayType((length,), FLOAT)])


def test_the_compile_estimate_of_a_held_chain_is_quadratic() -> None:
    short, long = compile_cost(chain(100, True)), compile_cost(chain(400, True))
    assert long > 6 * short > 60 * compile_cost(chain(100, False))


def test_slow_primitives_count_as_many_equations() -> None:
    plain = stage(lambda x: [x + x], [VECTOR])
    assert equations_cost(plain) < 1
    assert equations_cost(stage(lambda x: [fnp.sort(x)], [VECTOR])) > 10
    looped = stage(lambda x: [fg.scan(lambda c, _: (c * 2 + c, None), x, None, length=3)[0]], [VECTOR])
    assert equations_cost(looped) > 20


@pytest.mark.parametrize("held", [True, False])
def test_a_chain_split_into_pieces_has_the_same_result(monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    length = 40
    program = pieces.sunk(chain(length, held), 1)
    assert cuts(program)[0] == [len(program)]
    monkeypatch.setattr(pieces, "REPEATED", 100)
    monkeypatch.setattr(pieces, "TIMES", 1)
    monkeypatch.setattr(pieces, "LARGEST", 6)
    ends, cost = cuts(program)
    assert len(ends) > 3 and ends == sorted(set(ends)) and (ends, cost) == cuts(program)
    run = Pieces(program, 1, [], ends)
    numbers = np.linspace(0.9, 1.1, length, dtype=np.float32)
    whole = runtime.executable(program).run(START, numbers)
    for found, wanted in zip(run(START, numbers), whole, strict=True):
        np.testing.assert_array_equal(found, wanted)
    # All but the first and the last few compute the same.
    assert len({id(piece.code) for piece in run.pieces}) <= 4 < len(ends)


def test_values_that_no_later_piece_needs_are_freed_or_donated() -> None:
    program = stage(lambda x: [fnp.sin((x + 1.0) * 2.0)], [VECTOR])
    run = Pieces(program, 0, [0], [1, 2, 3])
    progress = Progress(run, [runtime.from_numpy(START)])
    (found,) = progress.finish()
    np.testing.assert_allclose(found, np.sin((START + 1) * 2), rtol=MANY32)
    assert sum(value is not None for value in progress.values) == 1
    assert run.donated == (0,) and [piece.code.donate for piece in run.pieces] == [(0,)] * 3


def test_an_interrupted_run_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    program = stage(lambda x: [x * 3.0 + 1.0, x], [VECTOR])
    run = Pieces(program, 0, [], [1, 2])
    progress, code = Progress(run, [runtime.from_numpy(START)]), run.pieces[1].code
    whole = code.run

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    code._run[None] = interrupted
    with pytest.raises(KeyboardInterrupt):
        progress.finish()
    code._run[None] = whole
    found = progress.finish()
    np.testing.assert_allclose(found[0], START * 3 + 1, rtol=MANY32)
    np.testing.assert_array_equal(found[1], START)
    assert progress.finish()[0] is found[0]


def test_windows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "REPEATED", 100)
    monkeypatch.setattr(pieces, "TIMES", 1)
    double = runtime.executable(stage(lambda x, k: [x * k], [VECTOR, ArrayType((), FLOAT)]), 1)

    def run() -> list[Any]:
        x: Any = runtime.from_numpy(START)
        held = []
        for i in range(50):
            x = runtime.record(double, [x], [1.0 + i / 100])
            held.append(x)
        return [np.asarray(runtime.ready(h)) for h in held]

    runtime.clear()
    first = run()
    for _ in range(runtime.settings.warmup):
        runtime.insist()
        run()
        runtime.wait()
    (window,) = [w for w in windows._windows.values() if len(w.codes) == 50]
    assert isinstance(window.run, Pieces) and len(window.run.pieces) > 2
    for found, wanted in zip(run(), first, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=MANY32)


# ---------------------------------------------------------------- long tapes


def looped(steps: int) -> Any:
    def f(x: Any, w: Any) -> Any:
        y = x
        for i in range(steps):
            y = fnp.sin(y) * 1.2 + w if i % 3 else y * w + x
        return fnp.sum(y * x)

    return f


@pytest.mark.parametrize("longest", [7, 32])
def test_a_long_tape_gives_the_gradient_of_a_short_one(monkeypatch: pytest.MonkeyPatch, longest: int) -> None:
    x, w = fnp.linspace(0.1, 1, 4), fnp.ones(4) * 0.3
    wanted = fg.grad(looped(60), argnums=(0, 1))(x, w)
    monkeypatch.setattr(staged_backward, "LONGEST", longest)
    staged_backward._passes.clear()
    for found, want in zip(fg.grad(looped(60), argnums=(0, 1))(x, w), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=MANY32)
    assert len(staged_backward._passes) < 60 // 2


def test_memory_of_a_gradient_of_a_long_loop_is_bounded() -> None:
    if sys.platform != "linux":
        pytest.skip("memory is measured in kilobytes on Linux")
    source = (
        "import pathlib, re, funcgrad as fg, funcgrad.numpy as fnp\n"
        "def f(x):\n"
        "    y = x\n"
        "    for _ in range(20_000): y = fnp.sin(y) + x\n"
        "    return fnp.sum(y)\n"
        "fg.grad(f)(fnp.ones(4))\n"
        # Not the value of ``resource``, which includes the memory of the process that started this one.
        "print(re.search(r'VmHWM:\\s*(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=300)
    assert int(done.stdout) / 1024 < 700  # megabytes, of which 200 are used after the import


def test_equal_kernels_count_once() -> None:
    def layers(numbers: list[float]) -> Program:
        def run(x: Any, w: Any) -> list[Any]:
            for k in numbers:
                x = fnp.tanh(x @ w * np.float32(k))
            return [x]

        return stage(run, [ArrayType((8, 8), FLOAT), ArrayType((8, 8), FLOAT)])

    one, alike, different = (compile_cost(layers(ks)) for ks in ([2.0], [2.0] * 6, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
    assert different - one > 5 * KERNEL > KERNEL > alike - one > 0
