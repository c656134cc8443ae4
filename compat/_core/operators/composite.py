"""Composites, functions of other operators: their publication with schemas, and their ``out`` variants."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

from compat._core.dispatch.dispatcher import SEEN
from compat._core.operators.call_errors import (
    checked_first,
    has_call_errors,
    of_tensors,
    publish_methods,
    with_call_errors,
)
from compat._core.operators.declaration import OpDeclarationError
from compat._core.operators.out import check_dtype, resize_out
from compat._core.schema.overload import carry, overloads
from compat._core.tensor.registry import named, publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.errors import recorded_out

#: The last arguments in the schemas of factories.
OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def composite(
    *schemas: str,
    names: str | None = None,
    out: bool | Literal["own"] | Callable[..., None] = False,
    without_out: str = "",
    errors: Literal["after", "before", "own"] = "after",
    last: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publishes a function that calls other operations, which are recorded in its place.

    Args:
        schemas: its overloads, in PyTorch's grammar; none for PyTorch's Python functions, whose errors are Python's.
        names: its addresses; by default in ``torch`` and ``Tensor``, under the name of the schemas.
        out: whether it has an argument ``out``; a function ``(result, out, operands)`` that raises an error for a
            result that may not be written into ``out`` (``compat._core.operators.out.of_dtype``); ``"own"`` for a
            function that handles ``out`` itself.
        without_out: the names of overloads without ``out``.
        errors: when arguments are checked against the schemas: ``"after"`` a call has failed; ``"before"`` the call,
            for a function that would accept more than PyTorch's; ``"own"`` for a method that checks them itself.
        last: the operation by which PyTorch writes into ``out``, for errors about tensors that require grad.

    Raises:
        OpDeclarationError: for another value of ``errors``, and for neither schemas nor names.

    Example:
        The row of ``kron`` is ``@composite("kron(Tensor self, Tensor other) -> Tensor", out=...)``.

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
            publish_methods(function, methods, errors == "before")  # methods have no ``out``
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
        return named(every[0]) if every[0] in SEEN else given

    return declare


def _takes_its_own(result: Tensor, out: Tensor, operands: Any) -> None:
    check_dtype(result, out, exact=True)


def _with_out(function: Callable[..., Any], takes: Callable[..., None], where: str, last: str) -> Callable[..., Any]:
    """The public function at an address, with an argument ``out``."""
    name = function.__name__

    def into(out: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        refused = mode.grad and any(t.requires_grad for t in tensors_in([out, args, kwargs]))
        if refused and not last:
            raise recorded_out(name)
        with no_grad():
            result = function(*args, **kwargs)
            if refused:
                raise recorded_out(last)
            takes(result, out, args)
            resize_out(out, tuple(result.shape))
            out.copy_(result)
        return out

    return has_call_errors(with_call_errors(function, where, into=into))
