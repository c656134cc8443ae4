"""``__torch_dispatch__`` of types: the layer of subclasses that override operators, below autograd.

A program without such types pays nothing for them. A tensor of such a type has an ``OverriddenLayout``, for which no
plan is made, so every call with it goes through the layers of the dispatcher; the layer of this module calls
``__torch_dispatch__``.

Autograd is above it, as in PyTorch: the operation is recorded on the operands without the override, and the type's
result then takes the place of the recorded one in the graph. The recorded result is never computed: the storage of a
tensor made by ``Tensor._make_wrapper_subclass`` has a type only, as on the device ``meta``, and operations on others
are deferred. An operation's derivative is intercepted as one operation, ``aten.mul_backward.default``; so is an
optimizer's update of one parameter.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from compat._core.dispatch.dispatch_mode import overload_called, shown_call
from compat._core.dispatch.dispatched_duals import pushed, pushing
from compat._core.dispatch.dispatcher import (
    FILLING,
    LIKE,
    NEW,
    OF_VALUES,
    Call,
    Function,
    add_layer,
    job_overrides,
    kernel_overrides,
)
from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import (
    Declined,
    OverriddenLayout,
    Shown,
    _disabled_torch_dispatch_impl,
    answer,
    answer_of_mode,
    class_overrides_operators,
    overridden_layout,
    owners,
    state,
)
from compat._core.dispatch.recorded_results import overridden, with_history, written
from compat._core.memory.strides import Layout
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import load_all
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import OverridableProperty, disabled, when_subclassed
from compat._core.tensor.torch_function import enable as enable_functions
from compat._core.tensor.tracing import tensors_in
from compat._core.tensor.version_counter import VersionCounter
from compat._core.transforms.grad_mode import mode
from funcgrad.core.caching import memoized

# ---------------------------------------------------------------- layouts


_slot: Any = Tensor.__dict__["_layout_"]


def _read_layout(t: Tensor) -> Layout:
    layout: Layout = _slot.__get__(t)
    return layout if state.below else overridden_layout(layout)


def _write_layout(t: Tensor, layout: Layout) -> None:
    _slot.__set__(t, layout.plain if type(layout) is OverriddenLayout else layout)


# ---------------------------------------------------------------- calls


def _overridden(call: Call) -> bool:
    """Whether the type of a tensor among the arguments overrides operators; for a ``Function``, of the first one."""
    if isinstance(call.operator, Function):
        first = call.args[0] if call.args else None
        return isinstance(first, Tensor) and type(first._layout_) is OverriddenLayout
    return any(isinstance(t, Tensor) and type(t._layout_) is OverriddenLayout for t in tree_leaves(call.values))


def _override(call: Call, below: Callable[[], Any]) -> Any:
    """The layer of subclasses: calls ``__torch_dispatch__`` of the types of a call's tensors."""
    if isinstance(call.operator, Function):
        return _override_function(call, below)
    asked = owners(call.values)
    if not asked:
        for t in tree_leaves(call.values):
            if type(t) is Tensor:
                _write_layout(t, t._layout_)  # removes an ``OverriddenLayout`` copied from another tensor
        return below()
    overload = overload_called(call)
    called, shown, keywords = shown_call(call)
    ask = partial(answer, asked, overload, called, shown, keywords)
    if pushing([shown, keywords]):
        ask = partial(pushed, overload, call.inplace, called, shown, keywords)
    return overridden(call, below, ask)


def _override_function(call: Call, below: Callable[[], Any]) -> Any:
    asked, handler = owners(call.args[:1]), HANDLERS.get(call.operator.address)
    if not asked or handler is None:
        return below()

    def plain(*args: Any, **kwargs: Any) -> Any:
        return call.run(args, None, kwargs)

    return handler(plain, asked, *call.args, **(call.named or {}))


# ---------------------------------------------------------------- programs


@memoized("derivatives shown", 2048)
def _derivative(kernel: Any) -> Shown:
    """The overload by which the derivative of an operation is intercepted."""

    def run(*values: Any) -> Any:
        found = tuple(kernel.call(values))
        return found[0] if len(found) == 1 else found

    return Shown(kernel.name, run, kernel)


def _backward(kernel: Any, values: Sequence[Any]) -> Sequence[Any] | None:
    """The results of a kernel by the innermost mode or by the types of values; None if there is neither."""
    asked = owners(list(values))
    if not asked and not state.modes:
        return None
    shown = _derivative(kernel)
    if state.modes:
        with suppress(Declined):
            return _gradients(answer_of_mode(shown, shown._run, tuple(values), {}))
    ask = partial(answer, asked, shown, shown._run, tuple(values), {})
    if pushing(values):
        ask = partial(pushed, shown, False, shown._run, tuple(values), {})
    wanted = bool(mode.grad) and any(t.requires_grad for t in tensors_in(list(values)))
    found = with_history(values, partial(kernel.call, values), ask) if wanted else ask()
    return _gradients(found)


def _gradients(found: Any) -> list[Tensor | None]:
    return [t for t in (found if isinstance(found, (tuple, list)) else [found]) if t is None or isinstance(t, Tensor)]


@functools.cache
def show_backward() -> None:
    """Makes modes and types intercept derivatives."""
    kernel_overrides.append(_backward)


def _each_row(jobs: Sequence[Any], write: Callable[[Sequence[Any]], None]) -> Sequence[Any]:
    """Runs the rows of an optimizer whose types override operators; returns the jobs of the others."""
    rest = []
    for job in jobs:
        others = []
        for row in job.rows:
            asked = owners(list(row))
            if asked:
                run = lambda *row, job=job: write([job._replace(rows=[row])])
                answer(asked, Shown(f"{job.rule.__name__.strip('_')}_", run), run, tuple(row), {})
            else:
                others.append(row)
        rest.append(job._replace(rows=others))
    return [job for job in rest if job.rows]


# ---------------------------------------------------------------- types


#: Handlers of functions that are not declared operators, by address: called with the function without overrides, one
#: tensor #: of each overriding type, and the arguments.
HANDLERS: dict[str, Callable[..., Any]] = {}


def _shown_as(shown: str) -> Callable[..., Any]:
    """A handler that calls ``__torch_dispatch__`` of the first argument's type, without recording."""
    name, _, overload = shown.partition(".")

    def call(plain: Any, asked: list[Tensor], *args: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        made = answer(asked, aten.packet(name).overload(overload), plain, args, kwargs)
        if name == "detach" and isinstance(made, Tensor):
            made._counter_ = args[0]._counter_
        return made.requires_grad_() if requires_grad else made

    return call


def _filled_as(shown: str) -> Callable[..., Any]:
    """``_shown_as`` for a function that writes into its first argument."""
    ask = _shown_as(shown)

    def call(plain: Any, asked: list[Tensor], self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        written(self, lambda: None, partial(ask, plain, asked, self, *args, **kwargs), False)
        return self

    return call


def _number(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda plain, asked, t: kind(t.item())


for _name in ("detach", *NEW):
    HANDLERS[f"Tensor.{_name}"] = _shown_as(f"{_name}.default")
HANDLERS["Tensor.item"] = _shown_as("_local_scalar_dense.default")
for _name in FILLING:
    HANDLERS[f"Tensor.{_name}"] = _filled_as(f"{_name}.default")
HANDLERS["Tensor.set_"] = _filled_as("set_.source_Tensor")
for _name in LIKE:
    HANDLERS[f"torch.{_name}"] = _shown_as(f"{_name}.default")
for _name in OF_VALUES:
    HANDLERS[f"torch.{_name}"] = HANDLERS[f"Tensor.{_name}"] = _shown_as(f"{_name}.default")
HANDLERS["Tensor.nonzero"] = HANDLERS["torch.nonzero"] = _shown_as("nonzero.default")
HANDLERS["Tensor.__index__"] = _number(operator.index)
for _kind in (bool, int, float, complex):
    HANDLERS[f"Tensor.__{_kind.__name__}__"] = _number(_kind)


def _data(t: Tensor) -> Any:
    """``detach``, with a separate version counter."""
    made = t.detach()
    if isinstance(made, Tensor):
        made._counter_ = VersionCounter(1)
    return made


def _reads_data(plain: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    return lambda t: _data(t) if owners([t]) else plain(t)


_listeners: list[Callable[[], None]] = []
_enabled = False
_enabling = threading.Lock()


def _enable() -> None:
    """Adds the layer of types."""
    global _enabled
    with _enabling:
        if _enabled:
            return
        _enabled = True
        load_all()
        add_layer("subclass", _overridden, _override)
        show_backward()
        job_overrides.append(_each_row)
        data: Any = Tensor.__dict__["data"]
        if isinstance(data, OverridableProperty):
            read: Any = data.read
            data.read = _reads_data(read)
        else:
            _tensor.data = property(_reads_data(data.fget), data.fset, data.fdel, data.__doc__)
        for listener in _listeners:
            listener()


def when_enabled(listener: Callable[[], None]) -> None:
    """Registers a function to be called when the first type that overrides operators is defined."""
    _listeners.append(listener)


def _defined(cls: type) -> None:
    """Called with each new subclass of ``Tensor``."""
    if class_overrides_operators(cls):
        _enable()
        kind: Any = cls
        kind._overrides_operators_ = True
        kind._layout_ = property(_read_layout, _write_layout)
        if getattr(cls.__torch_function__, "__func__", None) is _by_default:  # type: ignore[attr-defined]
            kind.__torch_function__ = disabled  # by default a type overrides one of the two only
            enable_functions()  # for one that is assigned to the class later


_tensor: Any = Tensor
_by_default = _tensor.__torch_function__.__func__
_tensor.__torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)
when_subclassed(_defined)

__all__ = ["HANDLERS", "when_enabled"]
