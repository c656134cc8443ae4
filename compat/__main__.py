"""``python -m compat SCRIPT [ARGS...]``: runs a PyTorch script on compat.

``import torch`` and imports of torch's submodules resolve to compat's modules; everything else is as with Python:
``sys.argv``, ``__main__``, the exit code and tracebacks. ``-m MODULE`` runs a module, ``-c CODE`` a string, and ``-``
standard input. Python processes that the script starts use the same ``torch``.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType

from compat.install import install, install_in_programs

_USAGE = """\
usage: python -m compat SCRIPT [ARGS...]
       python -m compat -m MODULE [ARGS...]
       python -m compat -c CODE [ARGS...]
       python -m compat - [ARGS...]
"""


def _script(path: str) -> Callable[[], None]:
    """Runs a file as ``__main__``."""
    path = os.path.abspath(path)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(2) from None
    sys.path[0] = os.path.dirname(path)
    return _source(source, path, __file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))


def _source(source: str | bytes, name: str, **known: object) -> Callable[[], None]:
    """Runs code as ``__main__``.

    Args:
        name: the file name in tracebacks.
        known: the module's initial globals.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __spec__=None, __package__=None, **known)

    def run() -> None:
        sys.modules["__main__"] = main
        exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)

    return run


def _module(name: str) -> Callable[[], object]:
    """Runs a module as ``__main__``."""
    sys.path[0] = os.getcwd()
    return lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)


def _chosen(arguments: list[str]) -> Callable[[], object]:
    """The program selected by the arguments; sets ``sys.argv`` as Python would."""
    first = arguments[0]
    if first in ("-m", "-c"):
        if len(arguments) < 2:
            sys.stderr.write(_USAGE)
            raise SystemExit(2)
        sys.argv[:] = arguments[1:] if first == "-m" else ["-c", *arguments[2:]]
        if first == "-m":
            return _module(arguments[1])
        sys.path[0] = ""
        return _source(arguments[1], "<string>")
    sys.argv[:] = arguments
    if first == "-":
        sys.path[0] = ""
        return _source(sys.stdin.read(), "<stdin>")
    return _script(first)


def _report(error: BaseException) -> None:
    """Shows an uncaught error as Python does, without the frames that run the script."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__  # as Python does
    sys.excepthook(type(error), error, error.__traceback__)


def main(arguments: list[str]) -> None:
    """Runs the program on the command line."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stderr.write(_USAGE)
        raise SystemExit(0 if arguments else 2)
    install()
    install_in_programs()
    run = _chosen(arguments)
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        if isinstance(error, KeyboardInterrupt):
            # Python is killed by the signal, so that a shell sees it, after exit handlers have run.
            sys.excepthook = lambda *_: None
            raise
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(sys.argv[1:])
