"""C twins: the functions of the recording path in C, which every operation pays for.

A file ``x.c`` beside the Python module that it is the twin of does what functions of that module do, with the same
results. Where it is compiled, the module uses it; where it is not (no compiler, no Python headers, the first process of
all), the Python functions run. Which of them it is changes no number.
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
    """The module compiled from a C file, given what it works with; None where it is not there.

    Args:
        source: the file.
        names: classes, functions and objects of Python that it needs.

    Raises:
        RuntimeError: if ``FUNCGRAD_NATIVE=1`` demands native code, and the compiler fails.
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
