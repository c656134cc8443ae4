"""The dispatcher: the layers that a call of an operator goes through before its plan runs.

A call looks up a plan by its arguments. Two things prevent that it finds one: an entered mode (``active``, one
comparison in every call), and the layout of a tensor whose type overrides operators, for which no plan is made. Such a
call, and a call without a cached plan, goes through the layers in this order. A layer that takes a call returns its
result, or calls the layers below it:

    profiler    records the call                                       compat.profiler
    autocast    casts the arguments, and dispatches the call again     compat.amp
    mode        calls the innermost ``TorchDispatchMode``              compat._core.dispatch.dispatch_mode
    subclass    calls ``__torch_dispatch__`` of types                  compat._core.dispatch.torch_dispatch
    layout      calls the rules of sparse and nested tensors           compat._core.dispatch.layout_tensor
    the plan    is made for the layouts of the arguments and run       compat._core.operators.op

A layer is added when it is first needed, so plain programs have none. Functions that are not declared operators but are
dispatched nevertheless (``SEEN``: factories, random fills, and conversions to Python numbers) check whether there are
layers.
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

#: All possible layers, the outermost first.
ORDER = ("profiler", "autocast", "mode", "subclass", "layout")


class Active:
    """The number of entered modes that intercept operators, in all threads together."""

    __slots__ = ("modes",)

    def __init__(self) -> None:
        self.modes = 0


active = Active()
_lock = threading.Lock()


@contextmanager
def all_calls() -> Iterator[None]:
    """Context in which every call goes through the layers, whatever its arguments."""
    with _lock:
        active.modes += 1
    try:
        yield
    finally:
        with _lock:
            active.modes -= 1


class Function(NamedTuple):
    """A public function that is not a declared operator, by its address, ``"torch.zeros"``."""

    address: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition(".")[2]


class Call(NamedTuple):
    """A call of an operator.

    Attributes:
        operator: the declared operator, or a ``Function``.
        function: the called function.
        inplace: whether it writes into the first argument.
        args: the arguments by parameter; for a ``Function`` the positional ones.
        out: the argument ``out``, if given.
        named: arguments given by an alias of a parameter; for a ``Function`` the keyword arguments.
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
        """All arguments."""
        return [self.args, self.out, self.named]


class Layer(NamedTuple):
    """A layer.

    Attributes:
        name: one of ``ORDER``.
        takes: whether the layer takes a call.
        run: runs a call; its second argument continues with the layers below.
    """

    name: str
    takes: Callable[[Call], bool]
    run: Callable[[Call, Callable[[], Any]], Any]


#: The layers added so far, the outermost first.
layers: list[Layer] = []


def add_layer(name: str, takes: Callable[[Call], bool], run: Callable[[Call, Callable[[], Any]], Any]) -> None:
    """Adds a layer, unless there is one of that name."""
    with _lock:
        if all(layer.name != name for layer in layers):
            layers.append(Layer(name, takes, run))
            layers.sort(key=lambda layer: ORDER.index(layer.name))


def dispatch(call: Call, place: int = 0) -> Any:
    """Runs a call by the first layer from ``place`` on that takes it, or by its plan."""
    for i in range(place, len(layers)):
        if layers[i].takes(call):
            return layers[i].run(call, partial(dispatch, call, i + 1))
    return call.run(call.args, call.out, call.named)


# ---------------------------------------------------------------- operators

#: The declared operators of the modules that are imported so far.
operators: list[Any] = []
#: Overrides by modes, subclasses and layouts of programs without a declaration: of a kernel, such as a derivative
#: (``compat._core.operators.kernel``), returning None to decline; and of an optimizer's jobs, returning those that they
#: leave (``compat._operators.tensor.multi_tensor``).
kernel_overrides: list[Callable[[Any, Sequence[Any]], Sequence[Any] | None]] = []
job_overrides: list[Callable[[Sequence[Any], Callable[[Sequence[Any]], None]], Sequence[Any]]] = []


def every() -> list[Any]:
    """All declared operators."""
    load_all()
    return operators


# ---------------------------------------------------------------- functions that are no declared operators

FILLING = ("uniform_", "normal_", "random_", "exponential_", "bernoulli_", "cauchy_", "geometric_", "log_normal_")
#: Factories with the size and dtype of another tensor.
LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
NEW = ("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided")
_MADE = (
    "zeros", "ones", "empty", "rand", "randn", "full", "empty_strided", "scalar_tensor", "linspace", "logspace",
    "randperm", "arange", "eye", "randint", "tril_indices", "triu_indices",
)  # fmt: skip
FACTORIES = frozenset([*_MADE, *LIKE, *NEW])
_TAKEN = ("item", "__bool__", "__int__", "__float__", "__complex__", "__index__", "data_ptr")
#: Functions that make tensors of data, which modes intercept as ``lift_fresh`` of the result.
LIFTED = frozenset(("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "new_tensor"))
_MORE = ("nonzero", "detach", "set_", "__deepcopy__", "__reduce_ex__", "as_subclass", "new_tensor")
#: Composites that draw random numbers or depend on values, and have one overload.
OF_VALUES = (
    "masked_select", "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "bincount",
    "_unique2", "unique_dim", "unique_consecutive", "equal", "allclose",
)  # fmt: skip
_VALUED = (*OF_VALUES, "normal", "bernoulli", "repeat_interleave", "native_batch_norm")
#: The addresses of the dispatched functions.
SEEN = frozenset(
    [f"{place}.{name}" for place in ("torch", "Tensor") for name in _VALUED]
    + [f"torch.{name}" for name in (*_MADE, *LIKE, "nonzero", *LIFTED)]
    + [f"Tensor.{name}" for name in (*FILLING, *NEW, *_TAKEN, *_MORE)]
)


def through_layers(function: Any, place: str, name: str) -> Any:
    """A public function; dispatched, if its address is in ``SEEN``."""
    address = f"{place}.{name}"
    if address not in SEEN or not isinstance(function, FunctionType):
        return function
    of_data = name in LIFTED  # whose arguments, which may be long lists, only modes are interested in

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not layers or (of_data and not active.modes):
            return function(*args, **kwargs)
        return dispatch_function(address, call, function, args, kwargs)

    return call


def dispatch_function(
    address: str, called: Callable[..., Any], plain: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Runs a call of a function that is not a declared operator by the layers, or by ``plain``."""

    def run(args: Sequence[Any], out: Any, named: dict[str, Any] | None) -> Any:
        return plain(*args, **(named or {}))

    inplace = address.endswith("_") and not address.endswith("__")
    return dispatch(Call(Function(address), called, inplace, args, None, kwargs, run))


publishing.insert(0, through_layers)
for _name in [name for name in vars(Tensor) if f"Tensor.{name}" in SEEN]:  # methods that are not published later
    setattr(Tensor, _name, through_layers(vars(Tensor)[_name], "Tensor", _name))

__all__ = [
    "Call", "Function", "Layer", "active", "add_layer", "all_calls", "dispatch", "dispatch_function",
    "every", "job_overrides", "kernel_overrides", "layers", "operators", "through_layers",
]  # fmt: skip
