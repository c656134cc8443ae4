"""Functions and methods that raise PyTorch's errors for wrong arguments.

Arguments are checked only when a call has failed: they are compared with the schemas of the function
(``compat._core.schema.argument_errors``). If they are valid, the exception is raised unchanged.
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
from compat._core.tensor.registry import SHORT, defining_module, names_of, publish, publishing
from compat._core.tensor.tracing import mixed
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import lead, wrong_combination


def of_tensors(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The addresses of methods, and the others, which include Python's operators such as ``Tensor.__add__``."""
    own = [n for n in names if n.startswith("Tensor.") and not n.endswith("__")]
    return own, [n for n in names if n not in own]


def publish_methods(function: Callable[..., Any], names: Iterable[str], checked: bool = False) -> None:
    """Publishes a function as methods, with the errors of methods.

    Args:
        names: where they appear, as ``"Tensor.outer"``.
        checked: whether the arguments are checked before the call, since the function accepts any.
    """
    for name in names:
        publish(with_call_errors(function, name, checked), name)


def with_call_errors(
    function: Callable[..., Any],
    where: str,
    checked: bool = False,
    into: Callable[[Any, tuple, dict[str, Any]], Any] | None = None,
) -> Callable[..., Any]:
    """A function that checks its arguments when it has failed; funcgrad's arrays among them become tensors.

    Args:
        checked: whether it checks them before the call.
        into: runs a call with an argument ``out``: ``(out, args, kwargs)``.
    """
    skip = where.startswith("Tensor.")
    first = checked or where.endswith("_")  # in-place functions must not fail halfway
    casts = rule_of(where) is not None

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        if first:
            again = mixed(args, kwargs)
            if again is not None:
                return method(*again[0], **again[1])
            problem = call_error(where, args[skip:], kwargs) if checked else None
            if problem is not None:
                raise problem
        try:
            if kwargs and into is not None and "out" in kwargs:
                given = kwargs.copy()
                out = given.pop("out")
                return method(*args, **given) if out is None else into(out, args, given)
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
    """After a failed call: PyTorch's error for its arguments, or the arguments to repeat it with (tensors in place of
    funcgrad's arrays, or by position where the function has other names), or None if it failed for another reason."""
    again = mixed(args, kwargs)
    if again is not None:
        return again
    problem = call_error(where, args[where.startswith("Tensor.") :], kwargs)
    if problem is not None:
        return problem
    again = named_otherwise(function, where, args, kwargs)
    if again is None:
        lead(error)
    return again


def call_error(where: str, args: Sequence[Any], named: Mapping[str, Any]) -> TypeError | None:
    """PyTorch's error for the arguments of a call; None if they are valid.

    Args:
        where: the address of the function, ``"torch.sum"`` or ``"Tensor.sum"``.
        args: the positional arguments, of a method without the tensor.
        named: the keyword arguments.
    """
    from compat._core.schema.argument_errors import argument_error  # few programs need it

    found = argument_error(full_address(where), args, named)
    if found is not None:
        lead(found)
    return found


def wrong_call(where: str, *args: Any, **named: Any) -> TypeError:
    """PyTorch's error for arguments that are known to be wrong."""
    name = where.rpartition(".")[2]
    return call_error(where, args, named) or wrong_combination(name, args, named)


def named_otherwise(
    function: Callable[..., Any], where: str, args: tuple, named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a failed call, positional where the function's parameters are named differently from the
    schema's; None if all names are the function's, so that it failed for another reason."""
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


class CallErrors:
    """The errors of an operator's entry function for wrong arguments.

    Args:
        where: the address at which it is public.
        params: the operator's parameters.
    """

    def __init__(self, where: str, params: tuple[Param, ...]):
        self.where = full_address(where)
        self.method = where.startswith("Tensor.")
        self.params = params

    def refuse(self, args: list[Any], more: Sequence[Any], named: Mapping[str, Any], out: Any = None) -> None:
        """Raises an error for arguments without a parameter, unless they have an alias of a parameter's name.

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
        """PyTorch's error for the arguments; None if they are valid with or without those that equal their default."""
        problem = None
        for left_out in (True, False):
            placed, by_name = self._given(args, more, named, left_out)
            found = call_error(self.where, placed, by_name if out is None else by_name | {"out": out})
            if found is None:
                return None
            problem = problem or found
        return problem

    def _given(
        self, args: Sequence[Any], more: Sequence[Any], named: Mapping[str, Any], left_out: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments of the caller, as far as they follow from the entry function's.

        Args:
            left_out: whether arguments that are their default count as omitted.
        """
        placed: list[Any] = []
        by_name: dict[str, Any] = {}
        skipped = 0  # omitted arguments: those after them were given by name
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
        """The argument for a starred parameter: functions accept integers as one sequence only."""
        return values if self.method or not all(hasattr(n, "__index__") for n in values[:1]) else (values,)


# ---------------------------------------------------------------- functions in terms of other operations

#: Functions that raise PyTorch's errors themselves.
_WITH_OWN_ERRORS: set[Callable[..., Any]] = set()
#: Functions whose arguments are checked before the call, since they accept more than PyTorch's.
_CHECKED_FIRST: set[Callable[..., Any]] = set()


def checked_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function whose arguments are checked before the call."""
    _CHECKED_FIRST.add(function)
    return function


def has_call_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that raises PyTorch's errors for its arguments itself."""
    _WITH_OWN_ERRORS.add(function)
    return function


def _published_with_call_errors(function: Any, place: str, name: str) -> Any:
    """The function to publish at an address: one that is not a declared operator gets PyTorch's errors for its
    arguments, and accepts funcgrad's arrays as tensors."""
    if place not in _OF_TENSORS or name.startswith("_") or not isinstance(function, FunctionType):
        return function
    if function in _WITH_OWN_ERRORS:
        return function
    if name in _OF_ANYTHING or not defining_module(function).startswith(_OPERATORS):
        return function
    of_torch = names_of("torch")
    if place == "nn.functional" and name in _OF_TORCH and of_torch.loaded_under(name) is function:
        return of_torch[name]
    where = f"{place}.{name}"
    said = with_call_errors(function, where, function in _CHECKED_FIRST)
    said.__module__, said.__qualname__ = "compat" if place == "torch" else f"compat.{place}", name
    return said


#: The namespaces of functions of tensors, and the package that defines them.
_OF_TENSORS = ("torch", "nn.functional", "linalg", "special", "fft")
_OPERATORS = "compat._operators."
#: Functions of ``nn.functional`` that are those of ``torch``.
_OF_TORCH = frozenset(
    ["adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d"]
    + ["conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink"]
    + ["pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rrelu_", "selu_"]
    + ["threshold_"]
)
#: Functions of other values than tensors, which check their arguments themselves.
_OF_ANYTHING = frozenset(
    ["as_tensor", "asarray", "broadcast_tensors", "einsum", "from_dlpack", "from_numpy", "frombuffer", "meshgrid"]
    + ["sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor"]
    + ["sparse_csr_tensor", "tensor"]
)
publishing.append(_published_with_call_errors)
