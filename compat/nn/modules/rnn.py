"""Recurrent networks over sequences, and recurrent cells."""

from __future__ import annotations

import math
import numbers
import weakref
from typing import Any

from compat._core.tensor.namespace import torch
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn
from compat.nn import init
from compat.nn._packed_sequence import PackedSequence
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty, filled, requalified
from compat.nn.parameter import Parameter
from funcgrad.core.errors import explained

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _draw(module: Any) -> None:
    """Parameters uniform within ``1 / sqrt(hidden_size)``."""
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


def _check_dropout(dropout: Any, num_layers: int) -> None:
    number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
        )


def _check_sizes(input_size: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


@requalified("forward")
class RNNBase(Module):
    """Base of ``RNN``, ``LSTM`` and ``GRU``: parameters, and checks of inputs.

    Args:
        mode: ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``.
        input_size: the size of the input at each step.
        hidden_size: the size of the hidden state.
        num_layers: the number of layers; each gets the states of the previous one.
        bias: whether to add biases.
        batch_first: whether inputs and outputs are (batch, steps, size) rather than (steps, batch, size).
        dropout: the probability of dropout after each layer but the last.
        bidirectional: whether each layer runs in both directions, with concatenated outputs.
        proj_size: the size of the projection of an LSTM's states; 0 for none.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...: for each layer, and with the suffix ``_reverse`` for
            its other direction; ``weight_hr_l0`` with a projection.

    Raises:
        ValueError: for an invalid size or probability.
        TypeError: for arguments of other types.
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        _check_dropout(dropout, num_layers)
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._add_layer_(layer, suffix, device, dtype)
        self._init_flat_weights()
        self.reset_parameters()

    @property
    def _state_size_(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def _directions_(self) -> int:
        return 2 if self.bidirectional else 1

    def _add_layer_(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        rows = _GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else self._state_size_ * self._directions_
        sizes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, self._state_size_)}
        if self.bias:
            sizes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            sizes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{suffix}" for name in sizes]
        for name, size in zip(names, sizes.values()):
            setattr(self, name, Parameter(empty(size, device, dtype)))
        self._flat_weights_names += names
        self._all_weights.append(names)

    # ---------------------------------------------------------------- the flat list of weights

    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]
        self.flatten_parameters()

    def _update_flat_weights(self) -> None:
        """Updates the list for replaced weights, as by ``functional_call``."""
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                self._init_flat_weights()
                return

    def __setattr__(self, name: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names", ())
        if name in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def flatten_parameters(self) -> None:
        """Has no effect: weights have only one layout here."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def __getstate__(self) -> dict:
        self._update_flat_weights()
        state = self.__dict__.copy()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self._init_flat_weights()

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        _draw(self)

    # ---------------------------------------------------------------- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless an input has the weights' dtype, and the expected rank and size."""
        weight: Any = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise explained(
                RuntimeError(
                    f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
                ),
                "shape-mismatch",
            )

    def _batch_(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return int(input.size(0 if self.batch_first else 1))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The expected size of the initial states ``h``."""
        return self.num_layers * self._directions_, self._batch_(input, batch_sizes), self._state_size_

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises unless states have the expected size."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless the input and the initial states are valid."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States with permuted sequences."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False
        }  # fmt: skip
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text

    # ---------------------------------------------------------------- forward

    def _zeros_(self, input: Tensor, batch: int, size: int) -> Tensor:
        return filled((self.num_layers * self._directions_, batch, size), 0.0, input.device, input.dtype)

    def _first_(self, input: Tensor, batch: int) -> Any:
        """The default initial states."""
        return self._zeros_(input, batch, self._state_size_)

    def _check_dims_(self, input: Tensor, hx: Any) -> None:
        """Raises unless an unpacked input and the states have the right ranks."""
        if input.dim() not in (2, 3):
            kind, _, plain = self.mode.partition("_")
            got = f"{input.dim()}D{' tensor' if plain else ''}"
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {got} instead")
        if hx is not None:
            self._check_state_dims_(input.dim() == 3, hx)

    def _check_state_dims_(self, batched: bool, hx: Any) -> None:
        if hx.dim() != (3 if batched else 2):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {3 if batched else 2}-D but got {hx.dim()}-D tensor"
            )

    def forward(self, input: Any, hx: Any = None) -> Any:
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._packed_(input, hx)
        self._check_dims_(input, hx)
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else _each(hx, lambda h: h.unsqueeze(1))
        hx = self._first_(input, input.size(batch_dim)) if hx is None else hx
        self.check_forward_args(input, hx, None)
        result = self._function_()(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip
        out, last = result[0], result[1] if len(result) == 2 else tuple(result[1:])
        return (out, last) if batched else (out.squeeze(batch_dim), _each(last, lambda h: h.squeeze(1)))

    def _packed_(self, sequence: PackedSequence, hx: Any) -> Any:
        input, batch_sizes, sorted_indices, unsorted_indices = sequence
        if hx is None:
            hx = self._first_(input, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        result = self._function_()(
            input, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        last = result[1] if len(result) == 2 else tuple(result[1:])
        packed = PackedSequence(result[0], batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(last, unsorted_indices)

    def _function_(self) -> Any:
        return getattr(torch, self.mode.lower())


def _each(states: Any, f: Any) -> Any:
    return tuple(f(s) for s in states) if isinstance(states, (tuple, list)) else f(states)


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Layers of ``h = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``, or ``relu``, over sequences.

    Arguments are those of ``RNNBase`` without the mode, with ``nonlinearity``, ``"tanh"`` or ``"relu"``, after
    ``num_layers``.

    Example:
        >>> out, h = torch.nn.RNN(3, 4, num_layers=2)(torch.ones(5, 2, 3))
        >>> out.shape, h.shape
        (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        _refuse_projection(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = (*args[:3], *args[4:])
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class GRU(RNNBase):
    """Layers of gated recurrent units over sequences; arguments are those of ``RNNBase`` without the mode.

    Source: K. Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014; the reset gate
    multiplies the product of the state and its weights.

    Example:
        >>> out, h = torch.nn.GRU(3, 4, batch_first=True, bidirectional=True)(torch.ones(5, 2, 3))
        >>> out.shape, h.shape
        (torch.Size([5, 2, 8]), torch.Size([2, 5, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Layers of long short-term memory over sequences; arguments are those of ``RNNBase`` without the mode.

    Sources: S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 1997; F. Gers et al.,
    "Learning to forget", 2000; for ``proj_size`` H. Sak et al., "Long short-term memory based recurrent neural network
    architectures", 2014.

    Example:
        >>> out, (h, c) = torch.nn.LSTM(3, 4)(torch.ones(5, 2, 3))
        >>> out.shape, h.shape, c.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The expected size of the initial states ``c``."""
        return self.num_layers * self._directions_, self._batch_(input, batch_sizes), self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        return hx if permutation is None else _each(hx, lambda h: h.index_select(1, permutation))

    def _first_(self, input: Tensor, batch: int) -> Any:
        return self._zeros_(input, batch, self._state_size_), self._zeros_(input, batch, self.hidden_size)

    def _check_state_dims_(self, batched: bool, hx: Any) -> None:
        wanted = 3 if batched else 2
        if hx[0].dim() != wanted or hx[1].dim() != wanted:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )


# ---------------------------------------------------------------- cells


class RNNCellBase(Module):
    """Base of recurrent cells.

    Args:
        input_size, hidden_size: the sizes of an input and of a state.
        bias: whether to add biases.
        num_chunks: the number of gates.
    """

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device, dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device, dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty((rows,), device, dtype)) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        _draw(self)

    def _checked_(self, input: Any, states: Any, names: Any) -> tuple[Any, Any, bool]:
        """The input and the states with a batch dimension, and whether the input had one."""
        kind = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for name, state in zip(names, states or ()):
            if state.dim() not in (1, 2):
                raise ValueError(f"{kind}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if states is None:
            zeros = filled((input.size(0), self.hidden_size), 0.0, input.device, input.dtype)
            return input, [zeros] * len(names), batched
        return input, [s if batched else s.unsqueeze(0) for s in states], batched

    def _step_(self, function: str, input: Any, hx: Any) -> Any:
        return getattr(torch, function)(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def _step_of_one_state_(self, function: str, input: Any, hx: Any) -> Any:
        input, states, batched = self._checked_(input, None if hx is None else [hx], ["hidden"])
        result = self._step_(function, input, states[0])
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an ``RNN``.

    Args:
        input_size, hidden_size, bias: as for ``RNN``.
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Example:
        >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step_of_one_state_(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of an ``LSTM``; takes and returns ``(h, c)``.

    Example:
        >>> h, c = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        input, states, batched = self._checked_(input, hx, ["hx[0]", "hx[1]"])
        h, c = self._step_("lstm_cell", input, states)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a ``GRU``.

    Example:
        >>> torch.nn.GRUCell(3, 4)(torch.ones(3)).shape
        torch.Size([4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step_of_one_state_("gru_cell", input, hx)
