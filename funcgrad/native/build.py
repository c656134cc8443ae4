"""Compiles native code with the system's compilers: the kernels, and the C twins of Python functions."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jax

from funcgrad.core.cache_folder import cache_folder, refusal
from funcgrad.native.machine import level

#: The time limit of a compiler in seconds.
PATIENCE = 300


def compiler(variable: str, names: Sequence[str]) -> str | None:
    """The compiler named by an environment variable, or the first of ``names`` that is installed."""
    chosen = os.environ.get(variable)
    return next((found for name in ([chosen] if chosen else names) if (found := shutil.which(name))), None)


class Library(ABC):
    """A library compiled from source, cached in the user's cache folder.

    Attributes:
        name: its name in errors.
        stem: the start of its file name.
        needs: what compiling it requires, for the error if that is missing.
    """

    name: str
    stem: str
    needs: str

    @abstractmethod
    def version(self) -> tuple[str, ...] | None:
        """What its file depends on besides the source; the first part is in its name. None if it cannot be compiled
        here."""

    @abstractmethod
    def sources(self) -> Iterable[Path]:
        """Its source files."""

    @abstractmethod
    def command(self, into: Path) -> list[str] | None:
        """The compiler's command line; None if a requirement is missing."""

    def place(self) -> Path | None:
        """The path of its file; None if there is no cache folder."""
        return _place(self)

    def build(self) -> Path:
        """Compiles it, unless that is done, and waits for it.

        Raises:
            RuntimeError: naming the reason: no compiler, no cache folder, or the compiler's output.
        """
        file = self.place()
        if file is None:
            raise RuntimeError(
                f"there are no {self.name} for this machine (level {level()}), or no folder to keep them in: "
                f"{cache_folder('native')}"
            )
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._compile(file)
        return file

    def _compile(self, file: Path) -> None:
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        line = self.command(beside)
        if line is None:
            raise RuntimeError(f"{self.name} need {self.needs}")
        try:
            done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode:
                raise RuntimeError(f"{self.name} did not compile: {' '.join(line)}\n{done.stderr}")
            beside.replace(file)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not compile within {PATIENCE} seconds: {' '.join(line)}") from None
        finally:
            beside.unlink(missing_ok=True)

    def tried(self) -> bool:
        """Whether compiling it in the background is pointless: it was tried before, or is impossible. An attempt leaves
        a marker file, so that it is not repeated."""
        file = self.place()
        if file is None or file.exists() or self.command(file) is None:
            return True
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.with_suffix(".tried").touch(exist_ok=False)
        except OSError:
            return True  # tried before, or the folder is not writable
        return False


@cache
def _place(library: Library) -> Path | None:
    where, version = cache_folder("native"), library.version()
    if where is None or version is None or refusal(where) is not None:
        return None
    digest = hashlib.sha256(repr(version).encode())
    for file in sorted(set(library.sources())):
        digest.update(file.name.encode() + file.read_bytes())
    return where / f"{library.stem}-{version[0]}-{digest.hexdigest()[:16]}.so"


@dataclass(frozen=True)
class Kernels(Library):
    """The kernels that XLA calls, from all files in ``source``."""

    name = "native kernels"
    stem = "kernels"
    needs = "a C++ compiler: none of c++, g++ and clang++ is there, and no CXX is set"
    folder = Path(__file__).parent / "source"
    #: ``-ffp-contract=fast`` allows fused multiply-add; all other rounding is exact.
    options = ("-O3", "-std=c++17", "-ffp-contract=fast", "-fPIC", "-shared", "-w")

    def version(self) -> tuple[str, ...] | None:
        march = level()
        return None if march is None else (march, *self.options, jax.__version__)

    def sources(self) -> Iterable[Path]:
        return self.folder.iterdir()

    def command(self, into: Path) -> list[str] | None:
        found = compiler("CXX", ("c++", "g++", "clang++"))
        if found is None:
            return None
        files = [str(file) for file in sorted(self.folder.glob("*.cc"))]
        return [found, *self.options, f"-march={level()}", f"-I{jax.ffi.include_dir()}", *files, "-o", str(into)]


@dataclass(frozen=True)
class Twin(Library):
    """The C twin of Python functions: an extension module from one file and its headers.

    Attributes:
        source: the file; its stem is the module's name.
    """

    source: Path
    include = Path(__file__).parent / "include"
    options = (
        "-O3",
        "-std=c11",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fPIC",
        "-shared",
        "-w",
    )
    needs = "a C compiler (none of cc, gcc and clang is there, and no CC is set) and Python's headers"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"the C twins in {self.source.name}"

    @property
    def stem(self) -> str:  # type: ignore[override]
        return self.source.stem

    def version(self) -> tuple[str, ...] | None:
        tag = sysconfig.get_config_var("SOABI")
        if os.name != "posix" or not tag or sysconfig.get_config_var("Py_GIL_DISABLED"):
            return None
        return (tag, *self.options, sys.version)

    def sources(self) -> Iterable[Path]:
        return _with_headers(self.source, self.include)

    def command(self, into: Path) -> list[str] | None:
        found = compiler("CC", ("cc", "gcc", "clang"))
        headers = Path(sysconfig.get_path("include"))
        if found is None or not (headers / "Python.h").is_file():
            return None
        flags = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        includes = [f"-I{headers}", f"-I{self.include}"]
        return [found, *self.options, *flags, *includes, str(self.source), "-o", str(into)]


def _with_headers(file: Path, include: Path) -> list[Path]:
    """A C file and the headers that it includes by ``#include "..."``, recursively."""
    found, names = [file], re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE)
    for name in names:
        beside = file.parent / name
        found += _with_headers(beside if beside.is_file() else include / name, include)
    return found


kernels = Kernels()
#: The twins requested in this process.
twins: list[Twin] = []


def twins_of(package: Path) -> list[Twin]:
    """All twins of a package."""
    return [Twin(file) for file in sorted(package.rglob("*.c"))]


def build_for_the_next() -> None:
    """Starts a detached process of low priority that compiles missing libraries."""
    wanted = [library for library in (kernels, *twins) if not library.tried()]
    if not wanted:
        return
    files = [str(library.source) if isinstance(library, Twin) else "" for library in wanted]
    try:
        subprocess.Popen(
            [sys.executable, "-c", _ALONE, str(Path(__file__).parents[2]), *files],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return  # processes cannot be started


# Not ``python -m funcgrad.native``, which imports all of funcgrad: only the modules needed for compiling.
_ALONE = """
import os, pathlib, sys
os.nice(19)
sys.path.insert(0, sys.argv[1])
from funcgrad.native.build import Twin, kernels
for file in sorted(sys.argv[2:], reverse=True):
    try:
        (Twin(pathlib.Path(file)) if file else kernels).build()
    except RuntimeError:
        pass
"""
