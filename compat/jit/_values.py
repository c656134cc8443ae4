"""TorchScript's operators on numbers, strings, lists, dictionaries and other values that are not tensors.

Each has the arguments of PyTorch's schema, which TorchScript code passes by position.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.futures import Future

__all__ = ["VALUES", "text_of"]

_torch = names_of("torch")


# ---------------------------------------------------------------- values as text


def _number_text(value: float) -> str:
    """A float as TorchScript formats it: integers end with a point."""
    if math.isfinite(value) and abs(value) < 1e10 and value == int(value):
        return ("-" if math.copysign(1.0, value) < 0 and value == 0 else "") + f"{int(value)}."
    return f"{value:.17g}"


def text_of(value: Any) -> str:
    """A value as TorchScript's ``str``, ``format`` and ``print`` format it: strings have no quotes."""
    if isinstance(value, float):
        return _number_text(value)
    if type(value) is list:
        return "[" + ", ".join(map(text_of, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(text_of, value)) + ("," if len(value) == 1 else "") + ")"
    if type(value) is dict:
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    return str(value)


def _format(template: str, *values: Any) -> str:
    """``str.format`` whose only fields are ``{}``."""
    first, *rest = template.split("{}")
    if len(rest) > len(values):
        raise RuntimeError(f"Too few arguments for format string: {template}")
    return first + "".join(text_of(value) + part for value, part in zip(values, rest))


def _percent_format(template: str, *values: Any) -> str:
    """``template % values``."""
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    first, *rest = template.replace("%%", "\0").split("%")
    if len(rest) != len(values):
        raise RuntimeError(f"Incorrect number of arguments for format string: {template}")
    parts = (text_of(v) if part[:1] == "s" else f"%{part[:1]}" % v for v, part in zip(values, rest))
    return (first + "".join(text + part[1:] for text, part in zip(parts, rest))).replace("\0", "%")


# ---------------------------------------------------------------- strings


def _within(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that searches in part of a string; an end of -1 is the string's length."""

    def call(text: str, other: str, start: int = 0, end: int = -1) -> Any:
        return method(text, other, start, len(text) + end + 1 if end < 0 else end)

    return call


def _search(text_method: Callable[..., Any], list_method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that both strings and lists have."""
    of_text = _within(text_method)
    return lambda values, *args: of_text(values, *args) if isinstance(values, str) else list_method(values, *args)


# ---------------------------------------------------------------- lists and dictionaries


def _is_in(values: Any, wanted: Any) -> bool:
    return any(_equal(v, wanted) for v in values) if isinstance(values, list) else wanted in values


def _equal(a: Any, b: Any) -> bool:
    return bool(_torch["equal"](a, b)) if isinstance(a, Tensor) and isinstance(b, Tensor) else bool(a == b)


def _index(values: list[Any], wanted: Any) -> int:
    for i, value in enumerate(values):
        if _equal(value, wanted):
            return i
    raise ValueError(f"'{text_of(wanted)}' is not in list")


def _remove(values: list[Any], wanted: Any) -> None:
    del values[_index(values, wanted)]


def _slice(values: Any, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return values[slice(start, end, step)]


def _append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _add_to(values: list[Any], more: list[Any]) -> list[Any]:
    values += more
    return values


def _repeat_in_place(values: list[Any], count: int) -> list[Any]:
    values *= count
    return values


def _set(values: Any, place: Any, value: Any) -> Any:
    values[place] = value
    return values


def _sort(values: list[Any], reverse: bool = False) -> None:
    values.sort(reverse=reverse)


def _pop_item(values: dict[Any, Any]) -> tuple[Any, Any]:
    key = next(iter(values))
    return key, values.pop(key)


def _default(values: dict[Any, Any], key: Any, default: Any) -> Any:
    return values.setdefault(key, default)


def _list(values: Any) -> list[Any]:
    return list(values)


# ---------------------------------------------------------------- numbers


def _either(real: Callable[..., Any], of_complex: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: of_complex(x) if isinstance(x, complex) else real(x)


def _power(a: Any, b: Any) -> Any:
    return a**b if isinstance(a, complex) or isinstance(b, complex) else math.pow(a, b)


def _is(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, Tensor) and bool(a == b)) or _same_member(a, b)


def _same_member(a: Any, b: Any) -> bool:
    """Whether both are the same member of an enumeration; a program's class and the file's are different classes."""
    return hasattr(a, "_value_") and hasattr(b, "_value_") and bool(a == b)


def _log(x: Any, base: Any = None) -> Any:
    of = cmath.log if isinstance(x, complex) else math.log
    return of(x) if base is None else of(x, base)


def _wait(future: Future[Any]) -> Any:
    return future.wait()


def _warn(message: str, stacklevel: int = 2) -> None:
    import warnings

    warnings.warn(message, UserWarning, stacklevel=2)


_TEXT = ["upper", "lower", "swapcase", "capitalize", "title", "center", "expandtabs", "isidentifier", "isalnum",
         "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper",
         "partition",
         "rpartition", "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "replace", "zfill", "ljust",
         "rjust", "casefold"]  # fmt: skip
_MATH = ["acosh", "asinh", "atanh", "copysign", "degrees", "erf", "erfc", "expm1", "fabs", "factorial", "fmod", "frexp",
         "gcd", "ldexp", "lgamma", "log1p", "log2", "modf", "radians", "atan2", "ceil", "floor", "trunc"]  # fmt: skip
_COMPLEX = ["acos", "asin", "atan", "cos", "cosh", "exp", "isfinite", "isinf", "isnan", "log10", "sin", "sinh", "sqrt",
            "tan", "tanh"]  # fmt: skip

#: The operators by name.
VALUES: dict[str, Callable[..., Any]] = {
    **{name: getattr(str, name) for name in _TEXT},
    **{name: _within(getattr(str, name)) for name in ("find", "rfind", "rindex", "startswith", "endswith")},
    "join": lambda between, values: between.join(values), "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin,
    "format": _format, "percentFormat": _percent_format, "str": text_of, "__getitem__": operator.getitem,
    "index": _search(str.index, _index),
    "count": _search(str.count, lambda values, wanted: sum(_equal(v, wanted) for v in values)),
    # lists and dictionaries
    "append": _append, "extend": list.extend, "insert": list.insert, "remove": _remove, "reverse": list.reverse,
    "pop": lambda values, *args: values.pop(*args), "clear": lambda values: values.clear(), "copy": lambda v: v.copy(),
    "Delete": operator.delitem, "_set_item": _set, "sort": _sort, "sorted": sorted, "list": _list, "len": len,
    "slice": _slice, "select": operator.getitem, "add_": _add_to, "mul_": _repeat_in_place,
    "keys": _list, "values": lambda values: list(values.values()), "items": lambda values: list(values.items()),
    "get": dict.get, "setdefault": _default, "update": dict.update, "popitem": _pop_item, "dict": dict,
    "__contains__": _is_in, "sum": sum, "any": any, "all": all, "min": min, "max": max, "hash": hash,
    # numbers
    **{name: getattr(math, name) for name in _MATH},
    **{name: _either(getattr(math, name), getattr(cmath, name)) for name in _COMPLEX},
    "gamma": math.gamma, "mathremainder": math.remainder, "round": lambda x: float(round(x)), "log": _log,
    "angle": cmath.phase, "polar": cmath.rect, "real": lambda x: x.real, "imag": lambda x: x.imag,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "rsub": lambda a, b: b - a,
    "floordiv": operator.floordiv, "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": _power,
    "neg": operator.neg, "abs": abs, "divmod": divmod, "__round_to_zero_floordiv": lambda a, b: math.trunc(a / b),
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__lshift__": operator.lshift,
    "__rshift__": operator.rshift, "bitwise_not": operator.invert, "__not__": operator.not_,
    "__is__": _is, "__isnot__": lambda a, b: not _is(a, b),
    "Int": int, "Float": float, "Bool": bool, "Complex": complex, "IntImplicit": int, "FloatImplicit": float,
    "__derive_index": lambda index, start, step: start + index * step,
    "__range_length": lambda low, high, step: len(range(low, high, step)),
    # others
    "wait": _wait, "warn": _warn, "_unwrap_optional": lambda value: value,
    "_get_tracing_state": lambda: False, "is_scripting": lambda: True, "has_torch_function": lambda *args: False,
}  # fmt: skip
