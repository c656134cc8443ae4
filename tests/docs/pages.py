"""Runs the code on the documentation's pages and compares what it prints with what the pages show.

    python tests/docs/pages.py                    check every page
    python tests/docs/pages.py docs/index.md      check the given pages
    python tests/docs/pages.py --write            update output that differs from the real one

The ``python`` blocks of a page run in order in one namespace, as one script, ``example.py``, which is the file name in
tracebacks. The ``output`` block after a block has what it prints, and its last expression's value as at Python's
prompt. CONTRIBUTING.md describes the other kinds of blocks.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # when run as a program
from tests.docs.compare import same, same_picture  # noqa: E402

#: Settings of matplotlib for pages: reproducible files, letters as text, no background.
PLOTS = ROOT / "tests" / "docs" / "matplotlibrc"
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)(?P<options>.*)$")
TITLE = re.compile(r"""title=["']([^"']+)["']""")
SHOWN_ERROR = re.compile(r"^Traceback", re.MULTILINE)

# What an sh block, which is not run, may contain: what continuous integration runs itself, and how to get there.
SHELL_LINE = re.compile(r"^(#.*|git clone .*|cd \S+|pip install .*|make( +(?P<target>[a-z-]+))?( +#.*| +[A-Z]+=.*)?|)$")


@dataclass
class Block:
    """A fenced block: its position (indices into the page's lines, fences included) and its content."""

    language: str
    options: str
    start: int
    stop: int
    indent: str
    code: str

    @property
    def title(self) -> str | None:
        found = TITLE.search(self.options)
        return found[1] if found else None


@dataclass
class Page:
    """A page, and what is found while its blocks run."""

    path: Path
    lines: list[str]
    blocks: list[Block]
    problems: list[str] = field(default_factory=list)
    edits: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def problem(self, block: Block, message: str) -> None:
        where = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        self.problems.append(f"{where}:{block.start + 1}: {message}")

    def shown(self, block: Block) -> Block | None:
        """The output block right after ``block``, separated only by blank lines."""
        following = self.blocks[self.blocks.index(block) + 1 :][:1]
        if not following or following[0].language != "output":
            return None
        between = self.lines[block.stop : following[0].start]
        return None if any(line.strip() for line in between) else following[0]

    def show(self, block: Block, output: str) -> None:
        """Records the edit that makes ``output`` the output shown for ``block``."""
        old = self.shown(block)
        start, stop = (block.stop, old.stop) if old else (block.stop, block.stop)
        body = [f"{block.indent}{line}".rstrip() for line in output.splitlines()]
        new = ["", f"{block.indent}```output", *body, f"{block.indent}```"] if body else []
        self.edits.append((start, stop, new))

    def rewrite(self) -> bool:
        """Applies the edits; returns whether there were any."""
        for start, stop, new in sorted(self.edits, reverse=True):
            self.lines[start:stop] = new
        if self.edits:
            self.path.write_text("\n".join(self.lines) + "\n")
        return bool(self.edits)


def read(path: Path) -> Page:
    """Parses a page into its fenced blocks, indented ones (in lists, tabs and admonitions) included."""
    lines = path.read_text().splitlines()
    blocks: list[Block] = []
    i = 0
    while i < len(lines):
        opening = FENCE.match(lines[i])
        i += 1
        if not opening:
            continue
        start, indent, ticks = i - 1, opening["indent"], opening["ticks"]
        while i < len(lines) and lines[i].strip() != ticks:
            i += 1
        if i == len(lines):
            raise ValueError(f"{path}:{start + 1}: the block that opens here is never closed")
        body = [line.removeprefix(indent) for line in lines[start + 1 : i]]
        i += 1
        blocks.append(Block(opening["language"], opening["options"], start, i, indent, "".join(f"{s}\n" for s in body)))
    return Page(path, lines, blocks)


def difference(want: str, got: str) -> str:
    lines = difflib.unified_diff(
        want.splitlines(), got.splitlines(), "the page shows", "the code gives", lineterm="", n=2
    )
    return "\n".join(f"    {line}" for line in lines)


# ---------------------------------------------------------------- the kinds of blocks


class Script:
    """The python blocks of a page as one growing script, run in the current directory."""

    def __init__(self) -> None:
        self.path = Path("example.py")
        self.path.touch()
        self.length = 0
        self.namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(self.path)}

    def run(self, code: str) -> tuple[str, BaseException | None]:
        """Runs a block; returns its output, with the traceback as the page should show it, and the exception."""
        with self.path.open("a") as file:  # so that tracebacks and inspect.getsource find the source
            file.write(code)
        out = io.StringIO()
        error: BaseException | None = None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                self._execute(code)
            except (Exception, SystemExit) as e:  # a block may be about the error it raises
                error = e
                print("\n".join(self.traceback(e)))
        self.length += len(code.splitlines())
        return out.getvalue(), error

    def _execute(self, code: str) -> None:
        tree = ast.parse(code)
        ast.increment_lineno(tree, self.length)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(self.path), "exec"), self.namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(self.path), "eval"), self.namespace)
            if value is not None:
                print(repr(value))

    def traceback(self, error: BaseException) -> Iterator[str]:
        """Python's traceback with the frames outside the page shown as ``...``."""
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is not None:
            yield from self.traceback(cause)
            yield ""
            yield (
                "The above exception was the direct cause of the following exception:"
                if error.__cause__
                else "During handling of the above exception, another exception occurred:"
            )
            yield ""
        yield "Traceback (most recent call last):"
        elided = True  # the frames of this program, above the page's, are irrelevant
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == str(self.path):
                yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
                yield f"    {frame.line}"
                elided = False
            elif not elided:
                yield "  ..."
                elided = True
        yield from "".join(traceback.format_exception_only(error)).rstrip().splitlines()


def run_python(page: Page, block: Block, script: Script) -> bool:
    """Checks a python block; False if the page cannot continue after it."""
    shown = page.shown(block)
    want = shown.code if shown else ""
    got, error = script.run(block.code)
    if error is not None and not SHOWN_ERROR.search(want):
        details = "".join(traceback.format_exception(error))
        page.problem(block, f"raises, and the page does not show it:\n{details}")
        return False
    if not same(want, got):
        what = "prints what the page does not show" if shown is None else "the output differs"
        page.problem(block, f"{what}:\n{difference(want, got)}")
        page.show(block, got)
    return True


def write_file(page: Page, block: Block) -> None:
    """A block with a title is a file; a later console block runs it."""
    assert block.title is not None
    compile(block.code, block.title, "exec")
    Path(block.title).write_text(block.code)
    later = page.blocks[page.blocks.index(block) :]
    if not any(b.language == "console" and block.title in b.code for b in later):
        page.problem(block, f"no console block after it runs {block.title}")


def captured(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, env=environment, timeout=600, check=False, **pipes)


def run_console(page: Page, block: Block) -> None:
    """Runs the lines that begin with ``$`` and compares the whole session."""
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    session = []
    for line in block.code.splitlines():
        if not line.startswith("$ "):
            continue
        done = captured(["bash", "-c", line[2:]], environment)
        session.append(f"{line}\n{done.stdout}")
        if done.returncode and not SHOWN_ERROR.search(block.code):
            page.problem(block, f"{line} ended with exit code {done.returncode}:\n{done.stdout}")
            return
    got = "".join(session)
    if not same(block.code, got):
        page.problem(block, f"the session differs:\n{difference(block.code, got)}")
        body = [f"{block.indent}{line}".rstrip() for line in got.splitlines()]
        page.edits.append((block.start + 1, block.stop - 1, body))


def check_shell(page: Page, block: Block) -> None:
    """Commands that are only shown: they must be those that continuous integration runs, with existing make targets."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in block.code.splitlines():
        known = SHELL_LINE.match(line)
        if not known:
            page.problem(block, f"{line!r} is not run by anything; a console block would run it")
        elif known["target"] and known["target"] not in targets:
            page.problem(block, f"the Makefile has no target {known['target']}")


def check_output(page: Page, block: Block) -> None:
    before = page.blocks[: page.blocks.index(block)][-1:]
    if not before or before[0].language != "python" or page.shown(before[0]) is not block:
        page.problem(block, "an output block that follows no python block")


def compare_images(page: Page, write: bool) -> None:
    """The pictures that the code wrote equal those in img/ of the page's folder."""
    for made in sorted([*Path("img").glob("*"), *Path().glob("*.svg")]):
        kept = page.path.parent / "img" / made.name
        if kept.exists() and same_picture(kept, made):
            continue
        if write:
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(made.read_bytes())
        page.problems.append(f"{kept.name}: the image that the page's code writes is not the one beside the page")


QUOTED: dict[str, Callable[[Page, Block], None]] = {
    "output": check_output,
    "sh": check_shell,
    "text": lambda page, block: None,  # diagrams
    "markdown": lambda page, block: None,  # how to write a page
}


def run_blocks(page: Page) -> None:
    script = Script()
    for block in page.blocks:
        if block.language == "python" and not block.title:
            if not run_python(page, block, script):
                break
        elif block.language == "python":
            write_file(page, block)
        elif block.language == "console":
            run_console(page, block)
        elif block.language in QUOTED:
            QUOTED[block.language](page, block)
        else:
            page.problem(block, f"nothing runs a block of language {block.language!r}")


def check(path: Path, write: bool = False) -> list[str]:
    """Runs one page in a scratch directory; returns what is wrong with it, after corrections where ``write`` is set."""
    path = path.resolve()
    page = read(path)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        Path("img").mkdir()
        shutil.copy(PLOTS, "matplotlibrc")
        for file in (path.parent / "files").glob("*"):  # the files that the page offers for download
            shutil.copy(file, file.name)
        sys.path.insert(0, scratch)  # a page's own files can be imported
        try:
            run_blocks(page)
        finally:
            sys.path.remove(scratch)
        compare_images(page, write)
    if write:
        page.rewrite()
    return page.problems


def pages() -> list[Path]:
    """Every page with code that a reader may try."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run_apart(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Checks a page in a process of its own, which keeps what it installs, seeds and caches."""
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=search, COLUMNS="100", NO_COLOR="1")
    environment.setdefault("JAX_PLATFORMS", "cpu")
    environment["SOURCE_DATE_EPOCH"] = "0"  # the date in matplotlib's files
    environment.pop("COMPAT_EAGER", None)  # pages show what readers see who have not set it
    command = [sys.executable, __file__, "--here", *options, str(path)]
    return captured(command, environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="rewrite the output shown where it differs")
    parser.add_argument("--here", action="store_true", help="in this process, not one for each page")
    arguments = parser.parse_args()
    wrong = False
    for path in arguments.pages or pages():
        if arguments.here:
            problems = "\n".join(check(path, arguments.write))
        else:
            problems = run_apart(path, *["--write"] * arguments.write).stdout
        if problems:
            print(problems)
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
