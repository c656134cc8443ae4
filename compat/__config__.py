"""``torch.__config__``: the build's components, for bug reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from compat._threads import get_num_interop_threads, get_num_threads

_PARTS = ("funcgrad", "jax", "jaxlib", "numpy")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


def show() -> str:
    """A readable list of backends, with versions.

    Example:
        >>> print(show())
        PyTorch on top of funcgrad, computed by XLA:
          - Python ...
          - funcgrad ...
    """
    parts = [f"Python {platform.python_version()}", *[f"{p} {_version(p)}" for p in _PARTS]]
    return "\n".join(["PyTorch on top of funcgrad, computed by XLA:", *[f"  - {part}" for part in parts], ""])


def parallel_info() -> str:
    """The numbers of threads.

    Example:
        >>> print(parallel_info())
        Threads of XLA:
            torch.get_num_threads() : ...
    """
    return (
        "Threads of XLA:\n"
        f"    torch.get_num_threads() : {get_num_threads()}\n"
        f"    torch.get_num_interop_threads() : {get_num_interop_threads()}\n"
    )
