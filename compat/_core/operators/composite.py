"""What is written in terms of other operations: how it is made public, and how it writes into ``out``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.operators.call_errors import complaint, of_tensors, publish_methods, speaks
from compat._core.operators.out import check_dtype, resize_out
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import mixed
from compat._core.transforms.grad_mode import mode, no_grad


def composite(
    *names: str, out: bool | Callable[..., None] = False, checked: bool = False, last: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of tensors public that calls other operations; the graph is theirs.

    As a method it complains of its arguments as methods do, for the price of one more call.

    Args:
        names: where it appears.
        out: whether it takes ``out``, a tensor for the result; a function ``(result, out, operands)`` that raises
            where one may not be written into the other (``compat._core.operators.out.of_dtype``).
        last: the operation that PyTorch writes into ``out`` by: it is that one which complains of what requires grad.
        checked: whether a method looks at its arguments first: for what does little with them.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        methods, others = of_tensors(names)
        publish_methods(function, methods, checked)  # which take no out
        if not out:
            return publish(function, *others)
        takes = out if callable(out) else _takes_its_own
        made = [publish(_with_out(function, takes, name, last), name) for name in others]
        return made[0] if made else _with_out(function, takes, "", last)

    return declare


def _takes_its_own(result: Tensor, out: Tensor, operands: Any) -> None:
    check_dtype(result, out, exact=True)


def _with_out(function: Callable[..., Any], takes: Callable[..., None], where: str, last: str) -> Callable[..., Any]:
    """A function that also takes ``out``, public at an address."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs) if out is None else into(out, args, kwargs)
        except Exception:
            again = mixed(args, kwargs)
            problem = complaint(where, args, kwargs if out is None else kwargs | {"out": out}) if not again else None
            if again is None and problem is None:
                raise
        if again is not None:
            return call(*again[0], out=out, **again[1])
        raise problem  # type: ignore[misc]

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

    return speaks(call)


def _tensors(values: Any) -> list[Tensor]:
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif isinstance(v, tuple | list):
            found += _tensors(v)
    return found
