"""Writes ``compat/names.txt``: which module publishes which names, for lazy imports.

python tools/index_names.py            write it
python tools/index_names.py --check    exit with 1 if it is out of date
"""

from __future__ import annotations

import argparse
import importlib.util
import pkgutil
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

REGISTRY = "compat._core.tensor.registry"
FILE = Path(__file__).parents[1] / "compat" / "names.txt"
#: Modules that compat imports.
AT_ONCE = ("compat._core.", "compat.autograd", "compat.random")
#: Public modules that publish names in addition to the operators.
LATER = (
    "compat",
    "compat._compile",
    "compat._lobpcg",
    "compat.func",
    "compat.library",
    "compat.nn",
    "compat.serialization",
)
found: dict[tuple[str, str], set[str]] = {}


def publisher() -> str:
    """The module that is being imported; "" for modules that compat imports."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>":
            return "" if name.startswith(AT_ONCE) else str(name).removeprefix("compat.")
        frame = frame.f_back
    return ""


def note(value: object, place: str, name: str) -> object:
    """Records the published names, and the module that publishes each."""
    module = publisher()
    if module:
        found.setdefault((module, place), set()).add(name)
    return value


class AfterRegistry(MetaPathFinder):
    """Makes the registry call ``note`` for every published name, once it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            module.publishing.append(note)

        loader.exec_module = exec_module
        return spec


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    sys.meta_path.insert(0, AfterRegistry())
    sys.path.insert(0, str(FILE.parents[1]))
    for name in LATER:
        importlib.import_module(name)
    operators = sys.modules["compat._operators"]
    for module in pkgutil.walk_packages(operators.__path__, "compat._operators."):
        importlib.import_module(module.name)
    rows = [f"{module} {place} {' '.join(sorted(names))}" for (module, place), names in sorted(found.items())]
    text = "\n".join(rows) + "\n"
    if check and FILE.read_text(encoding="utf-8") != text:
        print(f"{FILE} is not what the modules publish: run python tools/index_names.py", file=sys.stderr)
        return 1
    if not check:
        FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
