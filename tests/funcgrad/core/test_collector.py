"""What Python's garbage collector visits."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.collector import uncollected
from funcgrad.core.ir import Program

FIRST_USES = """
import gc
import compat as torch
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 3)).sum().backward()
optimizer.step()
gc.collect()
visited = gc.get_objects()
print(len(visited), len(gc.get_referents(*visited)))
"""
AFTER_A_FAILED_IMPORT = """
import gc
from funcgrad.core.collector import import_lasting
try:
    import_lasting("funcgrad.no_such_module")
except ModuleNotFoundError as error:
    print(error.name, gc.isenabled())
"""


def run(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_modules_imported_at_their_first_use_are_not_visited() -> None:
    # 38,000 objects come from these modules, and lists of them that live as long.
    objects, references = map(int, run(FIRST_USES).split())
    assert objects < 15_000 and references < 30_000


def test_a_module_that_is_missing_leaves_the_collector_enabled() -> None:
    assert run(AFTER_A_FAILED_IMPORT) == "funcgrad.no_such_module True"


def test_the_equations_of_a_program_are_not_visited() -> None:
    program = fg.trace(lambda x: fnp.sum(fnp.sin(x) * 2.0, axis=0), fnp.ones((2, 3)))
    program.untrack()
    for equation in program.equations:
        assert not any(map(gc.is_tracked, (equation, *equation.inputs, *equation.outputs, equation.params)))
    assert gc.is_tracked(program)
    assert str(program.check()) == str(program)


def test_programs_in_a_reference_cycle_are_collected() -> None:
    outer = fg.trace(lambda x: fg.fori_loop(0, 3, lambda i, y: fnp.sin(y), x), 1.0)
    (inner,) = [p for e in outer.equations for p in e.programs()][:1]
    inner.cache["used by"] = outer
    outer.untrack()
    inner.untrack()
    dead: weakref.ref[Program] = weakref.ref(inner)
    del outer, inner
    gc.collect()
    assert dead() is None


def test_new_objects_start_no_collection_inside_the_context() -> None:
    started: list[str] = []

    def noted(phase: str, info: dict[str, int]) -> None:
        started.append(phase)

    gc.collect()
    gc.callbacks.append(noted)
    try:
        with uncollected():
            kept = [[] for _ in range(100_000)]
            inside = list(started)
        kept += [[] for _ in range(100_000)]
    finally:
        gc.callbacks.remove(noted)
    assert not inside and started and gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
