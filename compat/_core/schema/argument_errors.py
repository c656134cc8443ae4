"""Errors of calls with wrong arguments, with the messages of PyTorch.

This code runs only after a call has failed: ``argument_error`` compares the arguments with the schemas of the
function's overloads. Positions in messages of a method do not count the tensor itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy

from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.random.generator import Generator
from compat._core.schema.overload import OF_NUMBERS, overloads_of
from compat._core.schema.parameter import python_name
from compat._core.schema.parser import Argument, FunctionSchema
from compat._core.tensor.overridable_names import of_function
from compat._core.tensor.registry import named
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.device import device
from compat._core.types.errors import type_name
from compat._core.types.memory_format import layout, memory_format

#: Aliases of parameters.
_ALIASES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}


class _Unfit(Exception):
    """Raised for arguments that a signature does not accept."""


@dataclass(frozen=True)
class _Parameter:
    """One parameter.

    Attributes:
        kind: its type in messages.
        name: its name.
        default: its default in messages; empty for a required one.
        none: whether it may be None.
        single: whether a single value is accepted for a sequence.
        keyword: whether it is keyword-only.
    """

    kind: str
    name: str
    default: str
    none: bool
    single: bool
    keyword: bool


@dataclass(frozen=True)
class _Signature:
    """One signature of a function."""

    function: str
    shown: str
    parameters: tuple[_Parameter, ...]

    @property
    def most(self) -> int:
        """The maximum number of positional arguments."""
        return sum(not p.keyword for p in self.parameters)

    @property
    def least(self) -> int:
        """The number of required arguments."""
        return sum(not p.default for p in self.parameters)

    def too_many(self, count: int) -> _Unfit:
        """The error for too many positional arguments."""
        least, most = self.least, self.most
        if least != most:
            return _Unfit(f"takes from {least} to {most} positional arguments but {count} were given")
        was = "was" if count == 1 else "were"
        return _Unfit(f"takes {most} positional argument{'s' * (most != 1)} but {count} {was} given")

    def match(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Checks that it accepts the arguments.

        Raises:
            _Unfit: if it does not, with the reason.
        """
        several = self.most == 1 and self.parameters[0].kind == "tuple of ints" and bool(args) and _is_int(args[0])
        if len(args) > self.most and not several:
            raise self.too_many(len(args))
        place, used, sequences = 0, 0, dict[str, Sequence[Any]]()
        for i, p in enumerate(self.parameters):
            by_name = place >= len(args)
            if not by_name and p.keyword:
                raise self.too_many(len(args))
            found = [k for k in (p.name, *_ALIASES.get(p.name, ())) if k in named] if by_name else []
            if by_name and not found:
                if not p.default:
                    raise self._missing(i)
                continue
            value = named[found[0]] if by_name else args[place]
            if several and i == 0:
                sequences[p.name] = args
                place = len(args)
                continue
            if p.kind == "tuple of ints" and isinstance(value, (tuple, list)):
                sequences[p.name] = value
            self._check(p, value, None if by_name else place + 1, i)
            place += not by_name
            used += by_name
        if used < len(named):
            self._refuse_names(named, len(args))
        for name, values in sequences.items():
            _check_ints(self.function, name, values)

    def placed(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of an accepted call, positional as far as possible."""
        found, left = list(args), dict(named)
        for p in self.parameters[len(args) :]:
            own = next((k for k in (p.name, *_ALIASES.get(p.name, ())) if k in left), None)
            if p.keyword or own is None:
                break
            found.append(left.pop(own))
        return found, left

    def _missing(self, first: int) -> _Unfit:
        names = [f'"{p.name}"' for p in self.parameters[first:] if not p.default]
        s = "s" * (len(names) == 1)  # as in PyTorch
        return _Unfit(f"missing {len(names)} required positional argument{s}: {', '.join(names)}")

    def _refuse_names(self, named: Mapping[str, Any], count: int) -> None:
        places = {p.name: i for i, p in enumerate(self.parameters)}
        for name in named:
            own = next((p for p in places if name == p or name in _ALIASES.get(p, ())), None)
            if own is None:
                raise _Unfit(f"got an unexpected keyword argument '{name}'")
            if places[own] < count:
                raise _Unfit(f"got multiple values for argument '{name}'")

    def _check(self, p: _Parameter, value: Any, position: int | None, index: int) -> None:
        if value is None and p.none:
            return
        if p.kind == "tuple of Tensors" and isinstance(value, (tuple, list)):
            for i, t in enumerate(value):
                if not isinstance(t, Tensor) and t is not None:
                    raise TypeError(f"expected Tensor as element {i} in argument {index}, but got {type_name(t)}")
            return
        if p.kind == "tuple of ints" and isinstance(value, (tuple, list)) and value and _is_int(value[0]):
            return  # ``_check_ints`` checks the elements if everything else is valid
        if self._takes(p, value):
            return
        where = "" if position is None else f" (position {position})"
        what = f"not {shown_type(value)}"
        if position is not None and p.kind == "tuple of ints" and isinstance(value, (tuple, list)):
            what = f"but found element of type {type_name(value[0])} at pos 0"
        raise _Unfit(f": argument '{p.name}'{where} must be {p.kind}, {what}")

    def _takes(self, p: _Parameter, value: Any) -> bool:
        if p.kind == "Tensor" and self.function.removesuffix("_") in {*OF_NUMBERS, "copy"} and _is_number(value):
            return True
        return (p.single and _is_int(value)) or _CHECKS[p.kind](value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, numpy.number, numpy.bool_))


def _is_scalar_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.dim() and not value.requires_grad


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return _is_scalar_tensor(value) and value.dtype.category == dtype.INTEGER
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return _is_scalar_tensor(value) or (_is_number(value) and not isinstance(value, complex))


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype.dtype) or any(value is kind for kind in (bool, int, float, complex))


_CHECKS: dict[str, Any] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "Number": lambda value: _is_number(value) or _is_scalar_tensor(value),
    "int": _is_int,
    "float": _is_real,
    "bool": lambda value: isinstance(value, (bool, numpy.bool_)),
    "str": lambda value: isinstance(value, str),
    "object": lambda value: True,
    "tuple of ints": lambda value: isinstance(value, (tuple, list, range)) and not value,
    "tuple of floats": lambda value: isinstance(value, (tuple, list)) and all(map(_is_real, value)),
    "tuple of Scalars": lambda value: isinstance(value, (tuple, list)) and all(map(_is_number, value)),
    "tuple of Tensors": lambda value: False,
    "torch.dtype": _is_dtype,
    "torch.device": lambda value: isinstance(value, (str, device)) or _is_int(value),
    "torch.layout": lambda value: isinstance(value, layout),
    "torch.memory_format": lambda value: isinstance(value, memory_format),
    "torch.Generator": lambda value: isinstance(value, Generator),
    "torch.Storage": lambda value: isinstance(value, (UntypedStorage, TypedStorage)),
}


def _check_ints(function: str, name: str, values: Sequence[Any]) -> None:
    for i, n in enumerate(values):
        if not _is_int(n):
            raise TypeError(
                f"{function}(): argument '{name}' failed to unpack the object at pos {i + 1} with error \"type must be "
                f'tuple of ints,but got {type_name(n)}"'
            )


# ---------------------------------------------------------------- signatures


@cache
def signatures_of(where: str) -> tuple[_Signature, ...] | None:
    """The signatures of the function at an address; none if it takes no arguments, None if it has no schema."""
    place, _, name = where.rpartition(".")
    found = []
    for overload in overloads_of(named(where)):
        schema = FunctionSchema("aten", overload.schema)
        own = any(a.name == "self" and a.type == "Tensor" for a in schema.arguments)
        wrapped = schema.overload_name == "Scalar" and name.removesuffix("_") in _WRAPPED
        if wrapped or (place == "Tensor" and not own):
            continue
        found.append(_signature(of_function(where), schema, place == "Tensor", overload.out))
    if place == "Tensor" and len(found) == 1 and not found[0].parameters:
        return ()
    return tuple(found) or None


def has_deprecated(where: str) -> bool:
    """Whether the function at an address has a deprecated signature, which messages do not list."""
    return any(overload.deprecated for overload in overloads_of(named(where)))


#: Functions whose overload for a number is not listed, since the one for a tensor accepts it.
_WRAPPED = frozenset(["add", "sub", "mul", "div"])
#: The names in messages of the types of schemas, and of sequences of them.
_KINDS = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
    "str": "str", "ScalarType": "torch.dtype", "Layout": "torch.layout", "Device": "torch.device",
    "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator", "Storage": "torch.Storage", "Any": "object",
}  # fmt: skip
_SEQUENCES = {
    "Tensor": "tuple of Tensors", "Tensor?": "tuple of Tensors", "Scalar": "tuple of Scalars", "int": "tuple of ints",
    "SymInt": "tuple of ints", "float": "tuple of floats", "bool": "tuple of bools",
}  # fmt: skip
#: Defaults in messages.
_DEFAULTS = {
    "[]": "None", "Mean": "at::Reduction::Mean", "contiguous_format": "c10::MemoryFormat::Contiguous", "long": "None",
}  # fmt: skip
#: The arguments of factories.
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def _signature(function: str, schema: FunctionSchema, method: bool, out: bool) -> _Signature:
    """A schema as a signature in messages: ``out`` and the options of factories come last."""
    parameters = [_parameter(a) for a in schema.arguments if not (method and a.name == "self")]
    options = [p for p in parameters if p.name in _OPTIONS]
    written = []
    if out and not method:
        one = len(schema.returns) == 1 and schema.returns[0].type == "Tensor"
        written = [_Parameter("Tensor" if one else "tuple of Tensors", "out", "None", True, False, True)]
    if len(options) == len(_OPTIONS):
        asked = [*options[:3], replace(options[3], default="False")]
        asked.append(_Parameter("bool", "requires_grad", "False", True, False, True))
        parameters = [*[p for p in parameters if p not in options], *written, *asked]
    else:
        parameters += written
    shown = [f"{p.kind} {p.name}{f' = {p.default}' if p.default else ''}" for p in parameters]
    named = next((i for i, p in enumerate(parameters) if p.keyword), None)
    if named is not None:
        shown.insert(named, "*")
    return _Signature(function, ", ".join(shown), tuple(parameters))


def _parameter(argument: Argument) -> _Parameter:
    plain, text = argument.type.removesuffix("?"), argument.default_text
    element, bracket, size = plain.removesuffix("]").rpartition("[")
    default = _DEFAULTS.get(text, text)
    if default.startswith("["):
        default = f"{{{default[1:-1].replace(' ', '')}}}"
    return _Parameter(
        _SEQUENCES[element] if bracket else _KINDS[plain],
        python_name(argument),
        default.replace("'", '"'),
        plain != argument.type or default == "None",
        bool(bracket and size),
        argument.kwarg_only,
    )


# ---------------------------------------------------------------- errors


def shown_type(value: Any) -> str:
    """PyTorch's name of the type of an argument: ``torch.dtype``, ``Tensor``."""
    name = type_name(value)
    if isinstance(value, (UntypedStorage, TypedStorage)):
        return f"torch.storage.{name}"
    return f"torch.{name}" if isinstance(value, (dtype.dtype, device, layout, memory_format)) else name


def _inside(value: Any) -> str:
    """The type of an argument; for a list or tuple with the types of its elements."""
    if type(value) not in (list, tuple):
        return shown_type(value)
    within = ", ".join(map(shown_type, value))
    return f"list of [{within}]" if type(value) is list else f"tuple of ({within}{',' * (len(value) == 1)})"


def _given(args: Sequence[Any], named: Mapping[str, Any]) -> str:
    # The last keyword argument comes first, as in PyTorch.
    kinds = [shown_type(a) for a in args] + [f"{k}={shown_type(v)}" for k, v in reversed(list(named.items()))]
    return f"({', '.join(kinds)}{', ' * (not args and bool(named))})"


def _compared(signature: _Signature, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    """The arguments, with marks on those that a signature does not accept.

    As in PyTorch, types are compared as text, and the text of a parameter with a default never matches.
    """
    pairs = [part.rpartition(" ") for part in signature.shown.split(", ")]
    shown = []
    for i, (kind, _, name) in enumerate(pairs):
        value = args[i] if i < len(args) else named.get(name)
        label = "" if i < len(args) else f"{name}="
        text = _inside(value)
        fits = kind == text or (kind in ("int", "float") and type(value) is int)
        shown.append(f"{label}{text}" if fits else f"!{label}{text}!")
    return f"({', '.join(shown)}{', ' * (not args)})"


def _unknown(signature: _Signature, named: Mapping[str, Any]) -> list[str]:
    names = {part.rpartition(" ")[2] for part in signature.shown.split(", ")[-len(named) :]}
    return [n for n in reversed(list(named)) if n not in names]


def _of_one(signature: _Signature, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    unknown = _unknown(signature, named)
    if unknown:
        return f"got unrecognized keyword arguments: {', '.join(unknown)}"
    same = len(args) + len(named) == len(signature.shown.split(", "))
    got = _compared(signature, args, named) if same else _given(args, named)
    return f"got {got}, but expected ({signature.shown})"


def _of_several(signatures: Sequence[_Signature], args: Sequence[Any], named: Mapping[str, Any]) -> str:
    lines = [f"got {_given(args, named)}, but expected one of:\n"]
    for signature in signatures:
        lines.append(f" * ({signature.shown})\n")
        if len(args) + len(named) != len(signature.shown.split(", ")):
            continue
        unknown = _unknown(signature, named)
        why = (
            f"keywords were incorrect: {', '.join(unknown)}"
            if unknown
            else f"arguments have invalid types: {_compared(signature, args, named)}"
        )
        lines.append(f"      didn't match because some of the {why}\n")
    return "".join(lines)


def argument_error(where: str, args: Sequence[Any], named: Mapping[str, Any]) -> TypeError | None:
    """The error that PyTorch raises for the arguments of a call; None if it accepts them.

    Args:
        where: the address of the called function, ``"torch.sum"``, ``"linalg.norm"``, ``"Tensor.cumsum"``.
        args: the positional arguments; for a method without the tensor itself.
        named: the keyword arguments.

    Example:
        >>> argument_error("Tensor.cumsum", ("rows",), {})
        TypeError("cumsum(): argument 'dim' (position 1) must be int, not str")
        >>> argument_error("torch.cumsum", ("rows",), {})
        TypeError("cumsum(): argument 'input' (position 1) must be Tensor, not str")
        >>> argument_error("Tensor.cumsum", (0,), {}) is None
        True
    """
    signatures = signatures_of(where)
    if signatures is None:
        return None
    name = of_function(where)
    if not signatures:
        if named:
            return TypeError(f"TensorBase.{name}() takes no keyword arguments")
        return TypeError(f"TensorBase.{name}() takes no arguments ({len(args)} given)") if args else None
    try:
        return _argument_error(where, signatures, args, named)
    except TypeError as error:  # of the elements of a sequence
        return error


def by_position(where: str, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a valid call, with keyword arguments at their positions in the schema.

    Args:
        where, args, named: as for ``argument_error``.

    Example:
        >>> by_position("torch.kron", (1,), {}) is None
        True
    """
    for signature in signatures_of(where) or ():
        try:
            signature.match(args, named)
        except (_Unfit, TypeError):
            continue
        found = signature.placed(args, named)
        return found if len(found[1]) < len(named) else None
    return None


def _argument_error(
    where: str, signatures: tuple[_Signature, ...], args: Sequence[Any], named: Mapping[str, Any]
) -> TypeError | None:
    name = of_function(where)
    problems: list[_Unfit] = []
    for signature in signatures:
        try:
            signature.match(args, named)
            return None
        except _Unfit as problem:
            problems.append(problem)
    count = len(args) + len(named)
    of_count = [i for i, s in enumerate(signatures) if s.least <= count <= len(s.parameters)]
    alone = len(signatures) == 1 and not has_deprecated(where)
    if alone or len(of_count) == 1:
        text = str(problems[0 if alone else of_count[0]])
        return TypeError(f"{name}(){'' if text.startswith(':') else ' '}{text}")
    told = _of_one(signatures[0], args, named) if len(signatures) == 1 else _of_several(signatures, args, named)
    return TypeError(f"{name}() received an invalid combination of arguments - {told}")
