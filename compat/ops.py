"""``torch.ops``: operators by library, such as ``torch.ops.aten.mm.default``, and those of user-defined libraries.

Any public name is a library, so this module has only private names and the two functions that load libraries.

Example:
    >>> torch.ops.aten.add.Tensor
    <OpOverload(op='aten.add', overload='Tensor')>
"""

import os as _os
from typing import Any as _Any

from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overloads import namespace as _namespace


def load_library(path: str | _os.PathLike[str]) -> None:
    """Registers the operators of a package's compiled library.

    Args:
        path: the library's file, which is not loaded, as it is compiled for PyTorch's C++. compat has kernels for some
            known libraries.

    Raises:
        OSError: for an unknown library, and a missing file.

    Example:
        >>> torch.ops.load_library("no/such/library.so")
        Traceback (most recent call last):
        OSError: no/such/library.so: cannot open shared object file: No such file or directory
    """
    from compat._libraries import load

    load(path)


def __getattr__(name: str) -> _Any:
    """The library of a name: ``torch.ops.my`` is created on access."""
    if name == "loaded_libraries":  # the paths passed to load_library
        from compat._libraries import loaded

        return loaded
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    if name == "higher_order":
        from types import SimpleNamespace

        from compat._higher_order_ops.cond import higher_order_cond

        globals()[name] = SimpleNamespace(cond=higher_order_cond)
        return globals()[name]
    found = globals()[name] = _namespace(name)
    if name == "profiler":
        from compat._libraries.profiler import declare

        globals()["_profiler"] = declare()
    return found


__all__ = ["aten", "load_library"]
