"""The deprecated overloads from before PyTorch 1.5: ``x.add_(-lr, grad)``, ``x.addcdiv_(-lr, mean, scale)``.

Factors were among the tensors, and are keyword arguments now. Such calls run, with PyTorch's warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import Once


def older_call(
    name: str, params: Sequence[str], factors: Sequence[str], run: Callable[..., Any], args: Sequence[Any], out: Any
) -> Any:
    """Calls ``run`` with the factors among ``args`` as keyword arguments.

    Args:
        name: the operation's name.
        params: the names of its tensors.
        factors: the names of the numbers among the arguments, in order; the last may be omitted.
        run: the operation.
        args: all positional arguments.
        out: the argument ``out``, or None.

    Raises:
        TypeError: for more arguments than the deprecated overload has.

    Example:
        >>> import compat as torch
        >>> one, three = torch.tensor([1.0, 3.0])
        >>> older_call("add", ("input", "other"), ("alpha",), torch.add, (one, 2, three), None)
        tensor(7.)
    """
    places = [i for i, a in enumerate(args) if not isinstance(a, Tensor)]
    if len(factors) == 1 and places == [1, 2] and isinstance(args[2], (int, float, complex)):
        places = [1]  # the second operand of a sum may be a number
    tensors = [a for i, a in enumerate(args) if i not in places]
    # One factor comes after the first tensor; of two the first may come before it, and the second after both.
    if places not in ([1],) if len(factors) == 1 else places not in ([0], [1], [0, 2], [1, 2]):
        raise TypeError(f"{name}() takes {len(params)} positional arguments but {len(args)} were given")
    numbers = dict(zip(factors, (args[i] for i in places)))
    _warn(name, params, list(numbers), places)
    return run(*tensors, **numbers, **({} if out is None else {"out": out}))


def _warn(name: str, params: Sequence[str], numbers: Sequence[str], places: Sequence[int]) -> None:
    """Gives the deprecation warning, once per program."""
    before = [f"Tensor {p}" for p in params]
    for place, number in zip(places, numbers):
        before.insert(place, f"Number {number}")
    after = [*(f"Tensor {p}" for p in params), "*", *(f"Number {n} = 1" for n in numbers)]
    shown = slice(1, None) if name.endswith("_") else slice(None)  # a method's own tensor is not shown
    Once.warn(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(before[shown])})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({', '.join(after[shown])})",
        key="deprecated overload",
    )
