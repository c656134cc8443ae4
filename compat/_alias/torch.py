"""``torch`` in child processes of a program on compat, whose path finds this file first (``compat.install``)."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_here = Path(__file__).resolve().parent
if find_spec("jax") is None:  # the Python of another environment, where compat cannot run
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _here]
    del sys.modules[__name__]
else:
    if find_spec("compat") is None:
        sys.path.append(str(_here.parents[1]))
    del sys.modules[__name__]  # ``install`` refuses to run after an import of torch
    import_module("compat.install").install()
import_module("torch")
