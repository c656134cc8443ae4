"""Functions and methods that complain of their arguments in PyTorch's words.

The way of calls that are right does not lead here. When one has failed, what was given is compared with what PyTorch
takes there (``compat._core.schema.argument_errors``); what is wrong otherwise is told as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import CO_VARKEYWORDS, unwrap
from types import FunctionType
from typing import Any

from compat._core.dispatch.dispatcher import dispatch_function
from compat._core.operators.entry_function import ALIASES
from compat._core.schema.autocast_rules import rule_of
from compat._core.schema.parameter import MISSING, Param
from compat._core.tensor.registry import SHORT, names_of, publish, publishing
from compat._core.tensor.tracing import mixed
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import lead, wrong_combination


def of_tensors(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of the names under which something is public, those of methods, and all others; operators are none."""
    own = [n for n in names if n.startswith("Tensor.") and not n.endswith("__")]
    return own, [n for n in names if n not in own]


def publish_methods(function: Callable[..., Any], names: Iterable[str], checked: bool = False) -> None:
    """Makes a function of any arguments public as methods, which complain of theirs as methods do.

    Args:
        names: where they appear, as ``"Tensor.outer"``.
        checked: whether the arguments are looked at before it is called, since it would take any.
    """
    for name in names:
        publish(_complaining(function, name, checked), name)


def _complaining(function: Callable[..., Any], where: str, checked: bool = False) -> Callable[..., Any]:
    """A function that looks at its arguments when it has failed; arrays of funcgrad's among them are tensors.

    Args:
        checked: whether it looks at them before it is called.
    """
    skip = where.startswith("Tensor.")
    first = checked or where.endswith("_")  # what writes may not be half done
    casts = rule_of(where) is not None

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        if first:
            again = mixed(args, kwargs)
            if again is not None:
                return method(*again[0], **again[1])
        problem = complaint(where, args[skip:], kwargs) if checked else None
        if problem is not None:
            raise problem
        try:
            if casts and mode.autocast is not None:
                return dispatch_function(where, method, function, args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            found = None if checked else instead(error, function, where, args, kwargs)
            if found is None:
                raise
        if isinstance(found, TypeError):
            raise found
        return method(*found[0], **found[1])

    return method


def instead(
    error: Exception, function: Callable[..., Any], where: str, args: tuple, kwargs: dict[str, Any]
) -> TypeError | tuple[Sequence[Any], dict[str, Any]] | None:
    """What comes of a call that failed: an error of its arguments in PyTorch's words, or the arguments to call it with
    again, tensors in place of arrays of funcgrad's or by position where it has other names; None if it has failed for
    another reason."""
    again = mixed(args, kwargs)
    if again is not None:
        return again
    problem = complaint(where, args[where.startswith("Tensor.") :], kwargs)
    if problem is not None:
        return problem
    again = named_otherwise(function, where, args, kwargs)
    if again is None:
        lead(error)
    return again


def complaint(where: str, args: Sequence[Any], named: Mapping[str, Any]) -> TypeError | None:
    """What PyTorch says of the arguments of a call; None if they are right, whatever else is wrong.

    Args:
        where: the address of what was called, ``"torch.sum"`` or ``"Tensor.sum"``.
        args: what was given by position, to a method without the tensor.
        named: what was given by name.
    """
    from compat._core.schema.argument_errors import argument_error  # few programs need it

    found = argument_error(full_address(where), args, named)
    if found is not None:
        lead(found)
    return found


def wrong_call(where: str, *args: Any, **named: Any) -> TypeError:
    """What is wrong with the arguments of a call, for a function that knows that something is."""
    name = where.rpartition(".")[2]
    return complaint(where, args, named) or wrong_combination(name, args, named)


def named_otherwise(
    function: Callable[..., Any], where: str, args: tuple, named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call that failed though the schema has their names, since the function has others; None if it
    knows all of them, so that it failed for another reason."""
    code = unwrap(function).__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & CO_VARKEYWORDS or all(name in own for name in named):
        return None
    from compat._core.schema.argument_errors import by_position

    skip = where.startswith("Tensor.")
    found = by_position(full_address(where), args[skip:], named)
    return None if found is None else ([*args[:skip], *found[0]], found[1])


def full_address(where: str) -> str:
    """``nn.functional.gelu`` for ``F.gelu``."""
    place, _, name = where.rpartition(".")
    return f"{SHORT.get(place, place)}.{name}"


# ---------------------------------------------------------------- entry functions


class Complaints:
    """What the entry function of an operator says of wrong arguments.

    Args:
        where: the address at which it is public.
        params: the operator's parameters.
    """

    def __init__(self, where: str, params: tuple[Param, ...]):
        self.where = full_address(where)
        self.method = where.startswith("Tensor.")
        self.params = params

    def refuse(self, args: list[Any], more: Sequence[Any], named: Mapping[str, Any], out: Any = None) -> None:
        """Raises an error for arguments that there are no parameters for; a parameter may have other names.

        Raises:
            TypeError: naming them.
        """
        params = self.params[self.method :]
        own = {p.name for p in params}
        left_out = {p.name for p, a in zip(params, args[self.method :]) if a is MISSING or a is p.default}
        if not more and all(ALIASES.get(name) in left_out or name in own for name in named):
            return
        problem = self.problem(args, more, named, out)
        name = self.where.rpartition(".")[2]
        if problem is None and more:
            count, given = len(self.params) - self.method, len(args) + len(more) - self.method
            problem = TypeError(f"{name}() takes {count} positional arguments but {given} were given")
        raise problem or TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")

    def problem(self, args: Sequence[Any], more: Sequence[Any], named: Mapping[str, Any], out: Any) -> TypeError | None:
        """What PyTorch says of the arguments, be the defaults among them given or left out; None if they are right."""
        problem = None
        for left_out in (True, False):
            placed, by_name = self._given(args, more, named, left_out)
            found = complaint(self.where, placed, by_name if out is None else by_name | {"out": out})
            if found is None:
                return None
            problem = problem or found
        return problem

    def _given(
        self, args: Sequence[Any], more: Sequence[Any], named: Mapping[str, Any], left_out: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the caller gave, by position and by name, as far as can be told from the parameters.

        Args:
            left_out: whether what has its default is taken to have been left out.
        """
        placed: list[Any] = []
        by_name: dict[str, Any] = {}
        skipped = 0  # what was left out: what comes after it was named
        for p, value in zip(self.params[self.method :], args[self.method :]):
            if p.starred:
                placed += () if value is MISSING or p.name in named else self._sequence(value)
            elif value is MISSING or (value is p.default and not more and left_out):
                skipped += 1
            elif p.keyword or skipped:
                if value is not p.default:
                    by_name[p.name] = value
            else:
                placed.append(value)
        return [*placed, *more], by_name | dict(named)

    def _sequence(self, values: tuple) -> tuple:
        """What was given for a starred parameter: functions take integers as one sequence only."""
        return values if self.method or not all(hasattr(n, "__index__") for n in values[:1]) else (values,)


# ---------------------------------------------------------------- functions in terms of other operations

#: Functions that complain in PyTorch's words themselves.
_speaking: set[Callable[..., Any]] = set()
#: Functions whose arguments are looked at before they are called, since they take what PyTorch does not.
_checked_first: set[Callable[..., Any]] = set()


def checked_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """Says that a function's arguments are to be looked at before it is called."""
    _checked_first.add(function)
    return function


def speaks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Says that a function complains of its arguments in PyTorch's words."""
    _speaking.add(function)
    return function


def _complaining_where_public(function: Any, place: str, name: str) -> Any:
    """A public function that is no declared operator, made to complain of its arguments in PyTorch's words, where it
    has any, and to take arrays of funcgrad's for tensors."""
    if place not in _OF_TENSORS or name.startswith("_") or not isinstance(function, FunctionType):
        return function
    if function in _speaking:
        return function
    if name in _OF_ANYTHING or not function.__module__.startswith(_OPERATORS):
        return function
    of_torch = names_of("torch")
    if place == "nn.functional" and name in _OF_TORCH and of_torch.loaded_under(name) is function:
        return of_torch[name]
    where = f"{place}.{name}"
    said = _complaining(function, where, function in _checked_first)
    said.__module__, said.__qualname__ = "compat" if place == "torch" else f"compat.{place}", name
    return said


#: Where functions of tensors are public, and where they are written.
_OF_TENSORS = ("torch", "nn.functional", "linalg", "special", "fft")
_OPERATORS = "compat._operators."
#: Functions of ``nn.functional`` that are those of ``torch``.
_OF_TORCH = frozenset(
    ["adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d"]
    + ["conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink"]
    + ["pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rrelu_", "selu_"]
    + ["threshold_"]
)
#: What takes other things than tensors, and says itself what is wrong with them.
_OF_ANYTHING = frozenset(
    ["as_tensor", "asarray", "broadcast_tensors", "einsum", "from_dlpack", "from_numpy", "frombuffer", "meshgrid"]
    + ["sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor"]
    + ["sparse_csr_tensor", "tensor"]
)
publishing.append(_complaining_where_public)
