"""``torch.ops``: operators by library, ``torch.ops.aten.mm.default`` and those of libraries of the user's own.

Every other name is a library's, so that this module has none of its own but private ones and the two that load
libraries.

Example:
    >>> torch.ops.aten.add.Tensor
    <OpOverload(op='aten.add', overload='Tensor')>
"""

import os as _os
from typing import Any as _Any

from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overloads import namespace as _namespace


def load_library(path: str | _os.PathLike[str]) -> None:
    """Declares the operators of a package's compiled library.

    Args:
        path: the library's file. It is compiled for PyTorch's C++ and is not loaded; compat has kernels of its own for
            the libraries that it knows.

    Raises:
        OSError: for a library whose operators are not here, and a file that is not there.

    Example:
        >>> torch.ops.load_library("no/such/library.so")
        Traceback (most recent call last):
        OSError: no/such/library.so: cannot open shared object file: No such file or directory
    """
    from compat._libraries import load

    load(path)


def __getattr__(name: str) -> _Any:
    """The library of a name: ``torch.ops.my`` is there as soon as it is asked for."""
    if name == "loaded_libraries":  # the paths that were given to load_library
        from compat._libraries import loaded

        return loaded
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    found = globals()[name] = _namespace(name)
    if name == "profiler":
        from compat._libraries.profiler import declare

        globals()["_profiler"] = declare()
    return found


__all__ = ["aten", "load_library"]
