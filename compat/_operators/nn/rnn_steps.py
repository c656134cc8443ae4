"""Recurrent layers in one direction, composed step by step as in PyTorch on the CPU.

They determine the graphs of networks that ``compat._operators.nn.rnn_scan`` computes as one program per layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.activation.piecewise import relu
from compat._operators.linalg.matmul import linear, matmul, mm
from compat._operators.nn.rnn_cells import gru_step, lstm_step, plain_step
from compat._operators.nn.rnn_scan import GRU, LSTM, RELU, Weights
from compat._operators.pointwise.arithmetic import add, mul
from compat._operators.pointwise.trigonometry import tanh
from compat._operators.shape.cat_stack import cat, stack
from compat._operators.view.slicing import narrow

State = tuple[Tensor, ...]


def _step(mode: int, gates: Tensor, state: State, w: Weights) -> State:
    """The next state, given the contribution of the input to the gates."""
    if mode == GRU:
        return (gru_step(lambda: gates, state[0], w.hh, w.b_hh),)
    if mode == LSTM:
        h, c = lstm_step(lambda: gates, state[0], state[1], w.hh, w.b_hh)
        return h if w.hr is None else matmul(h, w.hr.t()), c
    return (plain_step((relu if mode == RELU else tanh).function, lambda: gates, state[0], w.hh, w.b_hh),)


def layer_in_steps(
    mode: int, reverse: bool, sizes: Sequence[int] | None, input: Tensor, *weights_and_state: Any
) -> State:
    """A layer over all steps.

    Args:
        reverse: whether to run from the last step to the first.
        sizes: for packed sequences, the number of sequences at each step; else None.
        input: (steps, batch, inputs), or of packed sequences (rows, inputs).
        weights_and_state: ``Weights``, the first ``h``, and an LSTM's ``c``.

    Returns:
        The states after each step, and the last ``h`` and ``c``.
    """
    count = len(Weights._fields)
    w, state = Weights(*weights_and_state[:count]), weights_and_state[count:]
    gates = linear(input, w.ih, w.b_ih)
    if sizes is not None:
        return (_from_last if reverse else _from_first)(mode, gates, sizes, w, state)
    found = []
    steps: Sequence[Tensor] = gates.unbind(0)
    for step in reversed(steps) if reverse else steps:
        state = _step(mode, step, state, w)
        found.append(state[0])
    return stack.function(found[::-1] if reverse else found, 0), *state


def _from_first(mode: int, gates: Tensor, sizes: Sequence[int], w: Weights, state: State) -> State:
    """Packed sequences, from the first step: the last states of shorter ones, which end earlier, are collected."""
    found, ended, begin = [], [], 0
    for i, size in enumerate(sizes):
        if i and size < sizes[i - 1]:
            ended.append(tuple(narrow(s, 0, size, sizes[i - 1] - size) for s in state))
            state = tuple(narrow(s, 0, 0, size) for s in state)
        state = _step(mode, narrow(gates, 0, begin, size), state, w)
        found.append(state[0])
        begin += size
    ended = [state, *reversed(ended)]
    last = [parts[0] if len(ended) == 1 else cat.function(parts, 0) for parts in zip(*ended)]
    return cat.function(found, 0), *last


def _from_last(mode: int, gates: Tensor, sizes: Sequence[int], w: Weights, first: State) -> State:
    """Packed sequences, from the last step: shorter ones start later, with their initial states."""
    found, end, before = [], gates.shape[0], sizes[-1]
    state = tuple(narrow(s, 0, 0, before) for s in first)
    for size in reversed(sizes):
        if size > before:
            state = tuple(cat.function([s, narrow(f, 0, before, size - before)], 0) for s, f in zip(state, first))
        state = _step(mode, narrow(gates, 0, end - size, size), state, w)
        found.append(state[0])
        end, before = end - size, size
    return cat.function(found[::-1], 0), *state


def node_classes(mode: int, projected: bool, sizes: Sequence[int] | None, reverse: bool) -> list[type]:
    """The classes of the nodes of the results of ``layer_in_steps``."""
    state: list[Any] = [mm if projected else mul, add] if mode == LSTM else [{GRU: add, RELU: relu}.get(mode, tanh)]
    if sizes is not None and not reverse and sizes[-1] < sizes[0]:
        state = [cat] * len(state)
    return [(stack if sizes is None else cat).node, *(op.node for op in state)]
