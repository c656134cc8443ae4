"""Compiled libraries of operators that other packages bring, as operators of compat's.

A package's library (a ``.so`` that calls PyTorch's C++) cannot load here. ``torch.ops.load_library`` of one that this
table names declares the same operators with kernels of compat's instead; of any other it raises ``OSError``, as the
loader does for a library that it cannot load, and packages that can do without go on.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from pathlib import PurePath

#: The module that declares a library's operators, by the folder and the stem of the library's file.
_LIBRARIES = dict.fromkeys((("torchvision", "_C"), ("torchvision", "_C_stable")), "compat._libraries.torchvision")
_lock = threading.Lock()
#: The paths that were given to ``load_library``.
loaded: set[str] = set()


def load(path: str | os.PathLike[str]) -> None:
    """Declares the operators of a compiled library.

    Args:
        path: the library's file.

    Raises:
        OSError: for a file that is not there, and for a library whose operators are not here.
    """
    full = os.path.realpath(path)
    if not os.path.exists(full):
        raise OSError(f"{path}: cannot open shared object file: No such file or directory")
    file = PurePath(full)
    module = _LIBRARIES.get((file.parent.name, file.name.partition(".")[0]))
    if module is None:
        raise OSError(
            f"{path}: is compiled for PyTorch's C++, which is not here; of such libraries there are "
            + ", ".join("/".join(key) for key in _LIBRARIES)
        )
    with _lock:
        import_module(module)
        loaded.add(full)
