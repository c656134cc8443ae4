"""C twins: C implementations of functions on the recording path, which every operation pays for.

A file ``x.c`` next to a Python module implements functions of that module with identical results. If it is compiled,
the module uses it; otherwise (no compiler, no Python headers, the very first process) the Python functions run.
"""

from __future__ import annotations

import os
import warnings
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from funcgrad.native import build
from funcgrad.native.library import SWITCH


def twin(source: Path, **names: Any) -> Any:
    """The extension module compiled from a C file, initialized with ``names``; None if it is unavailable.

    Args:
        source: the C file.
        names: Python classes, functions and objects that it uses.

    Raises:
        RuntimeError: if ``FUNCGRAD_NATIVE=1`` requires native code, and the compiler fails.
    """
    wanted = os.environ.get(SWITCH, "")
    if wanted == "0":
        return None
    library = build.Twin(source)
    file = library.place()
    if wanted == "1" and file is not None and library.command(file) is not None:
        library.build()
    if file is None or not file.is_file():
        build.twins.append(library)
        return None
    try:
        loader = ExtensionFileLoader(source.stem, str(file))
        spec = spec_from_loader(source.stem, loader)
        assert spec is not None
        module: Any = module_from_spec(spec)
        loader.exec_module(module)
        module.bind(names)
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        warnings.warn(f"{library.name} cannot be used, Python runs: {file}: {error}", RuntimeWarning, stacklevel=2)
        return None
    return module
