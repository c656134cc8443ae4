"""Conjugations are moved to where they cancel: fewer of them, and the same numbers."""

import numpy as np
import pytest

from funcgrad.core.tracing import type_of
from funcgrad.interpreters.conjugate import conjugated_late
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.interpreters.staging import stage
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.contraction import matmul2
from funcgrad.primitives.fft import fft
from funcgrad.primitives.shape import concatenate, reduce_sum, reshape, slice_

X = np.array([[1 + 2j, -0.5 + 0.25j], [0.75 - 1j, 2 - 0.5j]])
Y = np.array([[0.5 - 1j, 1.5 + 1j], [-2 + 0.25j, 1 + 1j]])
REAL = Y.real.copy()
#: The same operations on conjugates: their parts may be added in another order, for which forty roundings are allowed;
#: five suffice.
ROUNDING = 1e-14


def first_row(x):
    return slice_(x, start=(0, 0), limit=(1, 2), strides=(1, 1))


FUNCTIONS = {
    "products": lambda x, y: [e.mul(e.mul(x, y), x)],
    "quotients": lambda x, y: [e.div(e.sin(x), y)],
    "matrices": lambda x, y: [matmul2(e.exp(x), y)],
    "parts": lambda x, y: [e.mul(e.real(x), e.imag(y))],
    "from parts": lambda x, y: [e.make_complex(e.imag(x), e.real(y))],
    "conjugates": lambda x, y: [e.mul(e.conj(x), e.conj(e.mul(y, x)))],
    "shapes": lambda x, y: [reshape(concatenate(x, first_row(y), axis=0), shape=(6,))],
    "sums": lambda x, y: [reduce_sum(e.sub(x, e.mul(y, np.complex128(2 + 1j))), axes=(0,))],
    "what does not commute": lambda x, y: [e.mul(fft(x, axes=(0,), inverse=False), fft(y, axes=(1,), inverse=True))],
    "lengths": lambda x, y: [e.complex_abs(e.mul(x, y))],
    "several": lambda x, y: [e.mul(x, y), e.real(x)],
}  # fmt: skip


def gradient(f, *inputs):
    """The program of a function's gradients, and its operands: the inputs and the incoming gradients."""
    results = f(*inputs)
    cts = [np.asarray(r) * (1 + 0.5 * np.arange(np.size(r)).reshape(np.shape(r))) for r in results]

    def conjugated(x):
        return e.conj(x) if type_of(x).dtype.kind == "c" else x

    def run(*given):
        _, pullback = vjp_flat(f, given[: len(inputs)])
        return [conjugated(g) for g in pullback([conjugated(ct) for ct in given[len(inputs) :]])]

    arrays = [*inputs, *cts]
    program = stage(run, [type_of(a) for a in arrays])
    return program, arrays, program.inputs[len(inputs) :]


def conjugations(program):
    return sum(equation.primitive is e.conj for equation in program.equations)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers(name):
    program, arrays, cts = gradient(FUNCTIONS[name], X, Y)
    found = conjugated_late(program, cts)
    for a, b in zip(evaluate(program, arrays), evaluate(found, arrays), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=ROUNDING)


def test_real_operands_beside_complex_ones():
    program, arrays, cts = gradient(lambda x, y: [e.mul(x, e.cast(y, dtype=x.dtype))], X, REAL)
    found = conjugated_late(program, cts)
    for a, b in zip(evaluate(program, arrays), evaluate(found, arrays), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=ROUNDING)


def test_conjugations_of_reshapes_and_sums_cancel():
    for name in ("shapes", "sums"):
        program, _, cts = gradient(FUNCTIONS[name], X, Y)
        assert conjugations(program)
        assert not conjugations(conjugated_late(program, cts))


def test_programs_without_conjugations_are_unchanged():
    program = stage(lambda x: [e.mul(x, x)], [type_of(X)])
    assert conjugated_late(program, program.inputs) is program
