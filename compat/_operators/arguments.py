"""Argument checks for composites, whose Python code would otherwise accept types that PyTorch rejects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy

from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import all_taken, any_to_take, taken
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import type_name, wrong_argument, wrong_combination


def tensor_argument(function: str, name: str, position: int, value: Any) -> Tensor:
    """An argument that must be a tensor.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    if not isinstance(value, Tensor):
        value = taken(value)
        if not isinstance(value, Tensor):
            raise wrong_argument(function, name, position, "Tensor", value)
    return value


def float_argument(function: str, name: str, position: int, value: Any) -> float:
    """An argument that must be a real number, or a tensor of one that needs no gradient.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    number = isinstance(value, (int, float, numpy.number)) and not isinstance(value, complex)
    if number or (isinstance(value, Tensor) and not value.dim() and not value.requires_grad):
        return float(value)
    raise wrong_argument(function, name, position, "float", value)


def bools_argument(function: str, **values: Any) -> None:
    """Arguments that must be bools, by name.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    for name, value in values.items():
        if not isinstance(value, (bool, numpy.bool_)):
            raise wrong_argument(function, name, None, "bool", value)


def loss_arguments(function: str, *given: tuple[str, Any, type]) -> None:
    """Checks the types of a loss's arguments.

    Args:
        given: the arguments in order, each as name, value and type. ``int`` accepts every integer except bools,
            ``float`` every real number and tensors.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    for i, (name, value, kind) in enumerate(given):
        if not isinstance(value, _KINDS.get(kind, kind)) or (kind is int and isinstance(value, bool)):
            raise wrong_argument(function, name, i + 1, kind.__name__, value)


#: The accepted classes of values by type.
_KINDS: dict[type, Any] = {
    bool: bool | numpy.bool_,
    int: int | numpy.integer,
    float: int | float | numpy.number | Tensor,
}


def no_complex_derivative(function: str, *values: Tensor) -> None:
    """Checks that recorded operands are real, for functions without a derivative for complex ones.

    Raises:
        RuntimeError: for complex tensors, if the function is recorded.
    """
    if mode.grad and values[0].is_complex() and any(t.requires_grad for t in values):
        raise RuntimeError(f"{function} does not support automatic differentiation for outputs with complex dtype.")


def keywords_only(function: str, given: Sequence[Any]) -> None:
    """Checks that there are no positional arguments.

    Raises:
        TypeError: with their number.
    """
    if given:
        count = f"{len(given)} was" if len(given) == 1 else f"{len(given)} were"
        raise TypeError(f"{function}() takes 0 positional arguments but {count} given")


def tensors_argument(function: str, value: Any, name: str = "tensors", position: int = 1) -> tuple[Tensor, ...]:
    """An argument that must be a sequence of tensors.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    if not isinstance(value, (tuple, list)):
        raise wrong_argument(function, name, position, "tuple of Tensors", value)
    value = all_taken(value) if any_to_take(value) else value
    for i, t in enumerate(value):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {position - 1}, but got {type(t).__name__}")
    return tuple(value)


def size_argument(function: str, name: str, position: int, given: Sequence[Any]) -> tuple[int, ...]:
    """A size, given as one sequence or as separate integers.

    Raises:
        TypeError: naming the function, the argument, and its type.
    """
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    for i, n in enumerate(given):
        if not hasattr(n, "__index__"):
            if i == 0:
                raise wrong_argument(function, name, position, "tuple of ints", n)
            raise TypeError(
                f"{function}(): argument '{name}' failed to unpack the object at pos {i + 1} with error \"type must be "
                f'tuple of ints,but got {type(n).__name__}"'
            )
    return tuple([n.__index__() for n in given])


def check_view_size(size: Sequence[Any]) -> None:
    """Raises the error of ``Tensor.view`` for an argument that is neither a size nor a dtype.

    Raises:
        TypeError: naming the type of the argument.
    """
    if size and isinstance(size[0], (tuple, list, SupportsIndex)) and not isinstance(size[0], bool):
        size_argument("view", "size", 1, size)
        return
    reason = (
        f"      didn't match because some of the arguments have invalid types: (!{type_name(size[0])}!)\n"
        if size
        else ""
    )
    overloads = f" * (torch.dtype dtype)\n{reason} * (tuple of ints size)\n{reason}"
    raise TypeError(f"{wrong_combination('view', size)}, but expected one of:\n{overloads}")


def missing(function: str, *names: str) -> TypeError:
    """The error for missing arguments: ``zeros() missing 1 required positional arguments: "size"``."""
    listed = ", ".join(f'"{n}"' for n in names)
    return TypeError(f"{function}() missing {len(names)} required positional arguments: {listed}")
