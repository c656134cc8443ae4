"""Recurrent layers in one direction, forward and backward, as functions of arrays.

Computations that do not depend on the state are outside the loops: forward multiplies the inputs of all steps by their
weights before the loop, and the loop of backward collects the gradients of the gates, from which single products give
the gradients of weights and inputs. The forward loop stores the gates, so that backward does not recompute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from funcgrad import numpy as np
from funcgrad import scan
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.rules import accumulate
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.contraction import dot, matmul2
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import concatenate, moved, reshape, slice_, zeros

#: The kinds of layers, as PyTorch numbers them.
RELU, TANH, LSTM, GRU = range(4)


class Weights(NamedTuple):
    """The parameters of a layer in one direction, with gates along rows; biases and the projection may be absent."""

    ih: Any
    hh: Any
    b_ih: Any = None
    b_hh: Any = None
    hr: Any = None


class StepValues(NamedTuple):
    """Values that a backward step reads: the states before it, the new state, the gates, and their gradients, which are
    None unless the backward pass is differentiated."""

    h: Any
    c: Any
    new: Any
    gates: Any
    ct_gates: Any


# ---------------------------------------------------------------- arrays


def _rows(x: Any, w: Any) -> Any:
    """``x @ w.T``."""
    return dot(x, w, contract=((1,), (1,)), batch=((), ()))


def _flat(x: Any) -> Any:
    """(steps, batch, ...) as (steps * batch, ...), for products of matrices."""
    steps, batch, *shape = type_of(x).shape
    return reshape(x, shape=(steps * batch, *shape))


def _columns(x: Any, n: int) -> list[Any]:
    """``n`` equal parts of the last axis."""
    shape = type_of(x).shape
    lead, width = tuple(0 for _ in shape[:-1]), shape[-1] // n
    ones = (1,) * len(shape)
    return [slice_(x, start=(*lead, i * width), limit=(*shape[:-1], (i + 1) * width), strides=ones) for i in range(n)]


def _join(*parts: Any) -> Any:
    return concatenate(*parts, axis=type_of(parts[0]).ndim - 1)


def _steps(x: Any, start: int, limit: int) -> Any:
    shape = type_of(x).shape
    return slice_(x, start=(start, *[0] * (len(shape) - 1)), limit=(limit, *shape[1:]), strides=(1,) * len(shape))


def _before(states: Any, first: Any, reverse: bool) -> Any:
    """The states before the steps, given those after them and the initial one."""
    steps = type_of(states).shape[0]
    first = reshape(first, shape=(1, *type_of(first).shape))
    return (
        concatenate(_steps(states, 1, steps), first, axis=0)
        if reverse
        else concatenate(first, _steps(states, 0, steps - 1), axis=0)
    )


def _select_active(active: Any, new: Any, old: Any) -> Any:
    """The new states of sequences that have this step, the old states of others."""
    return new if active is None else np.where(active, new, old)


def _slope_of_sigmoid(s: Any) -> Any:
    return np.multiply(s, np.subtract(1.0, s))


def _slope_of_tanh(t: Any) -> Any:
    return np.subtract(1.0, np.multiply(t, t))


# ---------------------------------------------------------------- one step of each mode

State = tuple[Any, ...]


def _plain_step(activation: Callable[[Any], Any], gx: Any, gh: Any, state: State, w: Weights) -> tuple[State, Any]:
    return (activation(np.add(gx, gh)),), ()


def _lstm_step(gx: Any, gh: Any, state: State, w: Weights) -> tuple[State, Any]:
    i, f, g, o = _columns(np.add(gx, gh), 4)
    i, f, g, o = e.logistic(i), e.logistic(f), e.tanh(g), e.logistic(o)
    c = np.add(np.multiply(f, state[1]), np.multiply(i, g))
    h = np.multiply(o, e.tanh(c))
    return (h if w.hr is None else _rows(h, w.hr), c), (i, f, g, o)


def _gru_step(gx: Any, gh: Any, state: State, w: Weights) -> tuple[State, Any]:
    (xr, xz, xn), (hr, hz, hn) = _columns(gx, 3), _columns(gh, 3)
    if w.b_hh is not None:
        hn = np.add(hn, _columns(w.b_hh, 3)[2])
    r, z = e.logistic(np.add(xr, hr)), e.logistic(np.add(xz, hz))
    n = e.tanh(np.add(xn, np.multiply(r, hn)))
    return (np.add(np.multiply(np.subtract(state[0], n), z), n),), (r, z, n, hn)


_STEPS: dict[int, Callable[..., tuple[State, Any]]] = {
    RELU: lambda *args: _plain_step(lambda x: e.maximum(x, e.number(0, x)), *args),
    TANH: lambda *args: _plain_step(e.tanh, *args),
    LSTM: _lstm_step,
    GRU: _gru_step,
}


def _input_bias(mode: int, w: Weights) -> Any:
    """The bias that is added before the loop; the GRU's new gate has a bias within the loop, too."""
    if w.b_ih is None or w.b_hh is None:
        return None
    if mode != GRU:
        return np.add(w.b_ih, w.b_hh)
    r, z, n = _columns(w.b_hh, 3)
    return np.add(w.b_ih, concatenate(r, z, zeros(type_of(n)), axis=0))


# ---------------------------------------------------------------- forward


def layer(
    mode: int, x: Any, w: Weights, h: Any, c: Any, active: Any = None, reverse: bool = False, keep: bool = True
) -> tuple[Any, Any, Any, Any]:
    """A layer over all steps.

    Args:
        mode: the kind of layer.
        x: (steps, batch, inputs).
        h, c: the initial states, (batch, hidden); ``c`` for an LSTM only.
        active: (steps, batch, 1), the mask of the steps of each sequence; None if all sequences have all steps.
        reverse: whether to run from the last step to the first.
        keep: whether to return the values that backward needs.

    Returns:
        The states after each step (steps, batch, hidden), the last ``h`` and ``c``, and the gates (steps, batch, gates
        * hidden) followed by an LSTM's ``c``. Results that the mode does not have are empty.
    """
    steps, batch, _ = type_of(x).shape
    gx = _rows(_flat(x), w.ih)
    bias = _input_bias(mode, w)
    gx = gx if bias is None else np.add(gx, bias)
    gx = reshape(gx, shape=(steps, batch, type_of(gx).shape[1]))
    # A training step of two LSTM layers (batch 32, 64 steps, 64 to 128) on two cores, best times relative to this
    # version: transposed within the loop 1.0, one tanh for all gates 1.0, unrolled by two 1.1, by four 1.2, all factors
    # of the backward loop computed before it 1.5; JAX's own derivative of such a loop 1.8, PyTorch's eager step 3.
    w_hh = moved(w.hh, 1, 0)

    def step(state: State, slices: Any) -> Any:
        gx, active = slices
        new, gates = _STEPS[mode](gx, matmul2(state[0], w_hh), state, w)
        new = tuple(_select_active(active, n, s) for n, s in zip(new, state))
        kept = _join(*gates, *new[1:]) if keep and gates else None
        return new, (new[0], kept)

    first = (h, c) if mode == LSTM else (h,)
    last, (out, kept) = scan(step, first, (gx, active), length=steps, reverse=reverse)
    empty = np.zeros((0,), type_of(x).dtype)
    return out, last[0], last[1] if mode == LSTM else empty, empty if kept is None else kept


# ---------------------------------------------------------------- backward


def _plain_backward(mode: int, cts: State, k: StepValues, w: Weights) -> tuple[Any, State]:
    (ct,) = cts
    if mode == TANH:
        return np.multiply(ct, _slope_of_tanh(k.new)), ()
    return np.where(np.greater(k.new, 0), ct, e.number(0, ct)), ()


def _lstm_backward(cts: State, k: StepValues, w: Weights) -> tuple[Any, State]:
    ct, ct_c = cts
    ct = ct if w.hr is None else matmul2(ct, w.hr)
    i, f, g, o, c = _columns(k.gates, 5)
    ct_i, ct_f, ct_g, ct_o, ct_cell = _columns(k.ct_gates, 5) if k.ct_gates is not None else (None,) * 5
    t = e.tanh(c)
    ct_c = accumulate(np.add(ct_c, np.multiply(np.multiply(ct, o), _slope_of_tanh(t))), ct_cell)
    gates = _join(
        np.multiply(accumulate(np.multiply(ct_c, g), ct_i), _slope_of_sigmoid(i)),
        np.multiply(accumulate(np.multiply(ct_c, k.c), ct_f), _slope_of_sigmoid(f)),
        np.multiply(accumulate(np.multiply(ct_c, i), ct_g), _slope_of_tanh(g)),
        np.multiply(accumulate(np.multiply(ct, t), ct_o), _slope_of_sigmoid(o)),
    )
    return gates, (np.multiply(ct_c, f),)


def _gru_backward(cts: State, k: StepValues, w: Weights) -> tuple[Any, State]:
    """The gradients of the pre-activations of r, z and n, and of the factor of r in n."""
    (ct,) = cts
    r, z, n, hn = _columns(k.gates, 4)
    ct_gates = _columns(k.ct_gates, 4) if k.ct_gates is not None else (None,) * 4
    ct_z = np.multiply(accumulate(np.multiply(ct, np.subtract(k.h, n)), ct_gates[1]), _slope_of_sigmoid(z))
    ct_n = np.multiply(accumulate(np.multiply(ct, np.subtract(1.0, z)), ct_gates[2]), _slope_of_tanh(n))
    ct_r = np.multiply(accumulate(np.multiply(ct_n, hn), ct_gates[0]), _slope_of_sigmoid(r))
    return _join(ct_r, ct_z, ct_n, accumulate(np.multiply(ct_n, r), ct_gates[3])), (np.multiply(ct, z),)


def _of_inputs(mode: int, gates: Any) -> Any:
    return _join(*_columns(gates, 4)[:3]) if mode == GRU else gates


def _of_states(mode: int, gates: Any) -> Any:
    if mode != GRU:
        return gates
    r, z, _, n = _columns(gates, 4)
    return _join(r, z, n)


def layer_backward(
    mode: int, x: Any, w: Weights, h: Any, c: Any, active: Any, reverse: bool, out: Any, gates: Any, cts: Sequence[Any]
) -> tuple[Any, Weights, Any, Any]:
    """The gradients of the operands of ``layer``.

    Args:
        mode, x, w, h, c, active, reverse: the arguments of ``layer``.
        out, gates: the first and the last result of ``layer``.
        cts: the gradients of the results; that of the gates may be None.

    Returns:
        The gradients of ``x``, of the weights, of ``h`` and of ``c``.
    """
    ct_out, ct_h, ct_c, ct_gates = cts
    lstm = mode == LSTM
    before = _before(out, h, reverse)
    cells = _before(_columns(gates, 5)[4], c, reverse) if lstm else None
    kept = StepValues(
        before if mode == GRU else None, cells, out if mode in (RELU, TANH) else None,
        *((gates, ct_gates) if mode in (LSTM, GRU) else (None, None)),
    )  # fmt: skip

    def step(state_cts: State, slices: Any) -> Any:
        k, ct, active = slices
        total = (np.add(state_cts[0], ct), *state_cts[1:])
        if lstm:
            grad, direct = _lstm_backward(total, k, w)
        else:
            grad, direct = _gru_backward(total, k, w) if mode == GRU else _plain_backward(mode, total, k, w)
        grad = _select_active(active, grad, e.number(0, grad))
        before_ct = matmul2(_of_states(mode, grad), w.hh)
        if mode == GRU:
            before_ct = np.add(before_ct, direct[0])
        carried = (before_ct, *direct) if lstm else (before_ct,)
        # For sequences that do not have this step, the gradients of the states are unchanged.
        carried = tuple(_select_active(active, new, old) for new, old in zip(carried, total))
        projected = _select_active(active, total[0], e.number(0, total[0])) if w.hr is not None else None
        return carried, (grad, projected)

    last_cts = (ct_h, ct_c) if lstm else (ct_h,)
    first_cts, (grad, projected) = scan(step, last_cts, (kept, ct_out, active), reverse=not reverse)
    of_inputs, of_states = _flat(_of_inputs(mode, grad)), _flat(_of_states(mode, grad))
    grads = Weights(
        _transposed_product(of_inputs, _flat(x)),
        _transposed_product(of_states, _flat(before)),
        None if w.b_ih is None else reduce_sum(of_inputs, axes=(0,)),
        None if w.b_hh is None else reduce_sum(of_states, axes=(0,)),
        None if w.hr is None else _of_projection(projected, gates),
    )
    ct_x = reshape(matmul2(of_inputs, w.ih), shape=type_of(x).shape)
    return ct_x, grads, first_cts[0], first_cts[1] if lstm else None


def _transposed_product(x: Any, y: Any) -> Any:
    """``x.T @ y``, summed over all steps and sequences."""
    return dot(x, y, contract=((0,), (0,)), batch=((), ()))


def _of_projection(ct: Any, gates: Any) -> Any:
    _, _, _, o, c = _columns(gates, 5)
    return _transposed_product(_flat(ct), _flat(np.multiply(o, e.tanh(c))))
