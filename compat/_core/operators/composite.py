"""Functions in terms of other operators: how they are made public with schemas, and how they write into ``out``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

from compat._core.dispatch.dispatcher import dispatch_function
from compat._core.operators.call_errors import (
    checked_first,
    has_call_errors,
    instead,
    of_tensors,
    publish_methods,
)
from compat._core.operators.declaration import OpDeclarationError
from compat._core.operators.out import check_dtype, resize_out
from compat._core.schema.autocast_rules import rule_of
from compat._core.schema.overload import carry, overloads
from compat._core.tensor.registry import named, publish
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode, no_grad

#: What schemas of functions that make a tensor take last.
OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def composite(
    *schemas: str,
    names: str | None = None,
    out: bool | Literal["own"] | Callable[..., None] = False,
    without_out: str = "",
    errors: Literal["after", "before", "own"] = "after",
    last: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of tensors public that calls other operations; the graph is theirs.

    Args:
        schemas: its overloads, in PyTorch's grammar; none for what PyTorch writes in Python, whose errors are Python's.
        names: where it appears; by default in ``torch`` and ``Tensor``, under the name that the schemas have.
        out: whether it takes ``out``, a tensor for the result; a function ``(result, out, operands)`` that raises
            where one may not be written into the other (``compat._core.operators.out.of_dtype``); ``"own"`` for a
            function with an ``out`` of its own, which its parameters need not show.
        without_out: the names of overloads that have no ``out`` though others do.
        errors: when its arguments are compared with the schemas: ``"after"`` a call has failed; ``"before"`` it is
            called, for a function that would take what PyTorch does not; ``"own"`` for a method that does it itself.
        last: the operation by which PyTorch writes into ``out``; errors about tensors that require grad name it.

    Raises:
        OpDeclarationError: for ``errors`` that there are not, and for neither schemas nor names.

    Example:
        Above ``kron`` stands ``@composite("kron(Tensor self, Tensor other) -> Tensor", out=...)``.

        >>> print(signature(named("torch.kron")))
        (input: 'Tensor', other: 'Tensor', *, out: 'Tensor | None' = None) -> 'Tensor'
    """
    if errors not in ("after", "before", "own") or not (schemas or names):
        raise OpDeclarationError(f"composite: errors is after, before or own, not {errors!r}, of a name")
    base = re.split("[.(]", schemas[0])[0] if schemas else ""
    every = (f"torch.{base} Tensor.{base}" if names is None else names).split()
    methods, others = of_tensors(every)

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if errors == "own":
            publish(function, *methods)
        else:
            publish_methods(function, methods, errors == "before")  # which take no out
        given = function
        if out and out != "own":
            takes = out if callable(out) else _takes_its_own
            made = [publish(_with_out(function, takes, name, last), name) for name in others]
            given = made[0] if made else _with_out(function, takes, "", last)
        else:
            publish(checked_first(function) if errors == "before" else function, *others)
        written = bool(out) or "out" in signature(function, follow_wrapped=False).parameters
        for name in every:
            carry(named(name), overloads(schemas, written and name in others, without_out))
        return given

    return declare


def _takes_its_own(result: Tensor, out: Tensor, operands: Any) -> None:
    check_dtype(result, out, exact=True)


def _with_out(function: Callable[..., Any], takes: Callable[..., None], where: str, last: str) -> Callable[..., Any]:
    """A function that also takes ``out``, public at an address."""
    name = function.__name__
    casts = rule_of(where) is not None

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            if out is not None:
                return into(out, args, kwargs)
            if casts and mode.autocast is not None:
                return dispatch_function(where, call, function, args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            found = instead(error, function, where, args, kwargs if out is None else kwargs | {"out": out})
            if found is None:
                raise
        if isinstance(found, TypeError):
            raise found
        return call(*found[0], **found[1])

    def into(out: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        refused = None
        if mode.grad and any(t.requires_grad for t in (out, *_tensors(args), *_tensors(kwargs.values()))):
            refused = RuntimeError(
                f"{last or name}(): functions with out=... arguments don't support automatic differentiation, but one "
                "of the arguments requires grad."
            )
        if refused is not None and not last:
            raise refused
        with no_grad():
            result = function(*args, **kwargs)
            if refused is not None:
                raise refused
            takes(result, out, args)
            resize_out(out, tuple(result.shape))
            out.copy_(result)
        return out

    return has_call_errors(call)


def _tensors(values: Any) -> list[Tensor]:
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif isinstance(v, tuple | list):
            found += _tensors(v)
    return found
