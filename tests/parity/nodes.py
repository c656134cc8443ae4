"""Attributes of every node of backward graphs, in compat and in real PyTorch, over PyTorch's database of operators.

    PYTHONPATH=. python tests/parity/nodes.py --tools DIR
    PYTHONPATH=. python tests/parity/nodes.py --tools DIR --ops 'loss' --seed 7

For each sample of an operator both backward graphs are traversed side by side. Compared are: names; edges and their
output numbers; the set of ``_saved_...`` and ``_raw_saved_...`` attributes; and the type and value of each attribute,
for tensors also dtype, sizes, strides, place in the graph, and which of the operator's arguments they are, if they are
the same object. Where PyTorch raises when an attribute is read, the same error is expected.

Its table has one column, ``nodes``; ``run.py`` puts it beside those of the other programs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMN = "nodes"

#: Uninitialized memory: everything except values is compared.
UNSET = ("RreluWithNoiseBackward0._saved_noise", "RreluWithNoiseBackward1._saved_noise")


class Side:
    """One library's part in a comparison.

    Args:
        lib: PyTorch, or its replacement.
        bridge: a function that turns its tensors into arrays.
        given: the tensors that the operator was called with.
    """

    def __init__(self, lib: Any, bridge: Any, given: list[Any]):
        self.lib = lib
        self.bridge = bridge
        self.given = given

    def argument(self, x: Any) -> list[int]:
        """Which of the arguments a tensor is."""
        return [i for i, t in enumerate(self.given) if t is x]

    def about(self, t: Any) -> list[tuple[str, Any]]:
        """Everything about a tensor except its values."""
        strides = [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else None
        node = None if t.grad_fn is None else plain(t.grad_fn.name())
        return [
            ("argument", self.argument(t)), ("dtype", str(t.dtype).rpartition(".")[2]), ("shape", list(t.shape)),
            ("strides", strides), ("requires_grad", t.requires_grad), ("is_leaf", t.is_leaf),
            ("output_nr", t.output_nr), ("grad_fn", node),
        ]  # fmt: skip


def plain(name: str) -> str:
    """A node's name without its namespace."""
    return re.sub(r"^(struct )?torch::autograd::", "", name)


def shown(node: Any) -> list[str]:
    return sorted(name for name in dir(node) if name.startswith(("_saved", "_raw_saved")))


def look(node: Any, name: str) -> tuple[bool, Any]:
    """The value of an attribute, or the error that reading it raises."""
    try:
        return True, getattr(node, name)
    except Exception as error:
        return False, (type(error).__name__, str(error))


class Comparison:
    """A traversal of two backward graphs.

    Args:
        tools: the module ``ops`` of the parity programs.
        first, second: PyTorch's graph and the other.
    """

    def __init__(self, tools: Any, first: Side, second: Side):
        self.tools = tools
        self.first = first
        self.second = second

    def check(self, what: str, a: Any, b: Any) -> None:
        self.tools.check(a == b, f"{what}: {b!r}, expected {a!r}")

    def graphs(self, first: Any, second: Any) -> None:
        """Compares the graphs behind two nodes.

        Raises:
            Mismatch: of the tools, at the first difference.
        """
        waiting, seen = [("", first, second)], set()
        while waiting:
            path, a, b = waiting.pop()
            self.check(f"{path} is a node", a is not None, b is not None)
            if a is None or a in seen:
                continue
            seen.add(a)
            path += f"/{plain(a.name())}"
            self.check(f"{path} name", plain(a.name()), plain(b.name()))
            self.attributes(path, a, b)
            edges = a.next_functions, b.next_functions
            self.check(f"{path} output numbers", *([nr for _, nr in side] for side in edges))
            waiting += [(f"{path}>{i}", m, n) for i, ((m, _), (n, _)) in enumerate(zip(*edges))]

    def attributes(self, path: str, first: Any, second: Any) -> None:
        self.check(f"{path} attributes", shown(first), shown(second))
        for name in shown(first):
            (here, a), (there, b) = look(first, name), look(second, name)
            self.check(f"{path}.{name} raises", None if here else a, None if there else b)
            if here:
                self.values(f"{path}.{name}", a, b)

    def values(self, path: str, a: Any, b: Any) -> None:
        if isinstance(a, self.first.lib.Tensor):
            self.tools.check(isinstance(b, self.second.lib.Tensor), f"{path}: {b!r}, expected a tensor")
            self.tensors(path, a, b)
            return
        self.check(f"{path} type", type(a).__name__, type(b).__name__)
        if isinstance(a, tuple | list):
            self.check(f"{path} length", len(a), len(b))
            for i, (m, n) in enumerate(zip(a, b)):
                self.values(f"{path}[{i}]", m, n)
        elif isinstance(a, float):
            same = math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
            self.tools.check(same, f"{path}: {b}, expected {a}")
        elif "0x" not in repr(a):
            self.check(path, repr(a), repr(b).replace(f"{self.second.lib.__name__}.", "torch."))

    def tensors(self, path: str, a: Any, b: Any) -> None:
        for (what, m), (_, n) in zip(self.first.about(a), self.second.about(b)):
            self.check(f"{path} {what}", m, n)
        if not path.endswith(UNSET):
            self.tools.close(self.first.bridge.numpy(a), self.second.bridge.numpy(b), path)


# ---------------------------------------------------------------- operators


def mismatches(tools: Any, run: Any) -> Iterator[str | None]:
    """The first difference for each differentiable sample of an operator, or None.

    Args:
        run: of the tools: the operator, its samples, and both libraries.
    """
    torch = tools.torch
    theirs, ours = tools.find(torch, run.op.name), tools.find(run.lib, run.op.name)
    for sample in run.samples(True):
        try:
            x, args, kwargs = run.parts(run.T, sample)
            torch.manual_seed(run.args.seed)
            wanted = tools.differentiable(run.T, theirs(x, *args, **kwargs))
        except Exception:  # the database has samples that PyTorch itself rejects
            continue
        if not wanted:
            continue
        try:
            y, positional, named = run.parts(run.L, sample)
            run.lib.manual_seed(run.args.seed)
            found = tools.differentiable(run.L, ours(y, *positional, **named))
            first = Side(torch, run.T, tools.tensors(run.T, (x, args, kwargs)))
            second = Side(run.lib, run.L, tools.tensors(run.L, (y, positional, named)))
            comparison = Comparison(tools, first, second)
            comparison.check("differentiable results", len(wanted), len(found))
            for a, b in zip(wanted, found):
                comparison.graphs(a.grad_fn, b.grad_fn)
            yield None
        except Exception as error:  # a library that fails is a finding
            yield f"{type(error).__name__}: {error}"


def table(tools: Any, chosen: list[Any], lib: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The rows of operators that have anything to compare, and the reasons of incomplete cells."""
    rows, why = {}, {}
    for op in chosen:
        label = f"{op.name}.{op.variant_test_name}".rstrip(".")
        if tools.find(tools.torch, op.name) is None or tools.find(lib, op.name) is None:
            continue
        found = list(mismatches(tools, tools.OpRun(op, lib, arguments)))
        if found:
            wrong = [reason for reason in found if reason is not None]
            rows[label] = {COLUMN: not wrong}
            why[label] = {COLUMN: wrong[0]} if wrong else {}
    return {"table": rows, "why": why}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=Path, required=True, help="where ops.py is")
    parser.add_argument("--lib", default="compat", help="what is compared with PyTorch")
    parser.add_argument("--ops", default="", help="a regular expression: of which operators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=6, help="at most so many of each operator")
    parser.add_argument("--json", type=Path, help="where to write the table")
    arguments = parser.parse_args()
    arguments.columns = []
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(arguments.tools))
    tools, lib = importlib.import_module("ops"), importlib.import_module(arguments.lib)
    chosen = [op for op in tools.op_db if not tools.OUT_OF_SCOPE.match(op.name) and re.search(arguments.ops, op.name)]
    result = table(tools, chosen, lib, arguments)
    for label, reasons in result["why"].items():
        print(*(f"{label}: {reason}" for reason in reasons.values()), sep="\n", end="\n" * bool(reasons))
    differ = sum(not row[COLUMN] for row in result["table"].values())
    print(f"{len(result['table'])} differentiable entries, of {differ or 'none'} some node differs")
    if arguments.json:
        arguments.json.write_text(json.dumps(result))
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
