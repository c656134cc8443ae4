"""Declarations of pointwise operations: shared options, dtype checks, Python's operators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy

from compat._core.operators.call_errors import call_error, has_call_errors
from compat._core.operators.declaration import Dtypes, Late
from compat._core.operators.op import Op, pointwise
from compat._core.schema.overload import carry, together
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.tensor.tracing import ARRAYS, mixed, taken
from compat._core.types import dtype
from compat._core.types.errors import wrong_combination
from compat._core.types.type_promotion import common_dtype
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

#: The kinds of dtypes that a check may refuse.
_CATEGORIES = {"bool": dtype.BOOL, "integer": dtype.INTEGER, "float": dtype.FLOATING, "complex": dtype.COMPLEX}

NUMBERS = (bool, int, float, complex)

#: The functions with an in-place variant in ``torch`` beside the method.
_INPLACE_IN_TORCH = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "clip",
        "conj_physical",
        "cos",
        "cosh",
        "deg2rad",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "fix",
        "floor",
        "frac",
        "gcd",
        "i0",
        "lcm",
        "ldexp",
        "log",
        "log10",
        "log1p",
        "log2",
        "logit",
        "nan_to_num",
        "neg",
        "negative",
        "rad2deg",
        "reciprocal",
        "round",
        "rsqrt",
        "sigmoid",
        "sin",
        "sinc",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
        "xlogy",
    ]
)


def common(operands: Sequence[Any], floating: bool = False) -> dtype.dtype:
    """The dtype that tensors and numbers have in common; with ``floating``, the default one for integers."""
    groups: tuple[list, list, list] = ([], [], [])
    for x in operands:
        if isinstance(x, Tensor):
            groups[0 if x._layout_.ndim else 1].append(x._layout_.dtype)
        elif isinstance(x, NUMBERS):
            groups[2].append(type(x))
    found = common_dtype(*groups)
    return dtype.get_default_dtype() if floating and found.category < dtype.FLOATING else found


def refuses(
    kernel: str, what: str, *, message: str = "", error: type[Exception] = NotImplementedError, first: bool = False
) -> Callable[..., None]:
    """A check that the dtype of the operands is not of certain kinds.

    Args:
        kernel: PyTorch's name of the kernel that lacks the dtype.
        what: the kinds: words of ``bool integer float complex``.
        message: the message instead of ``"kernel" not implemented for 'Dtype'``.
        first: whether only the first operand is checked.
    """
    refused = {_CATEGORIES[word] for word in what.split()}

    def check(*operands: Any, **_: Any) -> None:
        found = common(operands[:1] if first else operands)
        if found.category in refused:
            raise error(message or f"\"{kernel}\" not implemented for '{found.scalar_name}'")

    return check if message else Late(check)


def checks(*each: Callable[..., None]) -> Callable[..., None]:
    """Several checks as one; those of class ``Late`` run after the check that sizes broadcast."""

    def all_of(some: list[Callable[..., None]]) -> Callable[..., None]:
        def check(*operands: Any, **named: Any) -> None:
            for one in some:
                one(*operands, **named)

        return check

    early = all_of([c for c in each if not isinstance(c, Late)])
    late: list[Callable[..., None]] = [c for c in each if isinstance(c, Late)]
    return Late(all_of(late), early) if late else early


def not_numbers_alone(name: str) -> Callable[..., None]:
    """A check that operands, which may be numbers, are not all numbers.

    Args:
        name: the function's name in error messages.
    """

    def check(*operands: Any, **_: Any) -> None:
        if not any(isinstance(x, Tensor) for x in operands):
            raise wrong_combination(name, operands)

    return check


# ---------------------------------------------------------------- helpers of formulas


def filled(x: Any, value: Any) -> Any:
    """A number in the dtype of an array."""
    return np.astype(value, type_of(x).dtype)


def zeros_like(x: Any) -> Any:
    """Zeros of the shape and dtype of an array."""
    return np.zeros(type_of(x).shape, type_of(x).dtype)


def category(x: Any) -> int:
    """``BOOL``, ``INTEGER``, ``FLOATING`` or ``COMPLEX``, of an array."""
    return dtype.from_numpy(type_of(x).dtype).category


# ---------------------------------------------------------------- declarations


def document(places: str, what: str, arguments: str, example: str) -> str:
    """The docstring of a pointwise operation that appears at ``places``; none for one that is not public."""
    if not places or not what:
        return ""
    address = places.split(maxsplit=1)[0].removeprefix("torch.")
    return _DOCUMENT.format(what=what, arguments=arguments, call=f"torch.{address}({example})")


_DOCUMENT = """{what}

Args:
    {arguments}
    out: a tensor to write the result into.

Returns:
    A tensor of the operands' broadcast size, in their memory order.

Raises:
    NotImplementedError, RuntimeError: for dtypes for which it is not defined.
    RuntimeError: for sizes that do not broadcast.

Example:
    >>> import compat as torch
    >>> y = {call}
"""


def spread_names(name: str, aliases: str) -> tuple[str, str]:
    """The addresses of a function and of its in-place variant, from its name and its other names.

    Aliases with a dot (``special.expit``) are addresses already.
    """
    plain = [name, *[a for a in aliases.split() if "." not in a]]
    dotted = [a for a in aliases.split() if "." in a]
    places = [f"{place}.{n}" for n in plain for place in ("torch", "Tensor")]
    inplace = [
        f"{place}.{n}_" for n in plain for place in ("torch", "Tensor") if place == "Tensor" or n in _INPLACE_IN_TORCH
    ]
    return " ".join(places + dotted), " ".join(inplace)


def unary(
    name: str,
    node: str | None,
    body: Callable[[Any], Any],
    what: str,
    *,
    names: str | None = None,
    aliases: str = "",
    inplace: bool = True,
    dtypes: Dtypes | Literal["common", "float"] = "float",
    example: str = "torch.tensor([0.25, 0.5])",
    backward: Callable[..., Any] | None = None,
    **options: Any,
) -> Op:
    """Declares a function of one tensor, ``NAME(Tensor self) -> Tensor``.

    Args:
        body: the function.
        what: the first line of the docstring.
        names: its addresses; by default those that ``spread_names`` makes of its name and ``aliases``.
        backward: an explicit backward formula, in place of the derived one.
        node, dtypes, options: as ``pointwise`` takes them.
    """
    places = _places(name, aliases, inplace) if names is None else names

    def function(input: Any) -> Any:
        return body(input)

    function.__module__ = sys._getframe(1).f_globals["__name__"]  # the module of the declaration
    function.__doc__ = document(places, what, "input: a tensor.", example)
    declared = pointwise(f"{name}(Tensor self) -> Tensor", node=node, names=places, dtypes=dtypes, **options)(function)
    if backward is not None:
        declared.backward(backward)
    return declared


def binary(
    name: str,
    node: str | None,
    body: Callable[[Any, Any], Any],
    what: str,
    *,
    overloads: str = "default",
    names: str | None = None,
    aliases: str = "",
    inplace: bool = True,
    example: str = "torch.tensor([0.5, 2.0]), torch.tensor([1.5, 1.0])",
    backward: Callable[..., Any] | None = None,
    **options: Any,
) -> Op:
    """Declares a function of two tensors, ``NAME(Tensor self, Tensor other) -> Tensor``.

    Args:
        overloads: their names: for two tensors, for a number first, for a number second; two names are without the
            second of these.
        body, what, names, aliases, inplace, backward, node, options: as for ``unary``.
    """
    places = _places(name, aliases, inplace) if names is None else names
    taken = {3: ["Scalar self, Tensor other", "Tensor self, Scalar other"], 2: ["Tensor self, Scalar other"], 1: []}
    own = overloads.split()
    schemas = [
        f"{name}.{overload}({arguments}) -> Tensor".replace(".default", "")
        for overload, arguments in zip(own, ["Tensor self, Tensor other", *taken[len(own)]])
    ]

    def function(input: Any, other: Any) -> Any:
        return body(input, other)

    function.__module__ = sys._getframe(1).f_globals["__name__"]
    function.__doc__ = document(places, what, "input, other: tensors; their dtypes are promoted.", example)
    declared = pointwise(*schemas, node=node, names=places, **options)(function)
    if backward is not None:
        declared.backward(backward)
    return declared


def _places(name: str, aliases: str, inplace: bool) -> str:
    places, within = spread_names(name, aliases)
    return f"{places} {within}" if inplace else places


def divisor(x: Any) -> Any:
    """The divisor, whose complex zeros are made positive: the sign of a quotient by zero is that of the numerator."""
    if category(x) != dtype.COMPLEX:
        return x
    zero = e.number(0, x)
    nothing = np.where(x == zero, zero, e.number(complex(-0.0, -0.0), x))
    return x + e.stop_gradient(nothing)  # the derivative is that of ``x``


def zero_gradient(ct: Any) -> Any:
    """The backward of piecewise constant functions."""
    return zeros_like(ct)


# ---------------------------------------------------------------- several operations under one name


def overloaded(
    *operators: Op, aliases: str = "", inplace: bool = True, method: bool = True
) -> Callable[[Callable[..., Op]], Callable[..., Any]]:
    """Publishes a function that chooses among operators by its arguments.

    The decorated function has the parameters that users see, and returns the operator to call with them.

    Args:
        operators: the operators to choose among: their overloads are the function's.
        aliases: other names, as for ``spread_names``.
        inplace: whether there is an in-place variant.
        method: whether it is a method of tensors, too.

    Returns:
        The public function; its ``inplace`` attribute is the variant.
    """

    def declare(choose: Callable[..., Op]) -> Callable[..., Any]:
        name = choose.__name__
        places, inplace_places = spread_names(name, aliases)
        made = [_calling(place, choose, "function", operators) for place in places.split()]
        variants = [_calling(place, choose, "inplace", operators) for place in inplace_places.split()]
        for place, function in zip(places.split(), made):
            if method or not place.startswith("Tensor."):
                publish(function, place)
        for place, variant in zip(inplace_places.split(), variants) if inplace else ():
            publish(variant, place)
        made[0].inplace = variants[0]  # type: ignore[attr-defined]
        return made[0]

    return declare


def _calling(where: str, choose: Callable[..., Op], which: str, operators: Sequence[Op]) -> Callable[..., Any]:
    """The function, method or in-place variant that calls the chosen operator, for an address."""
    method, name = where.startswith("Tensor."), where.rpartition(".")[2]

    def call(*args: Any, **named: Any) -> Any:
        try:
            if not named:
                return getattr(choose(*args), which)(*args)
            given = {k: v for k, v in named.items() if k != "out"}
            return getattr(choose(*args, **given), which)(*args, **(given if named.get("out") is None else named))
        except Exception:
            again = mixed(args, named)
            problem = call_error(where, args[method:], named) if again is None else None
            if again is None and problem is None:
                raise
        if again is not None:
            return call(*again[0], **again[1])
        raise problem  # type: ignore[misc]

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = choose.__doc__, choose.__module__
    carry(call, together((getattr(op, which) for op in operators), method))
    return has_call_errors(call)


# ---------------------------------------------------------------- functions that call operations


def new_or_inplace(op: Op, inplace: Op | bool, *args: Any) -> Tensor:
    """The result of ``op``: new, or written into its operand, by ``inplace`` if that is an operation."""
    if not inplace:
        return op.function(*args)
    return (inplace if isinstance(inplace, Op) else op).inplace(*args)


NEGATIVE_SLOPE = (
    "In-place {} backward calculation is triggered with a negative slope which is not supported. This is caused by "
    "calling in-place forward function with a negative slope, please call out-of-place version instead."
)
NEGATIVE_LEAK = (
    f"{NEGATIVE_SLOPE.format('leakyReLu')} File an issue at https://github.com/pytorch/pytorch if you do require "
    "supporting in-place leakRelu backward calculation with negative slope"
)


def not_backwards(t: Tensor, text: str) -> Tensor:
    """A result written over an operand that the derivative needs: its backward raises an error of that text."""

    def raise_error(*_: Any) -> None:
        raise RuntimeError(text)

    if t.grad_fn is not None:
        t.grad_fn.register_prehook(raise_error)
    return t


def only_floating(kernel: str) -> Callable[..., None]:
    """A check that the first operand is floating-point; the others are not checked."""
    return refuses(kernel, "bool integer complex", first=True)


# ---------------------------------------------------------------- operators


def is_operand(x: Any) -> bool:
    """Whether Python's operators of tensors accept ``x`` as the other operand."""
    return isinstance(x, (Tensor, bool, int, float, complex, *ARRAYS)) or (
        isinstance(x, numpy.generic) and x.dtype.kind in "biufc"
    )


def operator(op: Op, *names: str, inplace: bool = False, arrays: bool = False) -> None:
    """Publishes an operation as Python's operators ``names``, which return ``NotImplemented`` for unknown operands.

    They share the operation's plans.

    Args:
        arrays: whether the other operand may be a NumPy array.
    """
    plans, miss = (op.inplace_plans, op.miss_inplace) if inplace else (op.plans, op.miss)

    def missed(args: list[Any], out: Any = None, named: Any = None) -> Any:
        if arrays:
            args = [from_array(a) if isinstance(a, numpy.ndarray) else a for a in args]
        if not all(is_operand(a) for a in args[1:2]):
            return NotImplemented
        return miss(args, out, named)

    for name in names:
        publish(op._entry(name, missed, plans, out=False, writes=inplace), f"Tensor.{name}")


def reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A reflected operator, such as ``__radd__``: the tensor is the right operand of ``function``."""

    def method(self: Tensor, other: Any) -> Any:
        return function(taken(other), self) if is_operand(other) else NotImplemented

    return method


def straight(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator that calls ``function``, or returns ``NotImplemented`` for an unknown operand."""

    def method(self: Tensor, other: Any) -> Any:
        return function(self, taken(other)) if is_operand(other) else NotImplemented

    return method
