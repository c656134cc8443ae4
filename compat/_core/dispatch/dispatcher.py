"""The dispatcher: the layers that a call of an operator goes through before its plan runs.

A call looks for a plan by what its arguments are. Two things keep it from finding one: a mode that is entered
(``active``, one comparison in every call), and the layout of a tensor whose type overrides operators: no plan is made
for that. Such a call, and one of a kind not seen before, goes through the layers in this order. Each that takes it says
what it gives, or has the layers below it say so:

    profiler    a profiler notes the call                              compat.profiler
    autocast    arguments are cast, and the call begins again          compat._core.dispatch.autocast
    mode        the innermost ``TorchDispatchMode``                    compat._core.dispatch.dispatch_mode
    subclass    the types that have ``__torch_dispatch__``             compat._core.dispatch.torch_dispatch
    layout      sparse and nested tensors                              compat._core.dispatch.layout_tensor
    the plan    made for the layouts of the arguments, kept and run    compat._core.operators.op

A layer is added when the first thing that needs it is made, so plain programs have none. Functions that are no declared
operators, but that layers see (``SEEN``: what makes tensors of nothing, fills them, draws, or takes numbers out of
them), ask whether there are layers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from types import FunctionType
from typing import Any, NamedTuple

from compat._core.tensor.registry import load_all, publishing
from compat._core.tensor.tensor import Tensor

#: The layers there may be, the outermost first.
ORDER = ("profiler", "autocast", "mode", "subclass", "layout")


class Active:
    """How many modes that see operators are entered, in all threads together."""

    __slots__ = ("modes",)

    def __init__(self) -> None:
        self.modes = 0


active = Active()
_lock = threading.Lock()


@contextmanager
def all_calls() -> Iterator[None]:
    """Within it every call goes through the layers, whatever its arguments are."""
    with _lock:
        active.modes += 1
    try:
        yield
    finally:
        with _lock:
            active.modes -= 1


class Function(NamedTuple):
    """A public function that is no declared operator, by its address, ``"torch.zeros"``."""

    address: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition(".")[2]


class Call(NamedTuple):
    """A call of an operator.

    Attributes:
        operator: its declaration, or a ``Function``.
        function: what was called.
        inplace: whether that writes into the first argument.
        args: the arguments by parameter; those by position of a ``Function``.
        out: what the result is to be written into, if it was given.
        named: arguments given under other names than the parameters'; those by name of a ``Function``.
        run: runs the plan of ``(args, out, named)``.
    """

    operator: Any
    function: Callable[..., Any]
    inplace: bool
    args: Sequence[Any]
    out: Any
    named: dict[str, Any] | None
    run: Callable[[Sequence[Any], Any, Any], Any]

    @property
    def values(self) -> list[Any]:
        """All that was given."""
        return [self.args, self.out, self.named]


class Layer(NamedTuple):
    """A layer.

    Attributes:
        name: one of ``ORDER``.
        takes: whether a call is for it.
        run: what it makes of a call; its second argument goes on with the layers below.
    """

    name: str
    takes: Callable[[Call], bool]
    run: Callable[[Call, Callable[[], Any]], Any]


#: Those that there are, the outermost first.
layers: list[Layer] = []


def add_layer(name: str, takes: Callable[[Call], bool], run: Callable[[Call, Callable[[], Any]], Any]) -> None:
    """Adds a layer; one that is there already stays."""
    with _lock:
        if all(layer.name != name for layer in layers):
            layers.append(Layer(name, takes, run))
            layers.sort(key=lambda layer: ORDER.index(layer.name))


def dispatch(call: Call, place: int = 0) -> Any:
    """What a call gives: by the first of the layers from ``place`` on that takes it, else by its plan."""
    for i in range(place, len(layers)):
        if layers[i].takes(call):
            return layers[i].run(call, partial(dispatch, call, i + 1))
    return call.run(call.args, call.out, call.named)


# ---------------------------------------------------------------- operators

#: The declared operators of the modules that are imported so far.
operators: list[Any] = []
#: What modes, subclasses and layouts make of programs without a declaration: of a kernel, such as a derivative, and its
#: values (``compat._core.operators.kernel``), None where they have nothing to say; and of the rows that an optimizer
#: writes, those that are left for the program that writes the others (``compat._core.operators.multi_tensor``).
kernel_overrides: list[Callable[[Any, Sequence[Any]], Sequence[Any] | None]] = []
job_overrides: list[Callable[[Sequence[Any], Callable[[Sequence[Any]], None]], Sequence[Any]]] = []


def every() -> list[Any]:
    """All declared operators."""
    load_all()
    return operators


# ---------------------------------------------------------------- functions that are no declared operators

_FILLING = "uniform_ normal_ random_ exponential_ bernoulli_ cauchy_ geometric_ log_normal_"
_LIKE = "zeros_like ones_like empty_like full_like rand_like randn_like randint_like"
_MADE = "zeros ones empty rand randn full empty_strided scalar_tensor linspace logspace randperm arange eye randint"
_NEW = "new_zeros new_ones new_empty new_full new_empty_strided"
_TAKEN = "item __bool__ __int__ __float__ __complex__ numpy tolist data_ptr"
_MORE = "nonzero detach set_ __deepcopy__ __reduce_ex__ as_subclass"
#: Composites that draw or look at values; those of them that have one overload for modes.
OF_VALUES = (
    "masked_select", "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "bincount",
    "_unique2", "unique_dim", "unique_consecutive",
)  # fmt: skip
_VALUED = (*OF_VALUES, "normal", "bernoulli", "repeat_interleave", "native_batch_norm")
#: The addresses of those that layers see.
SEEN = frozenset(
    [f"{place}.{name}" for place in ("torch", "Tensor") for name in _VALUED]
    + [f"torch.{name}" for name in f"{_MADE} {_LIKE}".split()]
    + [f"Tensor.{name}" for name in f"{_FILLING} {_NEW} {_TAKEN} {_MORE}".split()]
)


def through_layers(function: Any, place: str, name: str) -> Any:
    """A public function, going through the layers if it is one of those that they see."""
    address = f"{place}.{name}"
    if address not in SEEN or not isinstance(function, FunctionType):
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not layers:
            return function(*args, **kwargs)
        return dispatch_function(address, call, function, args, kwargs)

    return call


def dispatch_function(
    address: str, called: Callable[..., Any], plain: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What a call of a function that is no declared operator gives: by the layers, else by ``plain``."""

    def run(args: Sequence[Any], out: Any, named: dict[str, Any] | None) -> Any:
        return plain(*args, **(named or {}))

    inplace = address.endswith("_") and not address.endswith("__")
    return dispatch(Call(Function(address), called, inplace, args, None, kwargs, run))


publishing.insert(0, through_layers)
for _name in [name for name in vars(Tensor) if f"Tensor.{name}" in SEEN]:  # those that are there already
    setattr(Tensor, _name, through_layers(vars(Tensor)[_name], "Tensor", _name))

__all__ = [
    "Call", "Function", "Layer", "active", "add_layer", "all_calls", "dispatch", "dispatch_function",
    "every", "job_overrides", "kernel_overrides", "layers", "operators", "through_layers",
]  # fmt: skip
