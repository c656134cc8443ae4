"""Operators of other packages' compiled libraries, implemented in compat.

A package's library (a ``.so`` that calls PyTorch's C++) cannot be loaded. ``torch.ops.load_library`` of a library in
this table registers the same operators with compat's kernels; for any other it raises ``OSError``, as for a library
that cannot be loaded, and packages with a fallback continue.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from pathlib import PurePath

#: The module that registers a library's operators, by the folder and the stem of the library's file.
_LIBRARIES = dict.fromkeys((("torchvision", "_C"), ("torchvision", "_C_stable")), "compat._libraries.torchvision")
_lock = threading.Lock()
#: The paths passed to ``load_library``.
loaded: set[str] = set()


def load(path: str | os.PathLike[str]) -> None:
    """Registers the operators of a compiled library.

    Args:
        path: the library's file.

    Raises:
        OSError: for a missing file, and an unknown library.
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
