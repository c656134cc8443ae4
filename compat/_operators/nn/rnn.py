"""Recurrent networks: one operator per layer and direction, and stacks of layers.

PyTorch's CPU backend has such an operator for float32 LSTMs. Other networks are folded
(``compat._operators.nn.expanded_nodes``): one operator computes a layer, but its steps are recorded when the graph is
read. In half precision and under autocast the steps are separate operations, since each of these rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms.grad_mode import mode as grad_mode
from compat._core.types import dtype
from compat._core.types.errors import Once, wrong_combination
from compat._operators.nn.expanded_nodes import folded
from compat._operators.nn.packed_sequence import active_steps, pack_rows, row_tables, spread_rows
from compat._operators.nn.rnn_scan import GRU, LSTM, RELU, TANH, Weights, layer, layer_backward
from compat._operators.nn.rnn_steps import layer_in_steps, node_classes
from compat._operators.shape.cat_stack import cat, stack
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape

# ---------------------------------------------------------------- one layer and direction


@aten(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor? weight2, Tensor? weight3, Tensor "
    "hx_, Tensor? cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool "
    "has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    node="MkldnnRnnLayerBackward0",
    saves="input weight0! weight1 weight2! weight3! hx_ cx_ reverse batch_sizes mode hidden_size num_layers "
    "has_biases bidirectional batch_first train result0 result1! result2! result3",
    names="", gradients=Gradients(detached=(3,)),
)  # fmt: skip
def mkldnn_rnn_layer(
    input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers,
    has_biases, bidirectional, batch_first, train,
):  # fmt: skip
    """The states after all steps, the last ``h`` and ``c``, and the gates."""
    return layer(mode, input, Weights(weight0, weight1, weight2, weight3), hx_, cx_, None, reverse)


@mkldnn_rnn_layer.backward
def mkldnn_rnn_layer_backward(
    ct0: Any, ct1: Any, ct2: Any, input: Any, weight0: Any, weight1: Any, weight2: Any, weight3: Any,
    hx_: Any, cx_: Any, reverse: bool, mode: int, result0: Any, result3: Any, ct3: Any = None,
) -> Any:  # fmt: skip
    w = Weights(weight0, weight1, weight2, weight3)
    cts = (ct0, ct1, ct2, ct3)
    x, w, h, c = layer_backward(mode, input, w, hx_, cx_, None, reverse, result0, result3, cts)
    return x, w.ih, w.hh, w.b_ih, w.b_hh, h, c


@aten(
    "rnn_layer(Tensor self, Tensor weight0, Tensor weight1, Tensor? weight2, Tensor? weight3, Tensor? weight4, "
    "Tensor hx, Tensor? cx, Tensor? batch_sizes, bool reverse, int mode, bool keep) -> Tensor",
    node="RnnLayerBackward0",
    saves="input weight0 weight1 weight2 weight3 weight4 hx cx batch_sizes reverse mode result0 result3", names="",
    gradients=Gradients(without="batch_sizes"),
)  # fmt: skip
def rnn_layer(input, weight0, weight1, weight2, weight3, weight4, hx, cx, batch_sizes, reverse, mode, keep):
    """A layer as ``mkldnn_rnn_layer`` for cases that PyTorch composes: packed sequences, projections, no graph."""
    w = Weights(weight0, weight1, weight2, weight3, weight4)
    return layer(mode, input, w, hx, cx, _active(input, batch_sizes), reverse, keep)


def _active(x: Any, batch_sizes: Any) -> Any:
    """The mask of the steps of each sequence, (steps, batch, 1); None if all sequences have all steps."""
    if batch_sizes is None:
        return None
    steps, batch, _ = type_of(x).shape
    return reshape(active_steps(batch_sizes, steps, batch), shape=(steps, batch, 1))


@rnn_layer.backward
def rnn_layer_backward(
    ct0: Any, ct1: Any, ct2: Any, input: Any, weight0: Any, weight1: Any, weight2: Any, weight3: Any,
    weight4: Any, hx: Any, cx: Any, batch_sizes: Any, reverse: bool, mode: int, result0: Any, result3: Any,
    ct3: Any = None,
) -> Any:  # fmt: skip
    w = Weights(weight0, weight1, weight2, weight3, weight4)
    active, cts = _active(input, batch_sizes), (ct0, ct1, ct2, ct3)
    x, w, h, c = layer_backward(mode, input, w, hx, cx, active, reverse, result0, result3, cts)
    return x, w.ih, w.hh, w.b_ih, w.b_hh, w.hr, h, c


# ---------------------------------------------------------------- stacks of layers


class _Packed:
    """The padding of packed sequences, to a number of steps that is rounded up to one of eight per power of two.

    So a layer's program is reused for other sequences; the mask of valid steps is data.
    """

    def __init__(self, batch_sizes: Tensor):
        sizes = array_of(batch_sizes)
        unit = max(1 << (sizes.size - 1).bit_length() >> 4, 1)
        self.unpadded_sizes = sizes.tolist()
        self.steps = -(-sizes.size // unit) * unit
        self.batch = int(sizes[0])
        all_sizes = numpy.pad(sizes, (0, self.steps - sizes.size))
        self.sizes = from_array(all_sizes)
        self.tables = [from_array(table) for table in row_tables(all_sizes)]

    def padded(self, rows: Tensor) -> Tensor:
        return spread_rows.function(rows, *self.tables, self.steps, self.batch)

    def rows(self, padded: Tensor) -> Tensor:
        return pack_rows.function(padded, *self.tables)


class _Network:
    """A recurrent network without its states and weights.

    Attributes:
        packed: the padding of packed sequences; else None.
    """

    def __init__(
        self, mode: int, batch_sizes: Tensor | None, has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ):  # fmt: skip
        self.mode = mode
        self.packed = None if batch_sizes is None else _Packed(batch_sizes)
        self.has_biases = has_biases
        self.num_layers = num_layers
        self.dropout = dropout
        self.train = train
        self.bidirectional = bidirectional
        self.batch_first = batch_first

    def run(self, input: Any, h: Any, c: Any, params: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
        """The states of the last layer after all steps, and the last ``h`` and ``c`` of all layers."""
        projected = c is not None and h.shape[-1] != c.shape[-1]
        groups = self._groups(h, params, (4 if self.has_biases else 2) + projected)
        if self.batch_first:
            input = input.transpose(0, 1)
        if not input.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        fused = self._is_fused(input, projected)
        input = input.contiguous() if fused else input
        hs, cs = _states(h, fused), None if c is None else _states(c, fused)
        directions = 2 if self.bidirectional else 1
        last = []
        for i in range(self.num_layers):
            found = []
            for direction in range(directions):
                n = directions * i + direction
                state = [hs[n]] if cs is None else [hs[n], cs[n]]
                result, *states = self._layer(input, state, groups[n], projected, fused, direction == 1)
                found.append(result)
                last.append(states)
            dim = 2 if self.packed is None and not fused else -1
            input = found[0] if directions == 1 else cat.function(found, dim)
            if self.dropout and self.train and i < self.num_layers - 1:
                input = names_of("torch")["dropout"](input, self.dropout, True)
        if self.batch_first:
            input = input.transpose(0, 1) if self.mode == LSTM else input.transpose_(0, 1)
        last_h, *last_c = (stack.function(states) for states in zip(*last))
        return input, last_h, last_c[0] if last_c else last_h

    def _is_fused(self, input: Tensor, projected: bool) -> bool:
        """Whether PyTorch computes a layer with one operator, too."""
        if self.mode != LSTM or self.packed is not None or input.dtype not in (dtype.float32, dtype.bfloat16):
            return False
        if projected:
            Once.warn("LSTM with projections is not supported with oneDNN. Using default implementation.")
        return not projected

    def _groups(self, h: Tensor, params: Sequence[Any], each: int) -> list[Sequence[Any]]:
        """The parameters of each layer and direction."""
        if self.bidirectional and (len(params) // each % 2 or h.shape[0] % 2):
            raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
        count = self.num_layers * (2 if self.bidirectional else 1)
        if h.shape[0] != count:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
        if len(params) != each * count:
            raise RuntimeError("Expected more weights in stacked_rnn")
        return [params[i : i + each] for i in range(0, len(params), each)]

    def _layer(
        self, input: Tensor, state: Sequence[Tensor], params: Sequence[Any], projected: bool, fused: bool, reverse: bool
    ) -> Sequence[Tensor]:
        """The states after all steps, and the last ``h`` and ``c``."""
        b_ih, b_hh = params[2:4] if self.has_biases else (None, None)
        weights = Weights(params[0], params[1], b_ih, b_hh, params[-1] if projected else None)
        sizes = None if self.packed is None else self.packed.unpadded_sizes
        steps = partial(layer_in_steps, self.mode, reverse, sizes)
        # Autocast, and types that override operators, receive the operations of each step.
        intercepted = grad_mode.autocast is not None or input._overrides_operators_
        if not fused and (intercepted or input.dtype in (dtype.float16, dtype.bfloat16)):
            return steps(input, *weights, *state)
        self._check(input, state[0], params)
        if fused and grad_mode.grad:
            return mkldnn_rnn_layer.function(
                input, *params[:2], b_ih, b_hh, *state, reverse, (), self.mode, params[1].shape[1], self.num_layers,
                self.has_biases, self.bidirectional, self.batch_first, self.train,
            )[:3]  # fmt: skip
        run = partial(self._run_layer, reverse=reverse, keep=bool(grad_mode.grad))
        if not grad_mode.grad:
            return run(input, *weights, *state)
        return folded(run, steps, node_classes(self.mode, projected, sizes, reverse), (input, *weights, *state))

    def _run_layer(self, input: Tensor, *weights_and_state: Any, reverse: bool, keep: bool) -> Sequence[Tensor]:
        packed = self.packed
        padded = input if packed is None else packed.padded(input)
        c = (None,) * (self.mode != LSTM)
        sizes = None if packed is None else packed.sizes
        out, h, last_c, _ = rnn_layer.function(padded, *weights_and_state, *c, sizes, reverse, self.mode, keep)
        out = out if packed is None else packed.rows(out)
        return (out, h, last_c) if self.mode == LSTM else (out, h)

    def _check(self, input: Tensor, h: Tensor, params: Sequence[Any]) -> None:
        w_ih, w_hh = params[:2]
        for t, weight in ((input, w_ih), (h, w_hh)):
            if t.dtype is not weight.dtype and grad_mode.autocast is None:  # autocast casts the operands
                names = f"{t.dtype.scalar_name} and {weight.dtype.scalar_name}"
                raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names}")
        batch = input.shape[1] if self.packed is None else self.packed.batch
        if input.shape[-1] != w_ih.shape[1]:
            rows = input.numel() // max(input.shape[-1], 1)
            a, b = f"{rows}x{input.shape[-1]}", f"{w_ih.shape[1]}x{w_ih.shape[0]}"
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a} and {b})")
        if h.shape[-1] != w_hh.shape[1]:
            a, b = f"{h.shape[0]}x{h.shape[-1]}", f"{w_hh.shape[1]}x{w_hh.shape[0]}"
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a} and {b})")
        if h.shape[0] != batch:
            raise RuntimeError(
                f"The size of tensor a ({h.shape[0]}) must match the size of tensor b ({batch}) at non-singleton "
                "dimension 0"
            )


def _states(states: Tensor, fused: bool) -> Sequence[Tensor]:
    """The states of each layer and direction."""
    return [states.select(0, n) for n in range(states.shape[0])] if fused else states.unbind(0)


def _run(name: str, mode: int, args: tuple, kwargs: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Runs a network, given ``(input, hx, params, ..., batch_first)`` or ``(data, batch_sizes, hx, params, ...)``."""
    common = ["params", "has_biases", "num_layers", "dropout", "train", "bidirectional"]
    given = {**kwargs}
    packed = "batch_sizes" in kwargs or (len(args) > 2 and _is_states(mode, args[2]))
    names = ["data", "batch_sizes", "hx", *common] if packed else ["input", "hx", *common, "batch_first"]
    given |= dict(zip(names, args))
    if len(args) > len(names) or given.keys() != set(names) or len(given) != len(args) + len(kwargs):
        raise wrong_combination(name, args, kwargs)
    input, hx, params = given["data" if packed else "input"], given["hx"], tuple(given["params"])
    if mode == LSTM:
        if len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        h, c = hx
    else:
        h, c = hx, None
    settings = {n: given[n] for n in common[1:]}
    network = _Network(mode, given.get("batch_sizes"), batch_first=given.get("batch_first", False), **settings)
    return network.run(input, h, c, params)


def _is_states(mode: int, value: Any) -> bool:
    if mode == LSTM:
        return isinstance(value, (tuple, list)) and len(value) == 2 and value[0].dim() == 3
    return isinstance(value, Tensor)


@composite(
    "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
    "float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
    "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
    "bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
    names="torch.lstm",
)
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Runs the layers of an LSTM; see ``torch.nn.LSTM``.

    Args:
        args: ``input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional, batch_first``, or for
            packed sequences ``data, batch_sizes, (h, c), params, has_biases, num_layers, dropout, train,
            bidirectional``.

    Returns:
        The states of the last layer after all steps, and the last ``h`` and ``c`` of all layers.

    Raises:
        RuntimeError: for a wrong number of states and weights, and sizes that do not match.

    Example:
        >>> net = torch.nn.LSTM(3, 4)
        >>> states = torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
        >>> out, h, c = torch.lstm(torch.ones(5, 2, 3), states, [*net.parameters()], True, 1, 0.0, True, False, False)
        >>> out.shape, h.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """
    return _run("lstm", LSTM, args, kwargs)


#: The parameters of the schemas of recurrent layers after the weights.
_LAYERS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _declare(name: str, mode: int, module: str) -> None:
    """The functions ``torch.gru``, ``torch.rnn_tanh`` and ``torch.rnn_relu``."""

    def run(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return _run(name, mode, args, kwargs)[:2]

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"Runs the layers of ``torch.nn.{module}``; the arguments are those of ``torch.lstm`` without ``c``."
    composite(
        f"{name}.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, {_LAYERS}) -> (Tensor, Tensor)",
        f"{name}.input(Tensor input, Tensor hx, Tensor[] params, {_LAYERS}, bool batch_first) -> (Tensor, Tensor)",
        names=f"torch.{name}",
    )(run)


_declare("gru", GRU, "GRU")
_declare("rnn_tanh", TANH, "RNN")
_declare("rnn_relu", RELU, "RNN")
