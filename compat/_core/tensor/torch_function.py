"""``__torch_function__``: types and modes that override functions of tensors.

Programs without such types pay nothing for them: the public functions are replaced by ``Overridable`` ones, which check
the types of their arguments, only when the first subclass of ``Tensor`` is defined, the first ``TorchFunctionMode`` is
entered, or ``torch.overrides`` is imported.

Example:
    >>> import compat as torch
    >>> class Metres(torch.Tensor):
    ...     pass
    >>> Metres([1.0, 2.0]) * 2
    Metres([2., 4.])
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat._core.tensor import overridable_names as names
from compat._core.tensor import registry
from compat._core.tensor.tensor import Tensor, later
from compat._core.types.errors import warn


class _Local(threading.local):
    """The override state of a thread.

    Attributes:
        subclasses: whether ``__torch_function__`` of subclasses is called.
        modes: the modes entered, the innermost last.
        none: whether modes are disabled, too.
        passing: whether the next check ignores overrides.
    """

    def __init__(self) -> None:
        self.subclasses = True
        self.modes: list[TorchFunctionMode] = []
        self.none = False
        self.passing = False


local = _Local()


def _disabled_torch_function_impl(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
) -> Any:
    """The ``__torch_function__`` of a type without overrides, such as ``Parameter``."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


disabled: Any = classmethod(_disabled_torch_function_impl)


def _overrides_functions(kind: type) -> bool:
    """Whether a type overrides functions."""
    if kind is Tensor:
        return False
    found = getattr(kind, "__torch_function__", None)
    return found is not None and getattr(found, "__func__", found) is not _disabled_torch_function_impl


# ---------------------------------------------------------------- overrides


def one_of_each_type(values: Iterable[Any], overrides: Callable[[type], bool]) -> list[Any]:
    """The values of overriding types: one for each type, subclasses before their bases."""
    found: list[Any] = []
    for a in values:
        kind = type(a)
        if not overrides(kind) or any(type(f) is kind for f in found):
            continue
        place = next((i for i, f in enumerate(found) if issubclass(kind, type(f))), len(found))
        found.insert(place, a)
    return found


@contextmanager
def innermost(modes: list[Any], method: str) -> Iterator[Callable[..., Any]]:
    """Context in which the innermost mode is inactive, to call its method.

    Raises:
        RuntimeError: for a class method.
    """
    mode = modes.pop()
    try:
        ask: Callable[..., Any] = getattr(mode, method)
        if isinstance(getattr(ask, "__self__", None), type):
            raise RuntimeError(
                f"Defining your mode's `{method}` as a classmethod is not supported, please make it a plain method"
            )
        yield ask
    finally:
        modes.append(mode)


def no_handler(name: str, method: str, modes: Sequence[Any], kinds: Sequence[type]) -> TypeError:
    """The error if all handlers of a function returned ``NotImplemented``."""
    asked = [f"mode object {mode!r}" for mode in modes] + [f"tensor subclass {kind}" for kind in kinds]
    listed = "\n".join([f"  - {a}" for a in asked])
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all {method} handlers returned NotImplemented:\n\n{listed}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


#: Types without overrides.
_PLAIN = frozenset([Tensor, int, float, bool, str, type(None)])


def overriding(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a call whose types override functions, including items of lists and tuples.

    Runs at every call once there is such a type.
    """
    found: list[Any] = []
    for values in (args, kwargs.values()) if kwargs else (args,):
        for a in values:
            kind = type(a)
            if kind in _PLAIN:
                continue
            if isinstance(a, (list, tuple)):
                found += [b for b in a if type(b) not in _PLAIN and _overrides_functions(type(b))]
            elif _overrides_functions(kind):
                found.append(a)
    return found


def has_torch_function(relevant_args: Sequence[Any]) -> bool:
    """Whether the type of an argument, or a mode, overrides functions.

    Raises:
        TypeError: for arguments that are not a sequence.
    """
    if not hasattr(relevant_args, "__getitem__"):
        raise TypeError("expected a sequence")
    if local.passing:
        local.passing = False
        return False
    if local.modes:
        return True
    return local.subclasses and any(_overrides_functions(type(a)) for a in relevant_args)


def has_torch_function_unary(arg: Any) -> bool:
    """``has_torch_function`` for one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """``has_torch_function`` for separate arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Sequence[Any], *args: Any, **kwargs: Any
) -> Any:
    """The result of a call by the overrides of its arguments' types.

    Args:
        public_api: the called function.
        relevant_args: the arguments whose types may override it.
        args, kwargs: all arguments.

    Raises:
        TypeError: if all overrides returned ``NotImplemented``.

    Example:
        >>> from compat.overrides import handle_torch_function, has_torch_function_unary
        >>> def double(x):
        ...     if has_torch_function_unary(x):
        ...         return handle_torch_function(double, (x,), x)
        ...     return x + x
        >>> class Named:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return func.__name__
        >>> double(Named())
        'double'
    """
    found, asked = _ask(public_api, relevant_args, args, kwargs)
    if found is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        message = f"no implementation found for '{name}' on types that implement __torch_function__: {asked}"
        raise TypeError(message + (f" nor in mode {local.modes[-1]}" if local.modes else ""))
    return found


def _ask(function: Any, relevant: Sequence[Any], args: Any, kwargs: Any) -> tuple[Any, list[type]]:
    """The result of the override of a mode or a type, or ``NotImplemented``; and the types of the handlers."""
    overloaded = one_of_each_type(relevant, _overrides_functions) if local.subclasses else []
    kinds = [type(a) for a in overloaded]
    if local.modes:
        with innermost(local.modes, "__torch_function__") as ask:
            found = ask(function, tuple(kinds), args, kwargs)
        if found is not NotImplemented:
            return found, kinds
    for a in overloaded:
        ask = a.__torch_function__
        if getattr(ask, "__self__", None) is a:
            _warn_of_plain(function)
        found = ask(function, tuple(kinds), args, kwargs)
        if found is not NotImplemented:
            return found, kinds
    return NotImplemented, kinds


def _warn_of_plain(function: Any) -> None:
    """Warns of a ``__torch_function__`` that is a plain method."""
    python = type(function) is not Overridable or (resolve_name(function) or "").startswith("torch.nn.functional.")
    quoted = "`__torch_function__" if python else "`__torch_function__`"
    warn(
        f"Defining your {quoted} as a plain method is deprecated and will be an error in future, please define it as a "
        "classmethod.",
        DeprecationWarning if python else UserWarning,
    )


# ---------------------------------------------------------------- overridable functions

#: For functions with several signatures, how overrides receive the arguments.
told_arguments: dict[Callable[..., Any], Callable[[tuple], tuple]] = {}


class _Documentation:
    """The docstring of the function that an ``Overridable`` wraps, which may be set later."""

    def __init__(self, of_class: str | None):
        self.of_class = of_class

    def __get__(self, instance: Overridable | None, owner: type) -> str | None:
        return self.of_class if instance is None else instance._function.__doc__

    def __set__(self, instance: Overridable, text: str | None) -> None:
        instance._function.__doc__ = text


class Overridable:
    """A public function that the types of its arguments can override. It is equal to the function that it wraps.

    Args:
        function: the implementation if no type overrides it.
        name: its name.
        shown: the method of tensors that overrides receive as ``func``, if not this function.
        operator: whether it is a binary operator, which returns ``NotImplemented`` for the other operand's method.
        types: whether types override it; modes always do.
    """

    __doc__ = _Documentation(__doc__)

    def __init__(
        self, function: Callable[..., Any], name: str, shown: str | None = None, operator: bool = False,
        types: bool = True,
    ):  # fmt: skip
        self._function = function if types else _without_types(function)
        functools.update_wrapper(self, function)
        registry.unnamed.append(self)
        self.__name__ = name
        self._shown = shown
        self._operator = operator
        self._types = types

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        relevant = self._relevant(args, kwargs) if local.subclasses else []
        if not relevant and not local.modes:
            return self._function(*args, **kwargs)
        args = told_arguments.get(self._function, tuple)(args)
        shown = self if self._shown is None else getattr(Tensor, self._shown)
        found, asked = _ask(shown, relevant, args, kwargs)
        if found is NotImplemented and not self._operator:
            raise _not_implemented(resolve_name(self) or self.__name__, asked)
        return found

    def _relevant(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments whose types override the function."""
        if self._types:
            return overriding(args, kwargs)
        return overriding((kwargs["out"],), {}) if "out" in kwargs else []

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Overridable:
        return self

    def __deepcopy__(self, memo: dict) -> Overridable:
        return self

    def __reduce__(self) -> tuple:
        name = resolve_name(self)
        return (_named, (name,)) if name is not None else (Overridable, (self._function, self.__name__))

    def __eq__(self, other: object) -> bool:
        return self is other or self._function is other

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


def _without_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function within which types do not override the functions that it calls."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return wrapped


def _named(name: str) -> Any:
    """The function of an address, ``torch.nn.functional.relu``; used by unpickling."""
    _, *rest = name.split(".")
    return functools.reduce(getattr, rest, sys.modules["compat"])


def _not_implemented(name: str, asked: Sequence[type]) -> TypeError:
    return no_handler(name, "__torch_function__", local.modes[-1:], asked)


class OverridableObject(ABC):
    """An object that is called as an operation, such as ``torch.ops.aten.add.Tensor``: types and modes override it."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        relevant = overriding(args, kwargs)
        if not has_torch_function(relevant):
            return self._run(*args, **kwargs)
        found, asked = _ask(self, relevant, args, kwargs)
        if found is NotImplemented:
            namespace, name = str(self).split(".")[:2]
            raise _not_implemented(f"torch.ops{namespace}.{name}", asked)  # without a dot, as in PyTorch
        return found

    @abstractmethod
    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        """The call if nothing overrides it."""


#: Properties that are tensors: compat's own reads are overridden, too, so that the result has the subclass. The others
#: have the same value for every type, so only reads in user code are overridden.
_TENSORS = frozenset(["T", "H", "mT", "mH", "data", "grad", "real", "imag", "_base"])
_HERE = str(Path(__file__).parents[2]) + os.sep


class OverridableProperty(property):
    """A property that types can override, through its ``__get__``, ``__set__`` or ``__delete__``.

    Attributes:
        read, write, delete: the implementations if no type overrides them.
    """

    def __init__(self, name: str, original: property):
        self.__name__ = name
        self.read, self.write, self.delete = original.fget, original.fset, original.fdel
        always = name in _TENSORS

        def get(t: Any) -> Any:
            if (t.__class__ is Tensor or not local.subclasses) and not local.modes:
                return self.read(t)  # type: ignore[misc]
            if (always or _is_users(sys._getframe(1))) and has_torch_function_unary(t):
                return self._ask("__get__", t)
            return self.read(t)  # type: ignore[misc]

        def put(t: Any, value: Any) -> None:
            if _is_users(sys._getframe(1)) and has_torch_function_unary(t):
                self._ask("__set__", t, value)
            else:
                self.write(t, value)  # type: ignore[misc]

        def remove(t: Any) -> None:
            if _is_users(sys._getframe(1)) and has_torch_function_unary(t):
                self._ask("__delete__", t)
            else:
                self.delete(t)  # type: ignore[misc]

        super().__init__(get, self.write and put, self.delete and remove, original.__doc__)

    def _ask(self, how: str, *args: Any) -> Any:
        found, asked = _ask(getattr(self, how), args[:1], args, {})
        if found is NotImplemented:
            raise _not_implemented(f"torch.Tensor.{self.__name__}.{how}", asked)
        return found


def _is_users(frame: types.FrameType) -> bool:
    """Whether a frame's code is outside compat."""
    return not frame.f_code.co_filename.startswith(_HERE)


_enabled = False


def enable() -> None:
    """Makes the public functions overridable."""
    global _enabled
    if _enabled:
        return
    _enabled = True
    registry.exposing.append(_overridable)
    for place, holder in [*_modules(), ("Tensor", Tensor)]:
        for name, found in list(vars(holder).items()):
            made = _overridable(found, place, name)
            if made is not found:
                setattr(holder, name, made)


def _modules() -> list[tuple[str, Any]]:
    """The imported modules whose functions can be overridden, by PyTorch's addresses."""
    places = sorted(registry.places(), key=lambda place: (place != "torch", place))
    found = [(place, sys.modules.get("compat" if place == "torch" else f"compat.{place}")) for place in places]
    return [(place, module) for place, module in found if module is not None and place not in ("Tensor", "_C")]


def _overridable(value: Any, place: str, name: str) -> Any:
    """The overridable form of a public function or property, which is the object itself for other objects."""
    if place == "Tensor":
        if isinstance(value, property):
            return OverridableProperty(name, value)
        return _method(name, value) if isinstance(value, types.FunctionType) and names.of_method(name) else value
    if isinstance(value, types.FunctionType) and registry.is_operation(value, place, name):
        return Overridable(value, names.of_function(f"{place}.{name}"), types=name not in names.MODES_ONLY)
    return value


def _method(name: str, f: Any) -> Overridable:
    """An overridable method."""
    same = names.SAME_METHOD.get(name)
    return Overridable(f, same or names.SHOWN.get(name, name), same, names.is_operator(name))


def _default_torch_function(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
) -> Any:
    """The default of subclasses of ``Tensor``: calls the function, and converts results to the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        found = func(*args, **(kwargs or {}))
        return found if func in get_default_nowrap_functions() else _converted(found, cls)


def _converted(found: Any, cls: type) -> Any:
    if cls is Tensor:
        return found
    if isinstance(found, Tensor):
        if isinstance(found, cls):
            return found
        with DisableTorchFunction():
            return found.as_subclass(cls)
    if isinstance(found, (list, tuple)):
        return type(found)([_converted(f, cls) for f in found])
    return found


Tensor.__torch_function__ = classmethod(_default_torch_function)  # type: ignore[attr-defined]


_listeners: list[Callable[[type], None]] = []


def when_subclassed(listener: Callable[[type], None]) -> None:
    """Registers a function to be called with each subclass of ``Tensor`` that is defined."""
    _listeners.append(listener)


def _subclass_defined(cls: type) -> None:
    if hasattr(cls, "__torch_dispatch__"):
        importlib.import_module("compat._core.dispatch.wrapper_subclass")  # registers a listener
    for listener in _listeners:
        listener(cls)
    if _overrides_functions(cls):
        enable()


later.subclassed = _subclass_defined

# ---------------------------------------------------------------- modes


class TorchFunctionMode:
    """A mode: in its context, its ``__torch_function__`` is called instead of every public function.

    Example:
        >>> import compat as torch
        >>> from compat.overrides import TorchFunctionMode
        >>> class Count(TorchFunctionMode):
        ...     calls = 0
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         self.calls += 1
        ...         return func(*args, **(kwargs or {}))
        >>> with Count() as count:
        ...     y = torch.ones(2) + 1
        >>> count.calls
        2
    """

    __module__ = "compat.overrides"

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        enable()
        local.modes.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        local.modes.pop()


class DisableTorchFunctionSubclass:
    """Disables ``__torch_function__`` of types."""

    __module__ = "compat._C"

    def __enter__(self) -> None:
        self._before = local.subclasses
        local.subclasses = False

    def __exit__(self, *_: Any) -> None:
        local.subclasses = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Disables ``__torch_function__`` of types and modes."""

    __module__ = "compat._C"

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, local.modes = local.modes, []
        self._none, local.none = local.none, True

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        local.modes, local.none = self._modes, self._none


def _is_torch_function_enabled() -> bool:
    """Whether ``__torch_function__`` of types is enabled."""
    return local.subclasses


# ---------------------------------------------------------------- introspection


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor or overrides functions of them."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


@functools.cache
def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are not converted to the subclass."""
    return {getattr(Tensor, name).__get__ for name in ("_base", "grad", "_grad")}


def resolve_name(f: Any) -> str | None:
    """The address of an overridable function, such as ``torch.Tensor.add``; None for others."""
    if isinstance(f, OverridableObject):
        return str(f)
    owner = getattr(f, "__self__", None)
    if isinstance(owner, OverridableProperty):
        return f"torch.Tensor.{owner.__name__}.{f.__name__}"
    for place, holder in [*_modules(), ("Tensor", Tensor)]:
        for name, value in vars(holder).items():
            if value is f and type(f) is Overridable:
                return f"torch.{name}" if place == "torch" else f"torch.{place}.{name}"
    return None
