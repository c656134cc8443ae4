"""Random programs, run in real PyTorch and in compat, whose final states must be equal.

    PYTHONPATH=. python tests/parity/programs.py                         a few hundred programs
    PYTHONPATH=. python tests/parity/programs.py --programs 10000        many
    PYTHONPATH=. python tests/parity/programs.py --seed 7 --show         one after the other, as they are written

A program is a list of lines of Python: leaves, operations, views, in-place changes, detaching, hooks, backward, in any
order, with and without ``no_grad``. It is written line by line while PyTorch runs it, so that most lines are valid;
lines that raise are part of it, and the program continues. Compared are: the type of every error (with ``--texts`` the
message, too); the values that hooks received, in order; and, wherever the program is observed (at its end, and
sometimes before), for every tensor its values, sizes, strides, version, gradient, place in the graph and the graph
behind it, and which tensors share memory. A program that differs is shortened as long as it still differs, and printed.

Not compared is the memory layout of gradients: PyTorch's may be views of a single number. Nor are the graphs of
``create_graph``, which have one node for each backward here, and one for each step of it in PyTorch; nor gradients once
a backward raised an error; nor strides without effect: those of empty tensors, and of dimensions of size one. The lines
are in ``templates.py``, and those that are not written in ``author.py``; the custom functions that they call are in
``functions.py``.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import pickle
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.author import Author
from tests.parity.fitness import made_within, stray
from tests.parity.functions import functions
from tests.parity.layers import layers

Program = list[str]

#: Messages of internal errors of PyTorch: an assertion, or a check without a message.
FAULTS = ("INTERNAL ASSERT FAILED", "Could this error message be improved?")
#: Messages of compat for unsupported operations.
ABSENT = ("XLA has no complex numbers of half precision",)
#: Tolerance for numbers of less than double precision, relative to the largest beside them: a few roundings.
TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float16": 4e-3, "bfloat16": 3e-2}
#: Operations that make numbers of less than double precision.
COARSE = {"float32": r"\bfloat32", "float16": r"\bfloat16|half\(", "bfloat16": r"\bbfloat16"}
#: The records of a program: errors by line, values that hooks received, and observations.
Record = list[Any]

# ---------------------------------------------------------------- running


class Run:
    """A program's run in one library.

    Args:
        torch: PyTorch, or its replacement.
        texts: whether to record the messages of errors.
    """

    def __init__(self, torch: Any, texts: bool = False):
        self.torch = torch
        self.texts = texts
        self.record: Record = []
        #: Whether a backward raised an error: the gradients accumulated by then are not compared.
        self.torn = False
        #: Whether the library had an internal error, or does not support something: the rest of the run is not
        #: compared.
        self.broken = False
        #: Tensors computed from inference tensors: PyTorch counts how often its own code wrote into them.
        self.uncounted: set[str] = set()
        self.scope: dict[str, Any] = {
            "torch": torch,
            "copy": copy,
            "pickle": pickle,
            **functions(torch),
            **layers(torch),
        }
        self.scope |= {"look": self.look, "hook": self.hook, "note": self.note, "scale": self.scale}

    def line(self, source: str) -> bool:
        """Runs a line; returns whether it succeeded."""
        if "register_" in source and any(stray(self.scope[name]) for name in self.named(source)):
            return False  # a shortened program may do that
        given = self.tensors()
        vague = any(n in self.uncounted or made_within(given[n]) for n in self.named(source))
        through = self.runs(source, vague)
        self.uncounted |= {n for n in self.tensors() if n not in given} if vague else set()
        return through

    def runs(self, source: str, vague: bool) -> bool:
        """Runs a line, and records its error if it raises one; returns whether it raised none.

        Args:
            vague: whether an inference tensor is involved, for which PyTorch may raise before or after everything else.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(source, self.scope)
            except Exception as error:
                self.torn = self.torn or "backward(" in source
                self.broken = self.broken or any(fault in str(error) for fault in FAULTS + ABSENT)
                text = [plain_text(str(error))] * self.texts
                self.record += [] if self.broken else [("error", source, "" if vague else kind(error), *text)]
                return False
        return True

    def named(self, source: str) -> list[str]:
        """The tensors that a line uses."""
        return [name for name in self.tensors() if re.search(rf"\b{name}\b", source)]

    def tensors(self) -> dict[str, Any]:
        return {
            n: t for n, t in self.scope.items() if re.fullmatch(r"[a-z]\d+", n) and isinstance(t, self.torch.Tensor)
        }

    def hook(self, name: str, factor: float | None = None) -> Callable[[Any], Any]:
        """A hook that records the gradient it receives, and perhaps scales it."""

        def seen(grad: Any) -> Any:
            self.record.append(("hook", name, None if grad is None else values(grad)))
            return None if factor is None or grad is None else grad * factor

        return seen

    def scale(self, name: str, factor: float) -> Callable[..., Any]:
        """A hook of a node that records the gradients it receives, and scales them."""

        def seen(grads: Any, *_: Any) -> Any:
            self.record.append(("hook", name, [None if g is None else values(g) for g in grads]))
            return tuple(None if g is None else g * factor for g in grads)

        return seen

    def note(self, name: str) -> Callable[..., None]:
        """A hook that records only that it was called."""
        return lambda *_: self.record.append(("called", name))

    def look(self) -> None:
        """Records everything observable about all tensors."""
        tensors = self.tensors()
        self.record.append(("memory", sharing(tensors)))
        for name, t in tensors.items():
            self.record.append((name, "is", *state(t, name not in self.uncounted)))
            self.record.append((name, "holds", values(t)))
            grad = t.grad
            if not self.torn:
                self.record.append((name, "grad", None if grad is None else values(grad)))
            self.record.append((name, "graph", graph(t.grad_fn, tensors)))
            if name not in self.uncounted:
                self.record.append((name, "is a view of", called(t._base, tensors)))


def kind(error: Exception) -> str:
    """Python's own class that an error is an instance of."""
    return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")


def plain_text(message: str) -> str:
    """An error's text without addresses, and with one name for the library; if it contains a C++ trace or a tensor
    printed by C++, the text before that."""
    message = re.sub(r"\nException raised from .*|(?<=in the tensor list but got:).*", "", message, flags=re.DOTALL)
    return re.sub(r"0x[0-9a-f]+", "0x", message).replace("compat.", "torch.").strip()


def values(t: Any) -> Any:
    t = t.detach()
    return ("values", str(t.dtype).rpartition(".")[2], list(t.shape), t.reshape(-1).tolist())


def called(t: Any, tensors: dict[str, Any]) -> str | None:
    """The index of a tensor among the tensors."""
    return None if t is None else next((name for name, other in tensors.items() if other is t), "none of them")


def state(t: Any, counted: bool = True) -> tuple[Any, ...]:
    node = t.grad_fn
    strides = [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else None
    version = "inference" if t.is_inference() else t._version if counted else None
    return (
        list(t.shape), strides, t.storage_offset(), str(t.dtype).removeprefix("torch."),
        version, t.requires_grad, t.is_leaf, t.retains_grad, counted and t._is_view(), t.output_nr,
        None if node is None else node.name(),
    )  # fmt: skip


def sharing(tensors: dict[str, Any]) -> list[list[str]]:
    """Which tensors share memory, and which of them are views of one base."""
    found: dict[Any, list[str]] = {}
    for name, t in tensors.items():
        found.setdefault(t.untyped_storage().data_ptr() if t.numel() else name, []).append(name)
    return sorted(found.values())


def graph(root: Any, tensors: dict[str, Any], limit: int = 60) -> list[Any]:
    """The nodes behind a node, by name, edges and leaf; the same node has the same number."""
    numbers: dict[Any, int] = {}
    waiting, found = [root] if root is not None else [], []
    while waiting and len(found) < limit:
        node = waiting.pop(0)
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        edges = node.next_functions
        leaf = called(getattr(node, "variable", None), tensors)
        found.append((node.name(), leaf, [(None if n is None else n.name(), i) for n, i in edges]))
        waiting += [n for n, _ in edges if n is not None]
    return found


# ---------------------------------------------------------------- comparing


def same(a: Any, b: Any, least: float = 1e-6) -> bool:
    """Whether two records are equal, numbers up to rounding, with a tolerance of at least ``least``."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) == 4 and len(b) == 4 and a[0] == "values" == b[0]:
            return a[1:3] == b[1:3] and close(a[3], b[3], max(least, TOLERANCE.get(a[1], 0.0)))
        return len(a) == len(b) and all(same(x, y, least) for x, y in zip(a, b))
    return bool(a == b)


def coarseness(program: Program) -> float:
    """The tolerance for all numbers of a program: those computed from low-precision ones are no better than these."""
    text = "\n".join(program)
    return max([1e-6] + [TOLERANCE[name] for name, written in COARSE.items() if re.search(written, text)])


def close(a: list[float], b: list[float], tolerance: float) -> bool:
    finite = [abs(v) for v in a if np.isfinite(v)]
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * max([1.0, *finite]), equal_nan=True)


def difference(a: Record, b: Record, least: float) -> str | None:
    """The first record in which two runs differ; ``least`` as for ``same``."""
    for x, y in zip(a, b):
        if not same(x, y, least):
            return f"PyTorch: {x}\n compat: {y}"
    if len(a) != len(b):
        more, who = (a, "PyTorch") if len(a) > len(b) else (b, "compat")
        return f"only {who}: {more[min(len(a), len(b))]}"
    return None


def ran(program: Program, torch: Any, texts: bool) -> Run:
    """A run of a program."""
    run = Run(torch, texts)
    for line in program:
        run.line(line)
    return run


def compared(program: Program, first: Any, second: Any, texts: bool) -> str | None:
    """The difference between the runs of a program in two libraries."""
    runs = [ran(program, torch, texts) for torch in (first, second)]
    broken = any(run.broken for run in runs)
    return None if broken else difference(runs[0].record, runs[1].record, coarseness(program))


def shortened(program: Program, differs: Callable[[Program], bool]) -> Program:
    """A program with as few lines as possible that still differs."""
    size = len(program) // 2
    while size:
        start = 0
        while start < len(program):
            shorter = program[:start] + program[start + size :]
            if differs(shorter):
                program = shorter
            else:
                start += size
        size //= 2
    return program


# ---------------------------------------------------------------- many programs


def disagreements(
    first: Any, second: Any, seeds: range, length: int, texts: bool = False, show: bool = False
) -> Iterator[dict[str, Any]]:
    """The programs of these seeds that differ, shortened."""
    for seed in seeds:
        author = Author(random.Random(seed), Run(first, texts))
        program = author.program(length)
        if show:
            print(f"# seed {seed}", *program, sep="\n", flush=True)
        ours = ran(program, second, texts)
        # The author read the tensors while writing, which can give views new nodes; and a failed line leaves another
        # state than
        # the recorded program. So a separate run counts.
        again = ran(program, first, texts)
        found = [difference(r.record, ours.record, coarseness(program)) for r in (author.run, again)]
        if again.broken or ours.broken or None in found:
            continue
        # In a new process, to see whether the program differs, and not the memory of earlier ones.
        if compared(program, first, second, texts) is None:
            yield {"seed": seed, "program": program, "difference": f"only after the programs before it: {found[1]}"}
            continue
        program = shortened(program, lambda p: compared(p, first, second, texts) is not None)
        yield {"seed": seed, "program": program, "difference": compared(program, first, second, texts)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", default="compat", help="what is compared with PyTorch")
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--length", type=int, default=20, help="lines of a program")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--stop", type=int, default=10, help="stop after so many that differ")
    parser.add_argument("--texts", action="store_true", help="compare what errors say, too")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--json", type=Path, help="where to write what differs")
    arguments = parser.parse_args()
    theirs, ours = importlib.import_module("torch"), importlib.import_module(arguments.lib)
    seeds = range(arguments.seed, arguments.seed + arguments.programs)
    found = []
    for wrong in disagreements(theirs, ours, seeds, arguments.length, arguments.texts, arguments.show):
        found.append(wrong)
        print(f"\n# seed {wrong['seed']}", *wrong["program"], wrong["difference"], sep="\n", flush=True)
        if len(found) == arguments.stop:
            break
    if arguments.json:
        arguments.json.write_text(json.dumps(found))
    print(f"\n{len(seeds)} programs of {arguments.length} lines, {len(found) or 'none'} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
