"""Which function converted a tracer to a number, and its differentiable replacement: computed only for error messages.

A conversion calls a method such as ``Tracer.__float__``, which does not learn its caller. The caller is found from the
bytecode instruction that the frame is executing.
"""

from __future__ import annotations

import ast
import dis
import importlib
import inspect
import linecache
import types
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from funcgrad.core.errors import is_installed

Frame = types.FrameType

_STORE = dis.opmap["STORE_SUBSCR"]
#: The only operator by which the interpreter itself converts a value to float is string formatting: ``"%.2f" % x``.
_REMAINDER = next(
    (i.opcode, i.arg) for i in dis.get_instructions(compile("a % b", "", "eval")) if i.opname.startswith("BINARY")
)


class Api(NamedTuple):
    """How an API names its differentiable functions, for messages.

    Attributes:
        namespaces: the modules with differentiable functions, in order of preference, by their public names.
        stopped: the expression for a constant of the same value, such as ``stop_gradient(x)``.
        stored: advice that replaces ``a[i] = x``.
        as_it_is: advice that replaces a conversion.
    """

    namespaces: Mapping[str, str]
    stopped: str
    stored: str
    as_it_is: str


FUNCGRAD = Api(
    {f"funcgrad.{name}": f"funcgrad.{name}" for name in ("numpy", "special", "linalg", "nn", "lax")},
    "funcgrad.stop_gradient(x)",
    "Join values with funcgrad.numpy.stack, or write a = a.at[i].set(x) to a funcgrad array",
    "The value works like a number as it is, also in the functions of funcgrad.numpy",
)
#: The packages whose code calls functions for the user.
OWN = {"funcgrad"}
#: Python functions with other names in these namespaces; all others have the same name.
_NAMES = {
    "fsum": "sum", "sumprod": "vdot", "dist": "linalg.norm", "lgamma": "gammaln", "phase": "angle", "comb": "binom",
    "fmean": "mean", "pstdev": "std", "stdev": "std", "pvariance": "var", "variance": "var",
}  # fmt: skip


def storing(frame: Frame) -> bool:
    """Whether ``frame`` is executing ``a[i] = x``."""
    return frame.f_code.co_code[frame.f_lasti] == _STORE


def formatting(frame: Frame) -> bool:
    """Whether ``frame`` is executing ``"%f" % x``."""
    code, place = frame.f_code.co_code, frame.f_lasti
    return (code[place], code[place + 1]) == _REMAINDER


def advice(frame: Frame, wanted: str, api: Api = FUNCGRAD) -> tuple[str, str | None]:
    """The function that requested a number, as named in messages, and the differentiable function of the same name.

    Args:
        frame: the innermost frame below the tracer's methods.
        wanted: its name in messages if it cannot be determined.
        api: the API whose names the message uses.

    Returns:
        The call, ``"math.sin(...)"``, and the qualified name of the replacement, ``"funcgrad.numpy.sin"``, or None.
    """
    if storing(frame):
        return "a[i] = x", None
    module, name = _called(frame)
    if name is None or (module == "builtins" and name not in _OF_PYTHON):
        return wanted, None
    if module == "builtins":
        return f"{name}(...)", _instead(name, api.namespaces) if _OF_PYTHON[name] else None
    return f"{module}.{name}(...)", _instead(name, api.namespaces)


#: Python functions that convert to a number, and whether they have a replacement; others, such as ``list``, only
#: forward another caller's conversion.
_OF_PYTHON = {"float": False, "complex": False, "round": True}


def _instead(name: str, namespaces: Mapping[str, str]) -> str | None:
    for shown, address in namespaces.items():
        for same in (name, _NAMES.get(name)):
            try:
                found: Any = importlib.import_module(address)
                for part in (same or "").split("."):
                    found = getattr(found, part)
            except (ImportError, AttributeError):
                continue
            if callable(found):
                return f"{shown}.{same}"
    return None


def _called(frame: Frame) -> tuple[str | None, str | None]:
    """The module and the name of the function that requested the conversion."""
    if _is_others(frame):
        # The function of that library at its boundary, called by other code.
        while frame.f_back is not None and _is_others(frame.f_back):
            frame = frame.f_back
        module, _, _ = frame.f_globals.get("__name__", "").partition("._")
        return module, frame.f_code.co_qualname.removesuffix(".__call__")
    call = _running(frame)
    if not isinstance(call, ast.Call):
        return None, None
    found = _resolved(call.func, frame)
    while hasattr(found, "func") and hasattr(found, "keywords"):  # functools.partial
        found = found.func
    name = getattr(found, "__name__", None)
    if found is None or not isinstance(name, str):
        return None, None
    if isinstance(found, types.FunctionType) and found.__module__.partition(".")[0] in OWN:
        return None, None  # a method of the traced value itself
    owner = getattr(found, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return type(owner).__name__, name
    return getattr(found, "__module__", None), name


def _is_others(frame: Frame) -> bool:
    """Whether code belongs to an installed library or the standard library, other than this package."""
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return package in ("numpy", "jax") or (package not in OWN and is_installed(frame.f_code.co_filename))


def _running(frame: Frame) -> ast.expr | None:
    """The expression that ``frame`` is evaluating, from its source."""
    code = frame.f_code
    first, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return None
    linecache.checkcache(code.co_filename)  # the source may have changed, as in a notebook
    lines = [line.encode() for line in linecache.getlines(code.co_filename, frame.f_globals)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(f"({b''.join(lines).decode()})", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _resolved(node: ast.expr, frame: Frame) -> Any:
    """The object that a name or attribute refers to in a frame, found without running user code."""
    if isinstance(node, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in scope:
                return scope[node.id]
    elif isinstance(node, ast.Attribute):
        owner = _resolved(node.value, frame)
        if owner is None:
            return None
        if isinstance(owner, types.ModuleType):
            return getattr(owner, node.attr, None)
        found = inspect.getattr_static(owner, node.attr, None)
        if isinstance(found, (types.MemberDescriptorType, types.MethodDescriptorType)):
            return found.__get__(owner)
        return found
    return None
