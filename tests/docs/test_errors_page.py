"""Every error that links to the page of errors has an entry there, and every entry is linked to."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

import compat as torch
import funcgrad as fg
from compat._core.types import errors as of_compat
from funcgrad.core import errors

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "help" / "errors.md").read_text()
ENTRIES = set(re.findall(r"^### .*\{#([\w-]+)\}$", PAGE, re.MULTILINE))


def named() -> Iterator[str]:
    """The entries that the code names: in ``explained``, as an error's ``entry=``, as a class's ``entry``."""
    yield from of_compat.ENTRIES
    for path in [p for package in ("funcgrad", "compat") for p in (ROOT / package).rglob("*.py")]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if re.search(r"\bexplained\(|\bentry\b", text) else ():
            match node:
                case ast.Call(func=ast.Name(id="explained"), args=[_, ast.Constant(value=str(entry)), *_]):
                    yield entry
                case ast.keyword(arg="entry", value=ast.Constant(value=str(entry))):
                    yield entry
                case ast.Assign(targets=[ast.Name(id="entry")], value=ast.Constant(value=str(entry))):
                    yield entry


def test_entries_are_those_that_errors_name() -> None:
    assert set(named()) == ENTRIES


def raised(f: object) -> BaseException:
    with pytest.raises(Exception) as caught:
        f()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize(
    ("f", "entry"),
    [
        (lambda: torch.ones(2, device="cuda"), "cuda"),
        (lambda: fg.grad(lambda x: x, 3.0), "transform-call"),
        (lambda: fg.jacrev(lambda x: x, fg.numpy.ones(2))(1.0), "transform-call"),
        (lambda: torch.func.grad(lambda x: x, torch.ones(1))(torch.ones(1)), "transform-call"),
        (lambda: fg.vmap(lambda x: x if x > 0 else -x)(fg.numpy.ones(2)), "branch-in-vmap"),
        (lambda: torch.func.vmap(lambda x: x if x > 0 else -x)(torch.ones(2)), "branch-in-vmap"),
        (lambda: fg.jit(lambda x: x if x > 0 else -x)(1.0), "concretization"),
        (lambda: torch.ones(2).sum().backward(), "no-graph"),
        (lambda: torch.ones(2, requires_grad=True).backward(), "scalar-output"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), "numpy-of-graph"),
        (lambda: fg.grad(lambda x: x)(3), "integer-argument"),
        (lambda: fg.grad(lambda x: (x, 1))(1.0), "scalar-output"),
        (lambda: fg.grad(lambda x: x * 1j)(1.0), "scalar-output"),
        (lambda: fg.grad(lambda x: x, argnums=3)(1.0), "transform-call"),
        (lambda: fg.numpy.ones(3).__setitem__(0, 1.0), "immutable"),
        (lambda: fg.jit(lambda x, mode: x)(1.0, "relu"), "jit-argument"),
        (lambda: fg.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), "jit-argument"),
        (lambda: fg.jit(fg.numpy.zeros)(3), "concretization"),
        (lambda: fg.jit(lambda x: x[x > 0])(fg.numpy.ones(3)), "concretization"),
        (lambda: fg.grad(math.sin)(1.0), "derivative-lost"),
        (lambda: fg.grad(jax.numpy.sin)(1.0), "jax-function"),
        (lambda: fg.jit(jax.numpy.sum)(fg.numpy.ones(2)), "jax-function"),
        (lambda: fg.vmap(lambda x, y: x + y)(fg.numpy.ones(2), fg.numpy.ones(3)), "vmap-axes"),
        (lambda: fg.vmap(lambda x: x)(1.0), "vmap-axes"),
        (lambda: fg.vmap(lambda x, y: x, in_axes=(0,))(fg.numpy.ones(2), 1.0), "vmap-axes"),
        (lambda: fg.scan(lambda c, x: ((c, c), x), 1.0, fg.numpy.ones(3)), "loop-carry"),
        (lambda: fg.while_loop(lambda c: c < 3, lambda c: c * fg.numpy.ones(2), 1.0), "loop-carry"),
        (lambda: fg.cond(True, lambda x: x, lambda x: (x, x), 1.0), "branches"),
        (lambda: fg.cond(True, lambda x: x, lambda x: x * fg.numpy.ones(2), 1.0), "branches"),
        (lambda: fg.custom_vjp(lambda x: x)(1.0), "custom-rule"),
        (lambda: fg.psum(1.0, "i"), "axis-name"),
        (lambda: fg.random.normal((2,)), "random-key"),
        (lambda: fg.numpy.sin(torch.ones(2, requires_grad=True)), "tensor-in-funcgrad"),
        (lambda: torch.ones(2).cuda(), "cuda"),
        (lambda: torch.nn.Linear(2, 2).to("cuda"), "cuda"),
        (lambda: torch.ones(2, device="mps"), "cuda"),
        (lambda: torch.ones(2, 3) @ torch.ones(2, 3), "shape-mismatch"),
        (lambda: torch.ones(2) + torch.ones(3), "shape-mismatch"),
        (lambda: torch.ones(6).reshape(4), "shape-mismatch"),
        (lambda: torch.ones(6).view(4), "shape-mismatch"),
        (lambda: torch.cat([torch.ones(2, 3), torch.ones(3, 2)]), "shape-mismatch"),
        (lambda: torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8)), "shape-mismatch"),
        (lambda: torch.nn.Linear(3, 2)(torch.ones(4, 3, dtype=torch.float64)), "dtype-mismatch"),
        (lambda: torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(2)), "dtype-mismatch"),
        (lambda: torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 7])), "out-of-range"),
        (lambda: torch.nn.Embedding(3, 2)(torch.tensor([5])), "out-of-range"),
        (lambda: torch.ones(3).sum(dim=2), "out-of-range"),
        (lambda: torch.ones(3)[5], "out-of-range"),
        (lambda: torch.ones(3)[torch.tensor([5])], "out-of-range"),
        (lambda: torch.ones(2, requires_grad=True).add_(1), "leaf-in-place"),
        (
            lambda: (torch.ones(2).add_(1), torch.ones(2, requires_grad=True).add_(1)),
            "leaf-in-place",
        ),  # not the first call
        (lambda: torch.ones(2, 3).t().view(6), "view-size"),
        (lambda: torch.ones(2).item(), "one-value"),
        (lambda: bool(torch.ones(2) > 0), "one-value"),
        (lambda: torch.nn.Linear(2, 2).load_state_dict({}), "state-dict"),
        (lambda: torch.tensor([1], requires_grad=True), "integer-argument"),
        (torch.ao.quantization.QuantStub, "absent"),
        (lambda: torch.quantize_per_tensor, "absent"),
        (lambda: torch.func.vmap(lambda x: torch.rand(1))(torch.ones(2)), "vmap-randomness"),
        (lambda: fg.grad(3.0), "transform-call"),
        (lambda: fg.vmap(fg.numpy.ones(2)), "transform-call"),
        (lambda: fg.numpy.matmul(fg.numpy.ones((2, 3)), fg.numpy.ones((2, 3))), "operands"),
        (lambda: fg.numpy.add(fg.numpy.ones(2), fg.numpy.ones(3)), "operands"),
        (lambda: fg.jit(lambda x: x.reshape(4))(fg.numpy.ones(6)), "operands"),
        (lambda: fg.numpy.sum(fg.numpy.ones(3), axis=2), "operands"),
        (lambda: fg.numpy.ones(3)[5], "operands"),
        (lambda: fg.grad(lambda x: x[5])(fg.numpy.ones(3)), "operands"),
        (lambda: fg.numpy.einsum("ij,jk", fg.numpy.ones((2, 3)), fg.numpy.ones((2, 3))), "operands"),
        (lambda: fg.numpy.stack([fg.numpy.ones(2), fg.numpy.ones(3)]), "operands"),
        (lambda: fg.scan(lambda c, x: c, 1.0, fg.numpy.ones(2)), "loop-carry"),
        (lambda: torch.nn.functional.relu([1.0]), "not-a-tensor"),
        (lambda: torch.nn.Linear(3, 2)([1.0, 2.0, 3.0]), "not-a-tensor"),
        (lambda: torch.tensor([[1, 2], [3]]), "not-a-tensor"),
        (lambda: torch.optim.SGD([], lr=0.1), "optimizer-parameters"),
        (lambda: torch.optim.SGD(torch.ones(2), lr=0.1), "optimizer-parameters"),
        (lambda: torch.optim.SGD([torch.ones(2, requires_grad=True) * 2], lr=0.1), "optimizer-parameters"),
        (lambda: torch.nn.Module()(torch.ones(1)), "module-definition"),
        (lambda: torch.nn.BatchNorm1d(3)(torch.ones(1, 3)), "batch-of-one"),
        (lambda: setattr(torch.ones(2, requires_grad=True) * 2, "requires_grad", False), "leaf-flag"),
        (lambda: torch.softmax(torch.tensor([1, 2]), 0), "dtype-mismatch"),
        (lambda: torch.tensor([1, 2]).mean(), "dtype-mismatch"),
        (lambda: torch.nn.Embedding(3, 2)(torch.ones(2)), "dtype-mismatch"),
        (lambda: torch.ones(3)[torch.tensor([0.5])], "dtype-mismatch"),
        (lambda: torch.ones(3)[0, 0], "out-of-range"),
        (lambda: torch.nn.functional.binary_cross_entropy(torch.tensor([2.0]), torch.ones(1)), "out-of-range"),
        (lambda: torch.stack([torch.ones(2), torch.ones(3)]), "shape-mismatch"),
        (lambda: torch.nn.functional.cross_entropy(torch.ones(4, 3), torch.tensor([0, 1])), "shape-mismatch"),
        (lambda: torch.ones(3)[torch.tensor([True, False])], "shape-mismatch"),
        (lambda: torch.ones(2, 3).expand(4, 3), "shape-mismatch"),
        (lambda: torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(2, 3)), "shape-mismatch"),
        (lambda: torch.nn.LSTM(3, 4)(torch.ones(2, 5, 6)), "shape-mismatch"),
        (lambda: torch.nn.Conv2d(3, 4, 3)(torch.ones(3, 8)), "shape-mismatch"),
        (lambda: torch.func.vmap(lambda a, b: a + b)(torch.ones(2), torch.ones(3)), "vmap-axes"),
        (lambda: torch.func.grad(lambda x: x)(torch.ones(2)), "scalar-output"),
    ],
)
def test_errors_lead_to_their_entries(f: object, entry: str) -> None:
    notes = getattr(raised(f), "__notes__", [])
    assert len(notes) == 1 and notes[0].endswith(f"/help/errors.html#{entry}")
    assert entry in ENTRIES


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (lambda: torch.ones(2, 3) @ torch.ones(3, 2), lambda: torch.ones(2, 3) @ torch.ones(2, 3)),
        (lambda: torch.ones(2) + torch.ones(2), lambda: torch.ones(2) + torch.ones(3)),
        (lambda: torch.ones(2).mul_(torch.ones(2)), lambda: torch.ones(2).mul_(torch.ones(3))),
        (lambda: torch.ones(6).view(2, 3), lambda: torch.ones(6).view(4)),
        (lambda: torch.ones(3).sum(dim=0), lambda: torch.ones(3).sum(dim=2)),
        (lambda: torch.ones(3)[1], lambda: torch.ones(3)[5]),
        (lambda: torch.relu(torch.ones(3)), lambda: torch.relu([1.0])),
    ],
)
def test_errors_lead_to_their_entries_also_after_right_calls(right: Any, wrong: Any) -> None:
    for _ in range(3):
        right()
        assert len(getattr(raised(wrong), "__notes__", [])) == 1


ADD = fg.jit(lambda x, y: x + y)
TIMES = fg.jit(lambda x, n: x * n, static_argnums=1)


@pytest.mark.parametrize(
    ("f", "right", "wrong", "message"),
    [
        (ADD, (1.0, 2.0), ("a", 2.0), "an argument is 'a' of type str"),
        (ADD, (1.0, 2.0), (1.0, object()), "of type object, wanted an array or a number"),
        (TIMES, (1.0, 2), ("a", 2), "an argument is 'a' of type str"),
        (TIMES, (1.0, 2), (1.0, [2]), "static arguments must be hashable, but argument 1 is [2] of type list"),
    ],
)
def test_a_compiled_function_explains_a_wrong_call(f: Any, right: tuple, wrong: tuple, message: str) -> None:
    for _ in range(2):
        f(*right)
        error = raised(lambda: f(*wrong))
        assert message in str(error) and error.__notes__[-1].endswith("#jit-argument")


def test_messages_stay_as_they_are() -> None:
    assert str(raised(lambda: torch.ones(2, device="cuda"))) == "Torch not compiled with CUDA enabled"
    assert str(errors.ConcretizationError("why")) == "why"
