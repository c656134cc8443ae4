"""Random programs have the same results deferred, compiled as a whole, and run at once."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat as torch
from compat import runtime

pytestmark = pytest.mark.deferral

# An instruction is a name, two indices of tensors, and a number. Indices are taken modulo the number of tensors.
Instruction = tuple[str, int, int, float]


class Machine:
    """Tensors, and the operations and observations of a program."""

    def __init__(self) -> None:
        rows = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        self.tensors = [torch.tensor(rows), torch.tensor(rows[::-1] * 0.5, requires_grad=True), torch.zeros(2, 3)]
        self.seen: list[Any] = []

    def run(self, program: list[Instruction]) -> list[Any]:
        for name, i, j, number in program:
            x, y = self.tensors[i % len(self.tensors)], self.tensors[j % len(self.tensors)]
            try:
                made = getattr(self, "do_" + name)(x, y, number)
            except (RuntimeError, IndexError) as error:
                self.seen.append(f"{type(error).__name__}: {error}")
            else:
                if made is not None:
                    self.tensors.append(made)
            # Otherwise the next instruction's tensors have one more reference.
            del x, y
            made = None
        for t in self.tensors:
            self.look(t)
        return self.seen

    def look(self, t: Any) -> None:
        self.seen.append(t.detach().numpy().copy())
        if t.is_leaf and t.grad is not None:
            self.seen.append(t.grad.numpy().copy())

    # Results of operations.
    def do_add(self, x: Any, y: Any, number: float) -> Any:
        return torch.add(x, y, alpha=number)

    def do_mul(self, x: Any, y: Any, number: float) -> Any:
        return torch.tanh(x * y) * number

    def do_sigmoid(self, x: Any, y: Any, number: float) -> Any:
        return torch.sigmoid(x - number)

    def do_matmul(self, x: Any, y: Any, number: float) -> Any:
        return torch.tanh(x.reshape(-1, 1) @ y.reshape(1, -1))[:2, :3]

    def do_zeros(self, x: Any, y: Any, number: float) -> Any:
        return torch.zeros(2, 3)

    def do_ones(self, x: Any, y: Any, number: float) -> Any:
        return torch.ones(2, 3, requires_grad=number > 0)

    def do_clone(self, x: Any, y: Any, number: float) -> Any:
        return x.clone()

    def do_max(self, x: Any, y: Any, number: float) -> Any:
        return x.max(-1).values

    def do_no_grad(self, x: Any, y: Any, number: float) -> Any:
        with torch.no_grad():
            return torch.sin(x) + y

    # Tensors that share memory.
    def do_row(self, x: Any, y: Any, number: float) -> Any:
        return x[0]

    def do_part(self, x: Any, y: Any, number: float) -> Any:
        return x[..., 1:]

    def do_turn(self, x: Any, y: Any, number: float) -> Any:
        return x.t()

    def do_flat(self, x: Any, y: Any, number: float) -> Any:
        return x.reshape(-1)

    def do_detach(self, x: Any, y: Any, number: float) -> Any:
        return x.detach()

    def do_data(self, x: Any, y: Any, number: float) -> Any:
        return x.data

    # Writing.
    def do_add_(self, x: Any, y: Any, number: float) -> None:
        x.add_(y, alpha=number)

    def do_mul_(self, x: Any, y: Any, number: float) -> None:
        x.mul_(number)

    def do_copy_(self, x: Any, y: Any, number: float) -> None:
        x.copy_(y)

    def do_tanh_(self, x: Any, y: Any, number: float) -> None:
        x.tanh_()

    def do_zero_(self, x: Any, y: Any, number: float) -> None:
        x.zero_()

    def do_fill_row_(self, x: Any, y: Any, number: float) -> None:
        x[0] = number

    def do_no_grad_add_(self, x: Any, y: Any, number: float) -> None:
        with torch.no_grad():
            x.sub_(y, alpha=number)

    def do_data_add_(self, x: Any, y: Any, number: float) -> None:
        x.data.add_(number)

    def do_set_data(self, x: Any, y: Any, number: float) -> None:
        x.data = y.detach().clone() if number > 0 else y.detach()

    def do_set_(self, x: Any, y: Any, number: float) -> None:
        with torch.no_grad():
            x.set_(y.detach())

    # The graph, values, and tensors that are freed.
    def do_backward(self, x: Any, y: Any, number: float) -> None:
        if x.requires_grad:
            torch.tanh(x).sum().backward(retain_graph=number > 0)

    def do_no_more_grad(self, x: Any, y: Any, number: float) -> None:
        if x.is_leaf:
            x.grad = None

    def do_keep_grad(self, x: Any, y: Any, number: float) -> Any:
        return x.grad if x.is_leaf else None

    def do_look(self, x: Any, y: Any, number: float) -> None:
        self.look(x)

    def do_sum(self, x: Any, y: Any, number: float) -> None:
        self.seen.append(np.float32(x.sum().item()))

    def do_drop(self, x: Any, y: Any, number: float) -> None:
        if len(self.tensors) > 3:
            self.tensors = [t for t in self.tensors if t is not x]

    def do_flush(self, x: Any, y: Any, number: float) -> None:
        runtime.flush()

    def do_hold_memory(self, x: Any, y: Any, number: float) -> None:
        self.seen.append(x.detach().numpy())  # its buffer: nothing may be written there


NAMES = sorted(name.removeprefix("do_") for name in dir(Machine) if name.startswith("do_"))
instructions = st.tuples(
    st.sampled_from(NAMES), st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.5, -1.0, 0.0, 2.0, -0.0])
)


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if isinstance(b, str):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def check(program: list[Instruction]) -> None:
    with runtime.eager():
        wanted = Machine().run(program)
    for _ in range(3):
        assert_equal(Machine().run(program), wanted)
        runtime.synchronize()
    gc.collect()


@settings(max_examples=max(15, settings().max_examples // 2))
@given(st.lists(instructions, min_size=2, max_size=14))
def test_random_programs(program: list[Instruction]) -> None:
    check(program)


@settings(max_examples=max(5, settings().max_examples // 5))
@given(st.lists(instructions, min_size=2, max_size=7), st.sampled_from([0.25, -3.0, float("nan")]))
def test_the_same_program_with_other_numbers(program: list[Instruction], number: float) -> None:
    check(program)
    check([(name, i, j, number) for name, i, j, _ in program])


def test_every_instruction() -> None:
    """Each at least once, after a few of the others: random programs may not contain some."""
    for at, name in enumerate(NAMES):
        before = [NAMES[(at + k) % len(NAMES)] for k in (3, 7)]
        check([(n, k, k + 1, 0.5) for k, n in enumerate([*before, name, "add", name, "look"])])
