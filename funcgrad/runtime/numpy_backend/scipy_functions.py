"""Functions of SciPy, found in its extension modules.

The packages ``scipy.special`` and ``scipy.linalg`` import some two hundred modules, which takes longer than the first
step of a small program. The extension modules that have the functions need none of them, so they are loaded alone,
under their own names: who imports the packages afterwards has the same modules. Where they are not as they are known
here, the packages are imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from funcgrad.runtime.numpy_backend.threads import loaded

_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


def special(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``.

    Example:
        >>> float(special("erf")(0.0))
        0.0
    """
    return extension_function("special", "_special_ufuncs", name) or getattr(import_module("scipy.special"), name)


def lapack(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """A routine of LAPACK for a dtype.

    Example:
        >>> factor, info = lapack("potrf", np.dtype("float32"))(4 * np.eye(1, dtype=np.float32))
        >>> factor, info
        (array([[2.]], dtype=float32), 0)
    """
    return _of_matrices("lapack", name, dtype)


def blas(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """A routine of BLAS for a dtype.

    Example:
        >>> blas("trsm", np.dtype("float64"))(1.0, 2 * np.eye(1), np.ones((1, 1)))
        array([[0.5]])
    """
    return _of_matrices("blas", name, dtype)


@cache
def _of_matrices(library: str, name: str, dtype: np.dtype) -> Callable[..., Any]:
    found = extension_function("linalg", f"_f{library}", _PREFIXES.get(dtype.char, "d") + name)
    if found is None:
        find = getattr(import_module("scipy.linalg"), f"get_{library}_funcs")
        found = find((name,), dtype=dtype)[0]
    loaded()
    return found


@cache
def extension_function(package: str, module: str, name: str) -> Callable[..., Any] | None:
    """A function of an extension module; None where there is none."""
    return getattr(_extension(package, module), name, None)


@cache
def _extension(package: str, module: str) -> ModuleType | None:
    """An extension module, without the package that it is in."""
    name = f"scipy.{package}.{module}"
    if name in sys.modules or f"scipy.{package}" in sys.modules:
        return sys.modules.get(name)
    folder = Path(import_module("scipy").__path__[0]) / package
    file = next((f for suffix in EXTENSION_SUFFIXES if (f := folder / f"{module}{suffix}").is_file()), None)
    if file is None:
        return None
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except ImportError:
        return None
    sys.modules[name] = made
    return made
