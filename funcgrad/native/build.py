"""Compiling the kernels, by the machine's C++ compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import jax

from funcgrad.core.cache_folder import cache_folder, refusal
from funcgrad.native.machine import level

SOURCE = Path(__file__).parent / "source"
#: ``-ffp-contract=fast`` lets a product and a sum be one instruction; nothing else about rounding is left to it.
OPTIONS = ("-O3", "-std=c++17", "-ffp-contract=fast", "-fPIC", "-shared", "-w")
#: How long a compiler may take, in seconds.
PATIENCE = 300


def compiler() -> str | None:
    """The compiler: ``CXX``, or the first installed one of ``c++``, ``g++`` and ``clang++``."""
    chosen = os.environ.get("CXX")
    names = (chosen,) if chosen else ("c++", "g++", "clang++")
    return next((found for name in names if (found := shutil.which(name))), None)


@cache
def place() -> Path | None:
    """The library's file for this processor, this version of JAX and this source, if it may be kept anywhere."""
    where, march = cache_folder("native"), level()
    if where is None or march is None or refusal(where) is not None:
        return None
    digest = hashlib.sha256(repr((march, OPTIONS, jax.__version__)).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    return where / f"kernels-{march}-{digest.hexdigest()[:16]}.so"


def command(into: Path) -> list[str] | None:
    """The compiler's command line; None if there is no compiler."""
    found = compiler()
    if found is None:
        return None
    sources = [str(file) for file in sorted(SOURCE.glob("*.cc"))]
    return [found, *OPTIONS, f"-march={level()}", f"-I{jax.ffi.include_dir()}", *sources, "-o", str(into)]


def build() -> Path:
    """Compiles the library, unless it is there, and waits for it.

    Raises:
        RuntimeError: saying why there will be none: no compiler, no place to keep it, or the compiler's own words.
    """
    file = place()
    if file is None:
        raise RuntimeError(
            f"there are no native kernels for this processor (level {level()}), or no folder to keep them in: "
            f"{cache_folder('native')}"
        )
    if file.exists():
        return file
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    line = command(beside)
    if line is None:
        raise RuntimeError(
            "native kernels need a C++ compiler: none of c++, g++ and clang++ is there, and no CXX is set"
        )
    try:
        done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(f"native kernels did not compile: {' '.join(line)}\n{done.stderr}")
        beside.replace(file)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"native kernels did not compile within {PATIENCE} seconds: {' '.join(line)}") from None
    finally:
        beside.unlink(missing_ok=True)
    return file


def build_for_the_next() -> None:
    """Starts a process of low priority that compiles the library and outlives this one.

    A file that cannot be made is not tried again and again: the attempt leaves a note beside it.
    """
    file = place()
    if file is None or compiler() is None:
        return
    note = file.with_suffix(".tried")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch(exist_ok=False)
        subprocess.Popen(
            [sys.executable, "-c", _ALONE, str(Path(__file__).parents[2])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return  # tried before, or nothing can be written or started


# Not ``python -m funcgrad.native``, which imports all of funcgrad: only the modules that compiling needs.
_ALONE = """
import os, sys
os.nice(19)
sys.path.insert(0, sys.argv[1])
from funcgrad.native.build import build
build()
"""
