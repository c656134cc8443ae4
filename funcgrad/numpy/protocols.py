"""NumPy's functions on traced arrays: the three protocols by which NumPy dispatches to its arguments.

There is no table of functions: ``numpy.f`` on a traced array calls ``funcgrad.numpy.f``.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from types import MethodType, ModuleType
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.errors import FuncgradError, hide_frames_below
from funcgrad.core.tracing import JaxArray, Tracer, type_of
from funcgrad.numpy.indexing.writable import Writable
from funcgrad.numpy.promotion import asoperand, astype
from funcgrad.primitives.shape import reshape

# A binary function reduced or accumulated along an axis is a function of another name.
_REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
    "logical_and": "all", "logical_or": "any", "logaddexp": "logsumexp",
}  # fmt: skip
_ACCUMULATED = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_NO_VALUE = np._NoValue


def _namespace(module: str) -> ModuleType | None:
    """The module that implements ``numpy`` or one of its submodules: ``funcgrad.linalg`` for ``numpy.linalg``."""
    part = module.removeprefix("numpy").removeprefix(".") if module.partition(".")[0] == "numpy" else "numpy"
    name = f"funcgrad.{part or 'numpy'}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None


@functools.cache
def _find(module: str, name: str, what: str) -> Callable[..., Any]:
    function = getattr(_namespace(module), name, None)
    if function is None:
        raise FuncgradError(
            f"{what} was called with a traced array, but funcgrad has no function of that name. Write it in terms of "
            "others, or take the array out of the trace first with funcgrad.stop_gradient, outside jit."
        )
    return function


def _without_defaults(what: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments without those that NumPy passes with their default values."""
    if not kwargs:
        return kwargs
    given = {k: v for k, v in kwargs.items() if v is not _NO_VALUE}
    out = given.pop("out", None)
    if out is not None and not (isinstance(out, tuple) and all(o is None for o in out)):
        raise TypeError(
            f"{what}: an array to write into was given (out=, or an in-place operator as in `a += x`), but arrays "
            "cannot take traced values; use the result instead, as in `a = a + x`"
        )
    if given.get("where") is True:
        del given["where"]
    if given.get("casting") == "same_kind":
        del given["casting"]
    return given


def _call(what: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        # Python's message about the signature names our function; the user called NumPy's.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise TypeError(f"{what} of a traced array: {error}") from None
        raise


def _array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    what = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    kwargs = _without_defaults(what, kwargs)
    if method == "__call__":
        return _elementwise(what, ufunc.__name__, inputs, kwargs)
    if method == "outer":
        left, right = (asoperand(x, what) for x in inputs)
        spread = reshape(left, shape=(*type_of(left).shape, *(1,) * type_of(right).ndim))
        return _elementwise(what, ufunc.__name__, (spread, right), kwargs)
    name = {"reduce": _REDUCED, "accumulate": _ACCUMULATED}.get(method, {}).get(ufunc.__name__)
    if name is None:
        raise FuncgradError(f"{what} was called with a traced array, but funcgrad cannot do that")
    if len(inputs) == 1:
        kwargs.setdefault("axis", 0)
    return _call(what, _find("numpy", name, what), inputs, kwargs)


def _elementwise(what: str, name: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    # A universal function that is not NumPy's is one of scipy.special.
    function = _find("numpy" if hasattr(np, name) else "numpy.special", name, what)
    if not kwargs:
        return _call(what, function, inputs, kwargs)
    dtype = kwargs.pop("dtype", None)
    if name not in ("matmul", "vecdot", "matvec", "vecmat"):
        kwargs = {k: v for k, v in kwargs.items() if k not in ("casting", "order", "subok")}
    if dtype is not None:
        inputs = [astype(asoperand(x, what), dtypes.canonical(dtype)) for x in inputs]
    return _call(what, function, inputs, kwargs)


def _array_function(
    self: Tracer, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    module, name = func.__module__, func.__name__
    what = f"{module}.{name}"
    return _call(what, _find(module, name, what), args, _without_defaults(what, kwargs))


def _array_namespace(self: Any, /, *, api_version: str | None = None) -> ModuleType:
    """The module of array functions, as in the Python array API standard."""
    if api_version not in (None, *_VERSIONS):
        raise ValueError(f"__array_namespace__: there is no version {api_version!r} here, only {', '.join(_VERSIONS)}")
    namespace = _namespace("numpy")
    assert namespace is not None
    return namespace


def _traced_namespace(self: Tracer) -> Any:
    """The method ``__array_namespace__``, hidden from callers that only test whether the array is writable.

    No protocol defines writability. Libraries treat unknown arrays as writable; for read-only ones they make a copy
    first, which may be written to.
    """
    if sys._getframe(1).f_code.co_name == "is_writeable_array":
        raise AttributeError("__array_namespace__")
    return MethodType(_array_namespace, self)


def _dlpack(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's ``__dlpack__``, without the version argument if JAX rejects it: consumers can read an unversioned
    capsule."""

    def method(
        self: Any, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        known = max_version if max_version is not None and tuple(max_version) >= (1, 0) else None
        return theirs(self, stream=stream, max_version=known, dl_device=dl_device, copy=copy)

    return method


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def install() -> None:
    """Installs NumPy's protocols on ``Tracer``.

    Outside ``jit`` arrays are JAX's, whose ``__array_namespace__`` would be JAX's module: library code would then use
    other rules outside a trace than inside.
    """
    hide_frames_below(os.path.dirname(np.__file__))
    Tracer.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    Tracer.__array_function__ = _array_function  # type: ignore[attr-defined]
    JaxArray.__dlpack__ = _dlpack(JaxArray.__dlpack__)
    Tracer.__array_namespace__ = property(_traced_namespace)  # type: ignore[attr-defined]
    for arrays in (Writable, JaxArray):
        setattr(arrays, "__array_namespace__", _array_namespace)  # noqa: B010  # mypy knows neither to have it


install()
