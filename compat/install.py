"""Makes ``torch`` and its submodules resolve to compat, for ``python -m compat`` and ``compat.install()``.

Child processes use the same ``torch``. ``multiprocessing`` passes ``sys.path`` to a new process first, so ``install``
adds a folder to it, ``compat/_alias``, whose ``torch`` installs compat in turn. A program run by ``python -m compat``
also has it in ``PYTHONPATH``, for all Python programs it starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from multiprocessing import forkserver
from types import ModuleType
from typing import Any

from compat._absent import stand_in_module, why_absent
from compat._absent.table import COMPILER
from compat._addresses import is_shown
from compat._module_errors import name_modules
from compat._shown_names import hide_all, show, show_all
from funcgrad.core.collector import import_lasting

_OURS, _THEIRS = "compat", "torch"
#: The packages of PyTorch and the packages of compat that replace them.
_PACKAGES = {_THEIRS: _OURS, "functorch": f"{_OURS}.func._functorch"}
_HERE = os.path.dirname(os.path.abspath(__file__))
#: The folder where other processes find ``torch``.
_ALIAS = os.path.join(_HERE, "_alias")


def _is_hidden(alias: str) -> bool:
    """Whether a module below ``torch`` is internal to compat."""
    head, _, rest = alias.partition(".")
    return head == _THEIRS and not is_shown(rest)


class _Alias(Loader):
    """Loads a module by returning another one."""

    def __init__(self, name: str, alias: str):
        self.name = name
        self.alias = alias
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_lasting(self.name)
        name_modules()
        if self.alias == _THEIRS:
            show_all()
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just set the alias's spec on the module: restore its own.
        module.__spec__ = self.spec

    def get_code(self, fullname: str) -> Any:
        """The code of the module, for ``python -m torch.distributed.run``."""
        spec = _found(self.name)
        assert spec is not None
        loader: Any = spec.loader
        return loader.get_code(self.name)


class _Shown(Loader):
    """Loads a module of compat, and gives it PyTorch's name."""

    def __init__(self, spec: ModuleSpec):
        self.spec = spec
        self.loader: Any = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self.loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self.spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        show(self.spec.name)

    def get_code(self, fullname: str) -> Any:
        """The code of the module, for ``python -m compat -m torch.distributed.run``."""
        return self.loader.get_code(fullname)


def _found(name: str) -> ModuleSpec | None:
    """The spec of a module of compat; None if there is none."""
    if name in sys.modules:
        return sys.modules[name].__spec__
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # a parent package does not exist
        return None


class _StandIn(Loader):
    """Loads the stub of a PyTorch module that compat does not have."""

    def __init__(self, module: ModuleType):
        self.module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


class _Finder(MetaPathFinder):
    """Finds ``torch.x.y`` as ``compat.x.y``, and ``functorch``; shows what compat loads after ``import torch``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        head, dot, rest = fullname.partition(".")
        if head == _OURS and _THEIRS in sys.modules:
            spec = PathFinder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Shown(spec)
            return spec
        if head not in _PACKAGES:
            return None
        name = _PACKAGES[head] + dot + rest
        # The other finders must not find hidden modules in compat's folder either.
        found = None if _is_hidden(fullname) else _found(name)
        if found is None:
            stands = stand_in_module(rest) if head == _THEIRS and rest else None
            if stands is not None:
                return ModuleSpec(fullname, _StandIn(stands), is_package=True)
            if head == _THEIRS and rest:
                first = rest.partition(".")[0]
                # A package that is there may lack what it is for: of the compiler only settings are there.
                lacking = _found(f"{_OURS}.{first}") is None or why_absent(first) == COMPILER
                why = why_absent(rest) or (lacking and why_absent(first))
                raise ModuleNotFoundError(f"No module named {fullname!r}" + (f": {why}" if why else ""), name=fullname)
            return None
        return ModuleSpec(
            fullname,
            _Alias(name, fullname),
            origin=found.origin,
            is_package=found.submodule_search_locations is not None,
        )


_finder = _Finder()


_preload_named = forkserver.set_forkserver_preload


def _preload(modules_names: list[str]) -> None:
    """``multiprocessing.set_forkserver_preload`` with ``torch`` replaced by compat: some Python versions preload before
    they set ``sys.path`` in the server."""
    if isinstance(modules_names, list):
        theirs = [n for n in modules_names if isinstance(n, str) and n.partition(".")[0] in _PACKAGES]
        modules_names = [f"{_OURS}._preload"] * bool(theirs) + [n for n in modules_names if n not in theirs]
    _preload_named(modules_names)


def install() -> None:
    """Makes ``import torch`` and imports of its submodules return compat's modules.

    This also applies to processes that ``multiprocessing`` starts afterwards, by any method. Other Python programs are
    not affected, unless this one is run by ``python -m compat``.

    Raises:
        RuntimeError: if another ``torch`` has been imported already.

    Example:
        >>> import compat
        >>> compat.install()
        >>> import torch
        >>> torch is compat, torch.__name__
        (True, 'torch')
        >>> compat.uninstall()
    """
    present = sys.modules.get(_THEIRS)
    if present is not None and present is not sys.modules[_OURS]:
        raise RuntimeError(
            f"compat.install(): {getattr(present, '__file__', None) or present!r} has been imported as torch already; "
            "install before the first `import torch`"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        # Packages that patch PyTorch check the module's ``__name__``.
        sys.modules[_OURS].__name__ = _THEIRS
    if _ALIAS not in sys.path:
        sys.path.insert(1, _ALIAS)  # the first entry is the program's folder
    if os.path.dirname(_HERE) not in sys.path:
        sys.path.append(os.path.dirname(_HERE))  # a new process finds compat where this one did
    forkserver.set_forkserver_preload = _preload


def install_in_programs() -> None:
    """Makes ``import torch`` resolve to compat in Python programs that this process and its descendants start."""
    rest = os.environ.get("PYTHONPATH", "")
    if _ALIAS not in rest.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([_ALIAS, *([rest] if rest else [])])


def uninstall() -> None:
    """Undoes ``install``: later imports of ``torch`` find the installed package of that name, if any."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        sys.modules[_OURS].__name__ = _OURS
        hide_all()
        for name in [n for n in sys.modules if n.partition(".")[0] in _PACKAGES]:
            del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry != _ALIAS]
        forkserver.set_forkserver_preload = _preload_named
