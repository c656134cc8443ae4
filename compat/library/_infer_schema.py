"""A schema from the annotations of a Python function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device
from compat._core.types.dtype import dtype

_NAMES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device",
}  # fmt: skip
_SEQUENCES = (list, collections.abc.Sequence)
_NUMBERS = ({int, float, bool}, {int, float, bool, complex}, {int, float})


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema inferred from a function's annotations.

    Args:
        prototype_function: a function, all of whose parameters and results are annotated.
        mutates_args: the names of the tensors that it mutates; "unknown" for all.
        op_name: the name in the schema.

    Raises:
        ValueError: for parameters without annotation, or of types that schemas do not have.

    Example:
        >>> def scaled(x: torch.Tensor, k: float = 2.0) -> torch.Tensor:
        ...     return x * k
        >>> infer_schema(scaled, mutates_args=())
        '(Tensor x, float k=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def wrong(text: str) -> ValueError:
        shown = signature.replace(
            parameters=[p.replace(annotation=hints.get(p.name, p.empty)) for p in signature.parameters.values()],
            return_annotation=hints.get("return", signature.empty),
        )
        return ValueError(f"infer_schema(func): {text} Got func with signature {shown})")

    parts: list[str] = []
    written = 0
    for p in signature.parameters.values():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if p.name not in hints:
            raise wrong(f"Parameter {p.name} must have a type annotation.")
        kind = _name(hints[p.name])
        if kind is None:
            raise wrong(f"Parameter {p.name} has unsupported type {hints[p.name]}.")
        if _written(p.name, kind, mutates_args):
            if not kind.startswith("Tensor"):
                raise wrong(
                    f"Parameter {p.name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            kind = f"Tensor(a{written}!){kind.removeprefix('Tensor')}"
            written += 1
        parts.append(f"{kind} {p.name}{_default(p, wrong)}")
    unknown = set() if isinstance(mutates_args, str) else set(mutates_args) - set(signature.parameters)
    if unknown:
        raise wrong(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            "names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if "return" not in hints:
        raise wrong("No return type annotation was provided. Please add one.")
    result = _results(hints["return"])
    if result is None:
        raise wrong(f"Return has unsupported type {hints['return']}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _written(name: str, kind: str, mutates: str | Iterable[str]) -> bool:
    return kind.startswith("Tensor") if mutates == "unknown" else name in mutates


def _default(p: inspect.Parameter, wrong: Callable[[str], ValueError]) -> str:
    value = p.default
    if value is p.empty:
        return ""
    if value is None or isinstance(value, (int, float, bool)):
        return f"={value}"
    if isinstance(value, device):
        return f'="{value}"'
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, dtype):
        return f"={repr(value).removeprefix('torch.')}"
    raise wrong(f"Parameter {p.name} has an unsupported default value type {type(value)}.")


def _name(hint: Any) -> str | None:
    """The name of a type in schemas; None if there is none."""
    if isinstance(hint, type) and hint in _NAMES:
        return _NAMES[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in inner if a is not type(None)]
        found = "Scalar" if set(rest) in _NUMBERS else _name(rest[0]) if len(rest) == 1 else None
        return found and found + "?" * (len(rest) < len(inner))
    if origin in _SEQUENCES and len(inner) == 1:
        found = _name(inner[0])
        return None if found is None or found.endswith("]") else f"{found}[]"
    return None


def _results(hint: Any) -> str | None:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        names = [_name(a) for a in typing.get_args(hint)]
        return None if None in names else f"({', '.join(n for n in names if n)})"
    return _name(hint)


__all__ = ["infer_schema"]
