"""Declaration of pointwise operators: checks of dtypes, ``unary`` and ``binary``, overloads, Python's operators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy

from compat._core.operators.call_errors import call_error, has_call_errors
from compat._core.operators.declaration import Dtypes, Late
from compat._core.operators.op import Op, pointwise
from compat._core.operators.operator_base import Entry
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

#: The functions whose in-place variant is a method of tensors and a function in ``torch``.
_INPLACE_IN_TORCH = frozenset(
    """
    abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max
    clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac gcd i0 lcm ldexp log
    log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal round rsqrt sigmoid sin sinc sinh sqrt
    square tan tanh trunc xlogy
    """.split()  # noqa: SIM905
)


def common(operands: Sequence[Any], floating: bool = False) -> dtype.dtype:
    """The dtype that tensors and numbers are promoted to; with ``floating``, the default dtype in place of integers."""
    groups: tuple[list, list, list] = ([], [], [])
    for x in operands:
        if isinstance(x, Tensor):
            groups[0 if x._layout_.ndim else 1].append(x._layout_.dtype)
        elif isinstance(x, NUMBERS):
            groups[2].append(type(x))
    found = common_dtype(*groups)
    return dtype.get_default_dtype() if floating and found.category < dtype.FLOATING else found


def refuses(
    kernel: str, categories: str, *, message: str = "", error: type[Exception] = NotImplementedError,
    first: bool = False,
) -> Callable[..., None]:  # fmt: skip
    """A check that the dtype of the operands is not of certain categories.

    Args:
        kernel: PyTorch's name of the kernel that lacks the dtype.
        categories: words of ``bool integer float complex``.
        message: the message instead of ``"kernel" not implemented for 'Dtype'``.
        first: whether only the first operand is checked.
    """
    refused = {_CATEGORIES[word] for word in categories.split()}

    def check(*operands: Any, **_: Any) -> None:
        found = common(operands[:1] if first else operands)
        if found.category in refused:
            raise error(message or f"\"{kernel}\" not implemented for '{found.scalar_name}'")

    return check if message else Late(check)


def checks(*each: Callable[..., None]) -> Callable[..., None]:
    """Several checks as one; those of class ``Late`` run after the check that sizes broadcast."""

    def all_of(some: list[Callable[..., None]]) -> Callable[..., None]:
        def check_all(*operands: Any, **named: Any) -> None:
            for check in some:
                check(*operands, **named)

        return check_all

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


def as_dtype_of(value: Any, like: Any) -> Any:
    """A number or an array in the dtype of the array ``like``."""
    return np.astype(value, type_of(like).dtype)


def zeros_like(x: Any) -> Any:
    """Zeros of the shape and dtype of an array."""
    return np.zeros(type_of(x).shape, type_of(x).dtype)


def category(x: Any) -> int:
    """The category of an array's dtype: ``BOOL``, ``INTEGER``, ``FLOATING`` or ``COMPLEX``."""
    return dtype.from_numpy(type_of(x).dtype).category


# ---------------------------------------------------------------- declarations


def document(addresses: str, summary: str, arguments: str, example: str) -> str:
    """The docstring of a pointwise operator; empty for one that is not public.

    Args:
        addresses: the operator's public names, of which the example uses the first.
        summary: the first line.
        arguments: the description of the arguments.
        example: the arguments of the example.
    """
    if not addresses or not summary:
        return ""
    address = addresses.split(maxsplit=1)[0].removeprefix("torch.")
    return _DOCUMENT.format(summary=summary, arguments=arguments, call=f"torch.{address}({example})")


_DOCUMENT = """{summary}

Args:
    {arguments}
    out: a tensor to write the result into.

Returns:
    A tensor of the operands' broadcast size, in their memory format.

Raises:
    NotImplementedError, RuntimeError: for dtypes for which it is not defined.
    RuntimeError: for sizes that do not broadcast.

Example:
    >>> import compat as torch
    >>> y = {call}
"""


def spread_names(name: str, aliases: str) -> tuple[str, str]:
    """The addresses of a function and of its in-place variant, from its name and its aliases.

    Aliases with a dot (``special.expit``) are addresses of the function.
    """
    plain = [name, *[a for a in aliases.split() if "." not in a]]
    dotted = [a for a in aliases.split() if "." in a]
    addresses = [f"{namespace}.{n}" for n in plain for namespace in ("torch", "Tensor")]
    inplace = [
        f"{namespace}.{n}_"
        for n in plain
        for namespace in ("torch", "Tensor")
        if namespace == "Tensor" or n in _INPLACE_IN_TORCH
    ]
    return " ".join(addresses + dotted), " ".join(inplace)


def unary(
    name: str,
    node: str | None,
    body: Callable[[Any], Any],
    summary: str,
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
        summary: the first line of the docstring.
        names: its addresses, by default from its name and ``aliases`` by ``spread_names``.
        inplace: whether there is an in-place variant.
        example: the arguments of the example in the docstring.
        backward: an explicit backward formula, in place of the derived one.
        node, dtypes, options: arguments of ``pointwise``.
    """
    addresses = _addresses(name, aliases, inplace) if names is None else names

    def function(input: Any) -> Any:
        return body(input)

    function.__module__ = sys._getframe(1).f_globals["__name__"]  # the module of the declaration
    function.__doc__ = document(addresses, summary, "input: a tensor.", example)
    op = pointwise(f"{name}(Tensor self) -> Tensor", node=node, names=addresses, dtypes=dtypes, **options)(function)
    if backward is not None:
        op.backward(backward)
    return op


def binary(
    name: str,
    node: str | None,
    body: Callable[[Any, Any], Any],
    summary: str,
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
        overloads: the names of one to three overloads: for two tensors; for a number as the second argument; or, of
            three names, the second for a number as the first argument and the third for one as the second.
        body, summary, names, aliases, inplace, example, backward, node, options: as for ``unary``.
    """
    addresses = _addresses(name, aliases, inplace) if names is None else names
    with_number = {
        3: ["Scalar self, Tensor other", "Tensor self, Scalar other"],
        2: ["Tensor self, Scalar other"],
        1: [],
    }
    overload_names = overloads.split()
    schemas = [
        f"{name}.{overload}({arguments}) -> Tensor".replace(".default", "")
        for overload, arguments in zip(overload_names, ["Tensor self, Tensor other", *with_number[len(overload_names)]])
    ]

    def function(input: Any, other: Any) -> Any:
        return body(input, other)

    function.__module__ = sys._getframe(1).f_globals["__name__"]
    function.__doc__ = document(addresses, summary, "input, other: tensors; their dtypes are promoted.", example)
    op = pointwise(*schemas, node=node, names=addresses, **options)(function)
    if backward is not None:
        op.backward(backward)
    return op


def _addresses(name: str, aliases: str, inplace: bool) -> str:
    addresses, inplace_addresses = spread_names(name, aliases)
    return f"{addresses} {inplace_addresses}" if inplace else addresses


def divisor(x: Any) -> Any:
    """The divisor with positive complex zeros, so that a quotient by zero has the sign of the numerator."""
    if category(x) != dtype.COMPLEX:
        return x
    zero = e.number(0, x)
    addend = np.where(x == zero, zero, e.number(complex(-0.0, -0.0), x))  # -0 + 0 is 0, and y + -0 is y
    return x + e.stop_gradient(addend)


def zero_gradient(ct: Any) -> Any:
    """The backward formula of piecewise constant functions."""
    return zeros_like(ct)


# ---------------------------------------------------------------- several operations under one name


def overloaded(
    *operators: Op, aliases: str = "", inplace: bool = True, method: bool = True
) -> Callable[[Callable[..., Op]], Callable[..., Any]]:
    """Publishes a function that chooses among operators by its arguments.

    The decorated function has the parameters that users see, and returns the operator to call with them.

    Args:
        operators: the operators to choose among, whose overloads the function gets.
        aliases: as for ``spread_names``.
        inplace: whether there is an in-place variant.
        method: whether the function is a method of tensors, too.

    Returns:
        The public function; its attribute ``inplace`` is the in-place variant.
    """

    def declare(choose: Callable[..., Op]) -> Callable[..., Any]:
        name = choose.__name__
        addresses, inplace_addresses = (text.split() for text in spread_names(name, aliases))
        functions = [_entry(address, choose, "function", operators) for address in addresses]
        inplace_functions = [_entry(address, choose, "inplace", operators) for address in inplace_addresses]
        for address, function in zip(addresses, functions):
            if method or not address.startswith("Tensor."):
                publish(function, address)
        for address, function in zip(inplace_addresses, inplace_functions) if inplace else ():
            publish(function, address)
        functions[0].inplace = inplace_functions[0]  # type: ignore[attr-defined]
        return functions[0]

    return declare


def _entry(address: str, choose: Callable[..., Op], variant: str, operators: Sequence[Op]) -> Callable[..., Any]:
    """The function, method or in-place variant at an address, which calls the chosen operator."""
    method, name = address.startswith("Tensor."), address.rpartition(".")[2]

    def call(*args: Any, **named: Any) -> Any:
        try:
            if not named:
                return getattr(choose(*args), variant)(*args)
            given = {k: v for k, v in named.items() if k != "out"}
            return getattr(choose(*args, **given), variant)(*args, **(given if named.get("out") is None else named))
        except Exception:
            converted = mixed(args, named)
            error = call_error(address, args[method:], named) if converted is None else None
            if converted is None and error is None:
                raise
        if converted is not None:
            return call(*converted[0], **converted[1])
        raise error  # type: ignore[misc]

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = choose.__doc__, choose.__module__
    carry(call, together((getattr(op, variant) for op in operators), method))
    return has_call_errors(call)


# ---------------------------------------------------------------- functions that call operations


def new_or_inplace(op: Op, inplace: Op | bool, *args: Any) -> Tensor:
    """The result of ``op``; with ``inplace``, of the in-place variant of that operator, or of ``op`` if it is True."""
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


def without_backward(t: Tensor, message: str) -> Tensor:
    """The result of an in-place operation whose backward needs the overwritten operand, and raises an error."""

    def raise_error(*_: Any) -> None:
        raise RuntimeError(message)

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
    """Publishes an operator as the methods ``names``, which return ``NotImplemented`` for unknown operands.

    The methods share the operator's plans.

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
        publish(Entry(op, name, missed, plans, out=False, writes=inplace).function, f"Tensor.{name}")


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
