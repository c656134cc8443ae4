"""The entry functions of operators: generated code that looks up a plan, conversion of arguments, and keys of plans.

The public function of an operator is generated from its parameters (``compat._core.schema.parameter``). It looks up a
plan by the layouts of tensors, the types of numbers, and static values. If there is no plan, if an argument must be
converted (a list to a tuple, NumPy's integer to Python's), or if a mode intercepts operators, it calls ``miss``: the
call goes through the layers of ``compat._core.dispatch.dispatcher`` to the operator, which converts the arguments by
functions of this module and makes a plan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from compat._core.dispatch.dispatcher import active
from compat._core.schema.parameter import MISSING, Param
from compat._core.tensor.tensor import Tensor, refresh, sync, sync_written
from compat._core.tensor.tracing import all_taken, taken
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype
from compat._core.types.errors import wrap_dim, wrap_dims, wrong_argument
from funcgrad.core.caching import memoized

#: PyTorch's aliases of parameters.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
_ALIASED = frozenset(ALIASES.values()) - {"input"}
_NUMBERS = (int, float, complex, bool)


# ---------------------------------------------------------------- conversion of arguments


def freeze(value: Any) -> Any:
    """A static argument as a hashable value."""
    kind = type(value)
    if kind is list or kind is tuple:
        return tuple(freeze(v) for v in value)
    if isinstance(value, Tensor) or (isinstance(value, np.generic) and not isinstance(value, _NUMBERS)):
        return value.item()
    if isinstance(value, range):
        return tuple(value)
    return dtype.wanted("", value) if kind is type and value in _NUMBERS else value


def _integer(function: str, p: Param, position: int, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_argument(function, p.name, position, "int", value)
    return dtype.index_number(value)


def _integers(function: str, p: Param, position: int, value: Any) -> tuple[int, ...]:
    if p.starred and len(value) == 1 and not hasattr(value[0], "__index__"):
        value = value[0]
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return (dtype.index_number(value),)
    if not isinstance(value, (tuple, list, range)):
        raise wrong_argument(function, p.name, position, "tuple of ints", value)
    for i, n in enumerate(value):
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            what = f"tuple of ints, but found element of type {type(n).__name__} at pos {i}"
            raise TypeError(f"{function}(): argument '{p.name}' (position {position}) must be {what}")
    return tuple(dtype.index_number(n) for n in value)


def cleaned(function: str, p: Param, position: int, value: Any, numbers: bool) -> Any:
    """An argument, converted to the kind of its parameter.

    Args:
        numbers: whether an operand may be a number.

    Raises:
        TypeError: naming the function, the argument, its type and the expected one.
    """
    if value is MISSING:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{p.name}"')
    if value is None and p.optional:
        return None
    if value is None and p.default == ():
        return ()
    if p.kind == "array":
        return _array(function, p, position, taken(value), numbers)
    if p.kind == "arrays":
        return _arrays(p, function, position, value)
    if p.kind == "scalar":
        return _scalar(function, p, position, taken(value))
    if p.kind == "dim":
        return _integer(function, p, position, value)
    if p.kind in ("dims", "ints"):
        return _integers(function, p, position, value)
    if p.kind == "static" and p.name == "dtype":
        return dtype.wanted(function, value)
    value = taken(value) if p.plain else value
    if p.plain and not _PLAIN[p.plain](value) and not _stands_for_number(p.plain, value):
        raise wrong_argument(function, p.name, None if p.keyword else position, p.plain, value)
    if p.plain == "int":
        return dtype.index_number(value)
    return float(value) if p.plain == "float" else freeze(value)


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor))


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": _is_integer,
    "float": lambda value: isinstance(value, (int, float, np.integer, np.floating)),
    "str": lambda value: isinstance(value, str),
    "Number": lambda value: isinstance(value, _NUMBERS) or _is_numpy_number(value),
}


def _stands_for_number(plain: str, value: Any) -> bool:
    """Whether a value is a tensor that PyTorch accepts as a number: 0-d, or for integers of one element."""
    if not isinstance(value, Tensor) or plain in ("bool", "str") or value.requires_grad:
        return False
    return value.numel() == 1 and value.dtype.category == dtype.INTEGER if plain == "int" else not value.dim()


def _is_numpy_number(value: Any) -> bool:
    return isinstance(value, np.generic) and value.dtype.kind in "biufc"


def _array(function: str, p: Param, position: int, value: Any, numbers: bool) -> Any:
    if isinstance(value, Tensor):
        return value
    if numbers and isinstance(value, _NUMBERS):
        return dtype.plain_number(value)
    if numbers and _is_numpy_number(value):
        return dtype.plain_number(value.item())
    raise wrong_argument(function, p.name, position, "Tensor", value)


def _arrays(p: Param, function: str, position: int, value: Any) -> tuple:
    if not isinstance(value, (tuple, list)):
        raise wrong_argument(function, p.name, position, "tuple of Tensors", value)
    value = all_taken(value)
    for i, t in enumerate(value):
        if not isinstance(t, Tensor) and (p.edge or t is not None):
            raise TypeError(f"expected Tensor as element {i} in argument {position - 1}, but got {type(t).__name__}")
    return tuple(value)


def _scalar(function: str, p: Param, position: int, value: Any) -> Any:
    if (isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad) or _is_numpy_number(value):
        value = value.item()
    if not isinstance(value, _NUMBERS):
        raise wrong_argument(function, p.name, None if p.keyword else position, "Number", value)
    return dtype.plain_number(value)


def wrapped(p: Param, value: Any, ndim: int) -> Any:
    """The value of a static argument for the declared function: dimensions are counted from the left."""
    if value is None:
        return None
    if p.kind == "dim":
        return wrap_dim(value, ndim)
    return wrap_dims(value, ndim) if p.kind == "dims" else value


def renamed(function: str, params: tuple[Param, ...], args: list[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments, including those given by an alias of a parameter.

    Raises:
        TypeError: for an unknown name.
    """
    places = {p.name: i for i, p in enumerate(params)}
    for name, value in named.items():
        found = name if name in places else ALIASES.get(name)
        if found is None or found not in places:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        args[places[found]] = value
    return args


# ---------------------------------------------------------------- the entry function


class Words(Protocol):
    """Makes an entry function's errors (``compat._core.operators.call_errors``)."""

    @property
    def method(self) -> bool:
        """Whether the function is called as a method."""

    def refuse(self, args: list[Any], more: Sequence[Any], named: Mapping[str, Any], out: Any) -> None:
        """Raises an error for arguments without a parameter, except those given by an alias."""


#: The folder in the filename of generated functions: frames below it are the library's in messages.
_HERE = os.path.dirname(__file__)
_ENTRY = """\
def function({signature}):
    {guards}
    {scan}
    try:
        plan = plans[{key}] if not active.modes else None
    except (KeyError, TypeError, AttributeError):
        plan = None
    if plan is None:
        return miss([{arguments}])
    try:
        return plan.run(({values}))
    except TooWide:
        return miss([{arguments}])
"""


def entry(
    name: str,
    params: tuple[Param, ...],
    miss: Callable[..., Any],
    plans: dict,
    *,
    out: bool,
    offsets: bool = False,
    recorded: bool = True,
    older: Callable[[Sequence[Any], Any], Any] | None = None,
    words: Callable[[], Words | None] = lambda: None,
    writes: bool = False,
    autocast: bool = False,
) -> FunctionType:
    """The public function of an operator: one look-up by the arguments' kinds, then the plan's ``run``.

    The code is generated, like a named tuple's methods, because it runs on every operation.

    Args:
        miss: ``(arguments, out, named)``, called if there is no plan or arguments must be converted.
        plans: plans by key; see ``key_of``.
        out: whether there is an ``out`` parameter.
        offsets: whether a tensor's storage offset is part of the key.
        recorded: whether nodes are made; only then must the ``grad_fn`` of views be up to date.
        older: called with all arguments and ``out`` if there are more positional arguments than parameters.
        words: returns the object that makes errors for unknown arguments; called at the first call of the function,
            since it is set when the function is published.
        writes: whether the first argument is written in place.
        autocast: whether autocast casts its arguments, so that it is part of the key.
    """
    scope: dict[str, Any] = {}
    made = FunctionType(_waiting.__code__, scope, name)

    def complete() -> Callable[..., Any]:
        errors = words()
        if errors is not None:
            scope["refuse"] = errors.refuse
        source, defaults = _source(params, out, offsets, older is not None, _style(errors), writes, autocast)
        scope.update(  # names that no parameter has
            grad__mode=mode, active=active, plans=plans, miss=miss, older=older, MISSING=MISSING,
            Tensor=Tensor, TooWide=dtype.TooWide, exact=exact,
            sync=sync if recorded else refresh, sync_written=sync_written, **defaults,
        )  # fmt: skip
        defined: dict[str, Any] = {}
        exec(_compiled(source), scope, defined)
        function = defined["function"]
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        place = f"{_HERE}{os.sep}<{name}>"
        made.__code__ = function.__code__.replace(co_name=name, co_qualname=name, co_filename=place)
        return made

    scope["complete"] = complete
    return made


def _waiting(*args: Any, **kwargs: Any) -> Any:
    """The code of an entry function before its first call: most are never called, and compiling takes time."""
    return complete()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _style(words: Words | None) -> str:
    """The handling of unknown arguments: as a function's, a method's, or by Python (``"plain"``)."""
    if words is None:
        return "plain"
    return "method" if words.method else "function"


def _source(
    params: tuple[Param, ...], out: bool, offsets: bool, older: bool, style: str, writes: bool, autocast: bool
) -> tuple[str, dict[str, Any]]:
    """The source of an entry function, and the values of its defaults."""
    signature, scan, key, values, arguments = [], [], [], [], []
    defaults: dict[str, Any] = {}
    starred = any(map(attrgetter("starred"), params))
    aliased = starred or not _ALIASED.isdisjoint(map(attrgetter("name"), params))
    defaulted = False
    method, refused = style == "method", style != "plain"
    rest = "*more" if older or refused else "*"
    for p in params:
        n = p.name
        # A parameter that has an alias, and all after it, need a default.
        defaulted = defaulted or (aliased and p.required and n in ALIASES.values())
        defaulted = defaulted or (refused and (bool(defaults) or not method))
        if p.keyword and not starred and rest not in signature:
            signature.append(rest)
        signature.append(f"*{n}" if p.starred else n if p.required and not defaulted else f"{n}=_{n}")
        defaults[f"_{n}"] = MISSING if p.required else p.default
        arguments.append(n)
        if method and len(defaults) == 1:
            signature.append("/")
        values += [f"*{n}, " if p.kind == "arrays" else f"{n}, "] if p.dynamic else []
        scan += _scan(p, params[0].name if writes else "")
        key += _key(p, offsets)
    guards = []
    if older:
        given = ", ".join(p.name for p in params if not p.keyword)
        guards += ["if more:", f"    return older(({given}, *more), {'out' if out else 'None'})"]
    if out:
        signature += ([] if rest in signature or starred else [rest]) + ["out=None"]
    if refused:
        signature += ([] if rest in signature or starred else [rest]) + ["**named"]
        given = f"[{', '.join(arguments)}]"
        guards.append("if named:" if starred or older else "if more or named:")
        guards.append(f"    refuse({given}, {'()' if starred or older else 'more'}, named, {'out' if out else 'None'})")
        guards.append(f"    return miss({given}, {'out' if out else 'None'}, named)")
    elif aliased:
        signature.append("**named")
        guards.append("if named:")
        guards.append(f"    return miss([{', '.join(arguments)}], {'out' if out else 'None'}, named)")
    if out:
        guards.append("if out is not None:")
        guards.append(f"    return miss([{', '.join(arguments)}], out)")
    source = _ENTRY.format(
        signature=", ".join(signature),
        guards="\n    ".join(guards) or "pass",
        scan="\n    ".join(scan) or "pass",
        key=", ".join([*key, "grad__mode.grad", *["grad__mode.autocast"] * autocast]) + "," * (not key),
        arguments=", ".join(arguments),
        values="".join(values),
    )
    return source, defaults


@memoized("code of operations", 4096)
def _compiled(source: str) -> Any:
    """The code of an entry function; operations with the same source share it, since compiling takes time."""
    return compile(source, _HERE, "exec")


def _scan(p: Param, written: str) -> list[str]:
    """The source that prepares an argument for the look-up.

    Args:
        written: the parameter that is written in place, if there is one.
    """
    n = p.name
    if p.kind == "array":
        call = "sync_written" if n == written else "sync"
        other = f" and {n} is not {written}" if written not in ("", n) else ""
        return [
            f"if isinstance({n}, Tensor):",
            f"    if {n}._view_ is not None{other}: {call}({n})",
            f"    {n}_k = {n}._layout_; {n}_g = {n}._rg_",
            f"else: {n}_k = {n}.__class__; {n}_g = False",
        ]
    if p.kind == "arrays":
        given = "" if p.edge else "t is not None and "
        return [
            "try:",
            f"    for t in {n}:",
            f"        if {given}t._view_ is not None: sync(t)",
            f"    {n}_k = tuple([{given}(t._layout_, t._rg_) for t in {n}])",
            f"except (AttributeError, TypeError): {n}_k = None",
        ]
    if p.starred:
        # One sequence has the same key as separate arguments; () is a sequence, too.
        return [
            f"if len({n}) == 1 and {n}[0].__class__ is not int:",
            f"    if isinstance({n}[0], (tuple, list)): {n} = tuple({n}[0])",
            f"elif not {n}: {n} = MISSING",
        ]
    return []


#: The annotation of numbers that nodes show: their type is part of the key, since 2 and 2.0 differ.
_SHOWN = "Number"
#: The exact types of static arguments, since equal values of other types are not accepted: 1.0 and True for int.
_EXACT: dict[str, type] = {"int": int, "bool": bool}


def _exact_type(p: Param) -> type | None:
    return int if p.kind == "dim" else _EXACT.get(p.plain)


def exact(value: Any) -> Any:
    """The key of a static argument that is neither the default nor of the exact type.

    Example:
        >>> exact(1.0), exact(True), exact(np.int64(1))
        ((<class 'float'>, 1.0), (<class 'bool'>, True), np.int64(1))
    """
    return (value.__class__, value) if isinstance(value, (bool, int, float, complex)) else value


def _key(p: Param, offsets: bool) -> list[str]:
    n = p.name
    if p.kind == "array":
        return [f"{n}_k", f"{n}_g", *([f"{n}._offset_"] if offsets else [])]
    if p.kind == "arrays":
        return [f"{n}_k"]
    if p.kind == "scalar":
        return [f"None if {n} is _{n} else {n}.__class__" if not p.required else f"{n}.__class__"]
    if p.kind in ("dims", "ints") and not p.starred:
        return [f"({n},) if {n}.__class__ is int else tuple({n}) if {n}.__class__ is list else {n}"]
    wanted = _exact_type(p)
    if wanted is not None:
        default = "" if p.required else f"{n} is _{n} or "
        return [f"{n} if {default}{n}.__class__ is {wanted.__name__} else exact({n})"]
    return [n, f"{n}.__class__"] if p.plain == _SHOWN else [n]


def key_of(
    params: tuple[Param, ...], args: list[Any], offsets: bool, recorded: bool = True, autocast: bool = False
) -> tuple:
    """The key by which the entry function looks up a plan."""
    key: list[Any] = []
    update = sync if recorded else refresh
    for p, value in zip(params, args, strict=True):
        if p.kind == "array":
            if isinstance(value, Tensor):
                if value._view_ is not None:
                    update(value)
                key += [value._layout_, value._rg_, *([value._offset_] if offsets else [])]
            else:
                key += [value.__class__, False]
        elif p.kind == "arrays":
            for t in value:
                if t is not None and t._view_ is not None:
                    update(t)
            key.append(tuple(t is not None and (t._layout_, t._rg_) for t in value))
        elif p.kind == "scalar":
            key.append(None if not p.required and value is p.default else value.__class__)
        else:
            wanted = _exact_type(p)
            if wanted is not None and value is not p.default and value.__class__ is not wanted:
                value = exact(value)
            key += [value, value.__class__] if p.plain == _SHOWN else [value]
    return (*key, mode.grad, mode.autocast) if autocast else (*key, mode.grad)
