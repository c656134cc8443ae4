"""Single steps of recurrent networks, composed of other operations, as in PyTorch on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._operators.linalg.matmul import linear
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import slice_


@aten(
    "_unsafe_split(Tensor self, int split_size, int dim, int count) -> Tensor",
    node="UnsafeSplitBackward0", saves="self.sym_sizes split_size dim", names="",
)  # fmt: skip
def _unsafe_split(input, split_size, dim, count):
    """Parts of equal size along a dimension, as copies."""
    shape = type_of(input).shape
    parts = []
    for i in range(count):
        start, limit = [0] * len(shape), list(shape)
        start[dim], limit[dim] = i * split_size, (i + 1) * split_size
        parts.append(slice_(input, start=tuple(start), limit=tuple(limit), strides=(1,) * len(shape)))
    return parts


def _chunks(gates: Tensor, n: int) -> Sequence[Any]:
    return _unsafe_split.function(gates, gates.shape[1] // n, 1, n)


def _check(input: Tensor, h: Tensor, c: Tensor | None, w_ih: Tensor, w_hh: Tensor) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    for i, state in enumerate((h,) if c is None else (h, c)):
        if input.shape[0] != state.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {state.shape[0]}")
        if state.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {state.shape[1]}, expected {w_hh.shape[1]}"
            )


@composite(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
    "Tensor? b_hh=None) -> (Tensor, Tensor)",
    names="torch.lstm_cell",
)
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM.

    Args:
        input: (batch, inputs).
        hx: ``h`` and ``c``, each (batch, hidden).
        w_ih, w_hh, b_ih, b_hh: rows for the input, forget, cell and output gates.

    Returns:
        The next ``h`` and ``c``.

    Raises:
        RuntimeError: for sizes that do not match.

    Example:
        >>> h, c = torch.lstm_cell(torch.ones(2, 3), [torch.zeros(2, 1)] * 2, torch.ones(4, 3), torch.ones(4, 1))
        >>> h.shape
        torch.Size([2, 1])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = hx
    _check(input, h, c, w_ih, w_hh)
    return lstm_step(lambda: linear(input, w_ih, b_ih), h, c, w_hh, b_hh)


def lstm_step(of_input: Callable[[], Tensor], h: Tensor, c: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Any:
    """The next ``h`` and ``c`` of an LSTM; ``of_input`` returns the contribution of the input to the gates."""
    gates: Any = linear(h, w_hh, b_hh) + of_input()
    i, f, g, o = _chunks(gates, 4)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    next_c: Any = f * c + i * g
    return o * next_c.tanh(), next_c


@composite(
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    names="torch.gru_cell",
)
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU; as ``lstm_cell``, with one state, and rows for the reset, update and new gates."""
    _check(input, hx, None, w_ih, w_hh)
    return gru_step(lambda: linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def gru_step(of_input: Callable[[], Tensor], h: Any, w_hh: Tensor, b_hh: Tensor | None) -> Any:
    """The next state of a GRU; ``of_input`` returns the contribution of the input to the gates."""
    x, y = _chunks(of_input(), 3), _chunks(linear(h, w_hh, b_hh), 3)
    reset = (y[0] + x[0]).sigmoid()
    update = (y[1] + x[1]).sigmoid()
    new = (x[2] + y[2] * reset).tanh()
    return (h - new) * update + new


def plain_step(
    activation: Callable[[Any], Tensor], of_input: Callable[[], Tensor], h: Tensor, w_hh: Tensor, b_hh: Tensor | None
) -> Tensor:
    """The next state of a plain recurrent network; ``of_input`` returns the contribution of the input."""
    return activation(linear(h, w_hh, b_hh) + of_input())


def _plain(name: str, activation: Callable[[Any], Tensor]) -> None:
    """The functions ``torch.rnn_tanh_cell`` and ``torch.rnn_relu_cell``."""

    def cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        _check(input, hx, None, w_ih, w_hh)
        return plain_step(activation, lambda: linear(input, w_ih, b_ih), hx, w_hh, b_hh)

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = "One step of a plain recurrent network; as ``lstm_cell``, with one state and one gate."
    composite(
        f"{name}(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        names=f"torch.{name}",
    )(cell)


_plain("rnn_tanh_cell", lambda x: x.tanh())
_plain("rnn_relu_cell", lambda x: x.relu())
