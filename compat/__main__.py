"""``python -m compat SCRIPT [ARGS...]``: runs a PyTorch script on compat.

``import torch`` in it, and imports of torch's submodules, give compat's modules; otherwise it is as if Python had been
called with the script: ``sys.argv``, ``__main__``, the exit code and tracebacks. As with Python, ``-m MODULE`` runs a
module, ``-c CODE`` what is written there, and ``-`` what comes from standard input. Processes that the script starts
have the same ``torch``.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

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
        name: of the file, in tracebacks.
        known: what the module knows of itself.
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
    """What the arguments say is to be run; ``sys.argv`` is as Python would have it."""
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


_HERE = os.path.dirname(os.path.abspath(__file__))
#: What PyTorch has in Python too, and so shows in tracebacks.
_SHOWN = tuple(os.path.join(_HERE, name) + os.sep for name in ("nn", "optim", "utils"))


def _runs_script(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>")


def _is_inside(trace: TracebackType) -> bool:
    """Whether a frame is of what is C++ in PyTorch."""
    name = trace.tb_frame.f_code.co_filename
    return name.startswith(_HERE + os.sep) and not name.startswith(_SHOWN)


def _report(error: BaseException) -> None:
    """Shows an error as Python does when a script ends with it.

    The frames that run the script are left out, and those of compat at the end: PyTorch's are not in Python. With
    ``COMPAT_TRACEBACK=full`` in the environment the latter stay.
    """
    trace = error.__traceback__
    while trace is not None and _runs_script(trace):
        trace = trace.tb_next
    last, at = trace, trace
    while at is not None:
        last = at if not _is_inside(at) else last
        at = at.tb_next
    if last is not None and os.environ.get("COMPAT_TRACEBACK") != "full":
        last.tb_next = None
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace  # as Python, for what runs at the end
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def main(arguments: list[str]) -> None:
    """Runs what the command line says."""
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
            # Python dies of the interrupt, so that a shell sees it, once what is to run at the exit has run.
            sys.excepthook = lambda *_: None
            raise
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(sys.argv[1:])
