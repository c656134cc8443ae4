"""Random programs, run in real PyTorch and in compat: what they leave must be the same.

    PYTHONPATH=. python tests/parity/programs.py                         a few hundred programs
    PYTHONPATH=. python tests/parity/programs.py --programs 10000        many
    PYTHONPATH=. python tests/parity/programs.py --seed 7 --show         one after the other, as they are written

A program is a list of lines of Python: leaves, operations, views, in-place changes, detaching, hooks, backward, in any
order, with and without ``no_grad``. It is written line by line while PyTorch runs it, so that most lines make sense;
lines that raise are part of it, and the program goes on. Compared are: the type of every error (with ``--texts`` what
it says, too); what hooks saw, in order; and, wherever the program looks (at its end, and sometimes before), of every
tensor its values, sizes, strides, version, gradient, place in the graph and the graph behind it, and who shares memory.
A program that differs is made shorter as long as it does, and printed.

Not compared is how gradients lie in memory: PyTorch's may be views of a single number. Nor are the graphs that
``create_graph`` leaves, whose nodes are one for each backward here, and one for each step of it there; nor gradients
once a backward ended with an error; nor the strides of what is empty. Not written, as what PyTorch does then is known
to be different, or anybody's guess:

- ``set_`` and ``data = ``, ``inference_mode``, views made under ``no_grad``;
- ``detach_``, ``requires_grad_`` and its like on what has views, and in-place changes of views older than their base's
  history;
- sizes changed in place under ``no_grad``, or of what retains its gradient;
- filling what was expanded, reading and writing the same memory in different places;
- in-place operations on operands of another dtype.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Program = list[str]

#: What a program writes about itself: errors by line, what hooks saw, and what was to be seen when it looked.
Record = list[Any]

# ---------------------------------------------------------------- running


class Run:
    """A program's run in one library.

    Args:
        torch: PyTorch, or what stands for it.
        texts: whether to note what errors say.
    """

    def __init__(self, torch: Any, texts: bool = False):
        self.torch = torch
        self.texts = texts
        self.record: Record = []
        #: Whether a backward ended with an error: what it had accumulated by then is nobody's business.
        self.torn = False
        self.scope: dict[str, Any] = {"torch": torch, "look": self.look, "hook": self.hook, "note": self.note}

    def line(self, source: str) -> bool:
        """Runs a line; says whether it went through."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(source, self.scope)
            except Exception as error:
                self.torn = self.torn or "backward(" in source
                self.record.append(("error", source, type(error).__name__, *[plain_text(str(error))] * self.texts))
                return False
        return True

    def tensors(self) -> dict[str, Any]:
        return {
            n: t for n, t in self.scope.items() if re.fullmatch(r"[a-z]\d+", n) and isinstance(t, self.torch.Tensor)
        }

    def hook(self, name: str, factor: float | None = None) -> Callable[[Any], Any]:
        """A hook that notes the gradient it sees, and perhaps scales it."""

        def seen(grad: Any) -> Any:
            self.record.append(("hook", name, values(grad)))
            return None if factor is None else grad * factor

        return seen

    def note(self, name: str) -> Callable[..., None]:
        """A hook that notes only that it was called."""
        return lambda *_: self.record.append(("called", name))

    def look(self) -> None:
        """Notes all that can be seen of all tensors."""
        tensors = self.tensors()
        self.record.append(("memory", sharing(tensors)))
        for name, t in tensors.items():
            self.record.append((name, "is", *state(t)))
            self.record.append((name, "holds", values(t)))
            grad = t.grad
            if not self.torn:
                self.record.append((name, "grad", None if grad is None else values(grad)))
            self.record.append((name, "graph", graph(t.grad_fn)))


def plain_text(message: str) -> str:
    """An error's text without addresses, and with one name for the library."""
    return re.sub(r"0x[0-9a-f]+", "0x", message).replace("compat.", "torch.").strip()


def values(t: Any) -> Any:
    t = t.detach()
    return ("values", t.dtype.itemsize, list(t.shape), t.reshape(-1).tolist())


def state(t: Any) -> tuple[Any, ...]:
    node = t.grad_fn
    return (
        list(t.shape), list(t.stride()) if t.numel() else None, t.storage_offset(), str(t.dtype).removeprefix("torch."),
        t._version, t.requires_grad, t.is_leaf, t.retains_grad, t._is_view(), t.output_nr,
        None if node is None else node.name(),
    )  # fmt: skip


def sharing(tensors: dict[str, Any]) -> list[list[str]]:
    """Which tensors share memory, and which of them are views of one base."""
    found: dict[Any, list[str]] = {}
    for name, t in tensors.items():
        found.setdefault(t.untyped_storage().data_ptr() if t.numel() else name, []).append(name)
    return sorted(found.values())


def graph(root: Any, limit: int = 60) -> list[Any]:
    """The nodes behind a node, by name and edges; the same node has the same number."""
    numbers: dict[Any, int] = {}
    waiting, found = [root] if root is not None else [], []
    while waiting and len(found) < limit:
        node = waiting.pop(0)
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        edges = node.next_functions
        found.append((node.name(), [(None if n is None else n.name(), i) for n, i in edges]))
        waiting += [n for n, _ in edges if n is not None]
    return found


# ---------------------------------------------------------------- comparing


def same(a: Any, b: Any) -> bool:
    """Whether two notes say the same, numbers up to rounding."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) == 4 and len(b) == 4 and a[0] == "values" == b[0]:
            return a[1:3] == b[1:3] and close(a[3], b[3], 1e-6 if a[1] == 8 else 2e-4)
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def close(a: list[float], b: list[float], tolerance: float) -> bool:
    finite = [abs(v) for v in a if np.isfinite(v)]
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * max([1.0, *finite]), equal_nan=True)


def difference(a: Record, b: Record) -> str | None:
    """The first note that two runs disagree about."""
    for x, y in zip(a, b):
        if not same(x, y):
            return f"PyTorch: {x}\n compat: {y}"
    if len(a) != len(b):
        more, who = (a, "PyTorch") if len(a) > len(b) else (b, "compat")
        return f"only {who}: {more[min(len(a), len(b))]}"
    return None


def compared(program: Program, first: Any, second: Any, texts: bool) -> str | None:
    """What differs between the runs of a program in two libraries."""
    records = []
    for torch in (first, second):
        run = Run(torch, texts)
        for line in program:
            run.line(line)
        records.append(run.record)
    return difference(*records)


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


# ---------------------------------------------------------------- writing

SIZES = ((), (1,), (3,), (2, 3), (3, 2), (3, 3), (2, 1), (1, 3), (2, 3, 2))
UNARY = (
    "{x}.mul(0.5)", "{x}.add(1)", "{x} * 2", "1 - {x}", "{x} / 4", "{x}.sin()", "{x}.tanh()", "{x}.sigmoid()",
    "{x}.relu()", "{x}.neg()", "{x}.exp()", "{x}.square()", "{x}.clone()", "{x}.contiguous()", "{x}.sum()",
    "{x}.mean()", "{x}.sum(0)", "{x}.sum(-1, keepdim=True)", "{x}.reshape(-1)", "torch.cat([{x}, {x}])",
    "{x}.softmax(-1)", "{x}.abs()", "{x} ** 2", "{x}.clamp(-0.5, 0.5)", "{x}.to(torch.float32)",
    "{x}.to(torch.float64)", "{x}.cumsum(0)", "{x}.flip(0)",
)  # fmt: skip
VIEWS = (
    "{x}.view(-1)", "{x}.t()", "{x}[0]", "{x}[-1:]", "{x}[:, 1:]", "{x}[..., 0]", "{x}[None]", "{x}.unsqueeze(-1)",
    "{x}.squeeze()", "{x}.expand(2, *{x}.shape)", "{x}.transpose(0, -1)", "{x}.diagonal()", "{x}.narrow(0, 0, 1)",
    "{x}.detach()", "{x}.data", "{x}.view_as({x})", "{x}.flatten()", "{x}.select(-1, 0)", "{x}.movedim(0, -1)",
    "{x}[:]", "{x}.as_strided((2,), (1,))", "{x}[::2]", "{x}.unfold(0, 2, 2)", "{x}.real",
)  # fmt: skip
SEVERAL = ("{x}.unbind()", "{x}.split(1)", "{x}.chunk(2)", "{x}.unbind(-1)")
BINARY = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / ({y}.square() + 1)", "torch.maximum({x}, {y})", "{x} @ {y}",
    "torch.where({x} > 0, {x}, {y})", "torch.stack([{x}, {y}])", "{x}.add({y}, alpha=2)", "torch.cat([{x}, {y}])",
)  # fmt: skip
INPLACE = (
    "{x}.add_(1)", "{x}.mul_(0.5)", "{x}.neg_()", "{x}.zero_()", "{x}.fill_(0.25)", "{x}.relu_()", "{x}.sigmoid_()",
    "{x}.tanh_()", "{x}.sin_()", "{x}.exp_()", "{x}.clamp_(-0.5, 0.5)", "{x}[0] = 0.5", "{x}[..., 0] = 2",
    "{x}[:] = 1", "{x}[0] *= 2", "{x}[..., -1].add_(1)", "{x}.view(-1)[0:1].mul_(3)", "{x}.data.mul_(2)",
    "{x}.square_()", "{x} += 1", "{x}[{x} > 0] = 0.5", "{x}.masked_fill_({x} < 0, 0)",
)  # fmt: skip
INPLACE_BINARY = (
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.copy_({y})", "{x}.sub_({y})", "{x}[0] = {y}", "{x}[0].copy_({y})",
    "{x} *= {y}", "{x}.addcmul_({y}, {y}, value=0.5)",
)  # fmt: skip
MARKS = (
    "{x}.requires_grad_()",
    "{x}.retain_grad()", "{x}.grad = None", "{x}.register_hook(hook('{x}'))",
    "{x}.register_hook(hook('{x} by 2', 2.0))", "del {x}",
    "{x}.register_post_accumulate_grad_hook(note('after {x}'))", "{x}.grad_fn.register_hook(note('node of {x}'))",
    "{x}.grad_fn.register_prehook(note('before node of {x}'))", "{x}.grad.mul_(0.5)", "{x}.requires_grad = True",
)  # fmt: skip
RESHAPING = ("{x}.t_()", "{x}.unsqueeze_(0)", "{x}.squeeze_()")
BACKWARD = (
    "{x}.sum().backward()", "{x}.backward()", "{x}.sum().backward(retain_graph=True)",
    "{x}.backward(torch.ones_like({x}), retain_graph=True)", "{x}.sum().backward(create_graph=True)",
    "{x}.sum().backward(inputs=[{y}])", "torch.autograd.backward([{x}.sum(), {y}.sum()])",
)  # fmt: skip
GRADIENTS = (
    "torch.autograd.grad({x}.sum(), {y})[0]", "torch.autograd.grad({x}.sum(), {y}, allow_unused=True)[0]",
    "torch.autograd.grad({x}.sum(), [{x}, {y}], retain_graph=True, materialize_grads=True)[1]",
    "torch.autograd.grad((torch.autograd.grad({x}.sum(), {y}, create_graph=True)[0] * {y}.square()).sum(), {y})[0]",
)  # fmt: skip


class Author:
    """Writes a program line by line, while it runs.

    Args:
        chance: where choices come from.
        run: a run in PyTorch.
    """

    def __init__(self, chance: random.Random, run: Run):
        self.chance = chance
        self.run = run
        self.count = 0

    def program(self, length: int) -> Program:
        lines: Program = []
        for _ in range(length):
            line = self.next()
            lines.append(line)
            self.run.line(line)
        lines.append("look()")
        self.run.line("look()")
        return lines

    def new(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def leaf(self) -> str:
        size = self.chance.choice(SIZES)
        numbers = np.array([self.chance.randrange(-8, 9) / 4 for _ in range(int(np.prod(size)))]).reshape(size)
        dtype = "torch.float64" if self.chance.random() < 0.9 else "torch.float32"
        asks = self.chance.random() < 0.7
        return f"{self.new()} = torch.tensor({numbers.tolist()}, dtype={dtype}{', requires_grad=True' * asks})"

    def next(self) -> str:
        tensors = self.run.tensors()
        if len(tensors) < 2 or self.chance.random() < 0.06:
            return self.leaf()
        kinds = {
            self.unary: 5, self.binary: 5, self.view: 6, self.several: 1, self.inplace: 6, self.mark: 3,
            self.reshaping: 0.6, self.backward: 2, self.gradient: 1, self.look: 0.4,
        }  # fmt: skip
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        line = kind(tensors)
        if kind in (self.unary, self.inplace) and self.chance.random() < 0.15:
            return f"with torch.no_grad(): {line}"
        return line

    def pick(self, tensors: dict[str, Any]) -> str:
        """A tensor, recent ones more often."""
        names = list(tensors)
        return names[-1 - min(int(self.chance.expovariate(0.35)), len(names) - 1)]

    def partner(self, tensors: dict[str, Any], x: str) -> str:
        """Another that broadcasts against ``x``, most often."""
        fitting = [n for n, t in tensors.items() if broadcasts(t.shape, tensors[x].shape)]
        return self.chance.choice(fitting if self.chance.random() < 0.9 else list(tensors))

    def fill(self, templates: tuple[str, ...], tensors: dict[str, Any]) -> str:
        x = self.pick(tensors)
        return self.chance.choice(templates).format(x=x, y=self.partner(tensors, x))

    def unary(self, tensors: dict[str, Any]) -> str:
        return f"{self.new()} = {self.fill(UNARY, tensors)}"

    def binary(self, tensors: dict[str, Any]) -> str:
        return f"{self.new()} = {self.fill(BINARY, tensors)}"

    def view(self, tensors: dict[str, Any]) -> str:
        return f"{self.new()} = {self.fill(VIEWS, tensors)}"

    def several(self, tensors: dict[str, Any]) -> str:
        return f"{self.new()}, *_ = {self.fill(SEVERAL, tensors)}"

    def inplace(self, tensors: dict[str, Any]) -> str:
        tensors = {n: t for n, t in tensors.items() if 0 not in t.stride() and not stray(t)} or tensors
        if self.chance.random() < 0.6:
            return self.fill(INPLACE, tensors)
        x = self.pick(tensors)
        return self.chance.choice(INPLACE_BINARY).format(x=x, y=self.partner(apart(tensors, x), x))

    def mark(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if not stray(t) and (t.requires_grad or alone(t, tensors))}
        return self.fill(MARKS, plain) if plain else self.leaf()

    def reshaping(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if not t.retains_grad}
        return self.fill(RESHAPING, plain) if plain else self.leaf()

    def backward(self, tensors: dict[str, Any]) -> str:
        return self.fill(BACKWARD, tensors)

    def gradient(self, tensors: dict[str, Any]) -> str:
        gradient = self.chance.choice(GRADIENTS).format(x=self.pick(tensors), y=self.pick(tensors))
        return f"{self.new()} = {gradient}.clone(memory_format=torch.contiguous_format)"

    def look(self, tensors: dict[str, Any]) -> str:
        return "look()"


def stray(t: Any) -> bool:
    """Whether it is a view that is in the graph only because its base is: PyTorch crashes where that gets a hook."""
    try:
        return t._is_view() and t.requires_grad and t.is_leaf
    except RuntimeError:
        return True


def alone(t: Any, tensors: dict[str, Any]) -> bool:
    """Whether no other of the tensors shares memory with ``t``."""
    return sum(other.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for other in tensors.values()) == 1


def apart(tensors: dict[str, Any], x: str) -> dict[str, Any]:
    """The tensors of one dtype with one of them that share no memory with it, and itself."""
    others = {n: t for n, t in tensors.items() if n != x and t.dtype == tensors[x].dtype}
    return {x: tensors[x], **{n: t for n, t in others.items() if alone(tensors[x], {x: tensors[x], n: t})}}


def broadcasts(a: Any, b: Any) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


# ---------------------------------------------------------------- many


def disagreements(
    first: Any, second: Any, seeds: range, length: int, texts: bool = False, show: bool = False
) -> Iterator[dict[str, Any]]:
    """The programs of these seeds that differ, shortened."""
    for seed in seeds:
        author = Author(random.Random(seed), Run(first, texts))
        program = author.program(length)
        if show:
            print(f"# seed {seed}", *program, sep="\n", flush=True)
        run = Run(second, texts)
        for line in program:
            run.line(line)
        if difference(author.run.record, run.record) is None:
            continue
        # On its own, to see whether it is the program that differs and not the memory of earlier ones.
        if compared(program, first, second, texts) is None:
            yield {"seed": seed, "program": program, "difference": "only after the programs before it"}
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
