"""What is written in terms of other operations: how it is made public, and how it writes into ``out``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat.grad_mode import mode, no_grad
from compat.ops.complaints import of_tensors, publish_methods
from compat.ops.out import check_dtype, resize_out
from compat.registry import publish
from compat.tensor import Tensor


def composite(
    *names: str, out: bool | Callable[..., None] = False, checked: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of tensors public that calls other operations; the graph is theirs.

    As a method it complains of its arguments as methods do, for the price of one more call.

    Args:
        names: where it appears.
        out: whether it takes ``out``, a tensor for the result; a function ``(result, out, operands)`` that raises
            where one may not be written into the other (``compat.ops.out.of_dtype``).
        checked: whether a method looks at its arguments first: for what does little with them.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        methods, others = of_tensors(names)
        publish_methods(function, methods, checked)  # which take no out
        takes = out if callable(out) else _takes_its_own
        return publish(_with_out(function, takes) if out else function, *others)

    return declare


def _takes_its_own(result: Tensor, out: Tensor, operands: Any) -> None:
    check_dtype(result, out, exact=True)


def _with_out(function: Callable[..., Any], takes: Callable[..., None]) -> Callable[..., Any]:
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if mode.grad and any(t.requires_grad for t in (out, *_tensors(args), *_tensors(kwargs.values()))):
            raise RuntimeError(
                f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                "the arguments requires grad."
            )
        with no_grad():
            result = function(*args, **kwargs)
            takes(result, out, args)
            resize_out(out, tuple(result.shape))
            out.copy_(result)
        return out

    return call


def _tensors(values: Any) -> list[Tensor]:
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif isinstance(v, tuple | list):
            found += _tensors(v)
    return found
