"""Comparing printed output with the output shown on a page."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

# A number with a point or an exponent; integers (shapes, lines, counts) are compared as text.
FLOAT = re.compile(r"[-+]?(?:\d+\.(\d*)(?:[eE]([-+]?\d+))?|\d+[eE]([-+]?\d+))")
# An object's address; the general ``...`` in its place would match whole lines, up to the next address.
ADDRESS = re.compile(r"\b0x(?:\.\.\.|[0-9a-f]+)")


def same(want: str, got: str, flags: int = doctest.ELLIPSIS) -> bool:
    """Whether ``got`` matches ``want``.

    Either as text, where ``0x...`` matches an address and ``...`` anything; or with floats that may differ by the
    effect of another CPU's order of rounding on float32 (1e-5 relative) or in the last digit shown, with the whitespace
    that this changes.
    """
    if "0x..." in want:
        want, got = ADDRESS.sub("0x", want), ADDRESS.sub("0x", got)
    return doctest.OutputChecker().check_output(_tidy(want), _tidy(got), flags) or _close(want, got)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def _close(want: str, got: str) -> bool:
    if _words(want) != _words(got):
        return False
    return all(_near(w, g) for w, g in zip(FLOAT.finditer(want), FLOAT.finditer(got), strict=True))


def _words(text: str) -> list[str]:
    """The text without its floats and without whitespace that is optional."""
    return re.sub(r"([\[({])", r" \1 ", re.sub(r"([\])},])", r" \1 ", FLOAT.sub("0.", text))).split()


def _near(want: re.Match[str], got: re.Match[str]) -> bool:
    last_digit = 10.0 ** (int(want[2] or want[3] or 0) - len(want[1] or ""))
    x, y = float(want[0]), float(got[0])
    return abs(x - y) <= max(1.01 * last_digit, 1e-5 * abs(x), 1e-6)


_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def same_picture(want: Path, got: Path, near: float = 3.0) -> bool:
    """Whether two files show the same: equal bytes, or SVGs whose numbers differ by a few pixels.

    Training curves are not identical to the last bit on another CPU.
    """
    if want.read_bytes() == got.read_bytes():
        return True
    if want.suffix != ".svg":
        return False
    first, second = want.read_text(), got.read_text()
    numbers = zip(_NUMBER.findall(first), _NUMBER.findall(second))
    return _NUMBER.sub("0", first) == _NUMBER.sub("0", second) and all(
        abs(float(x) - float(y)) <= near for x, y in numbers
    )


class Checker(doctest.OutputChecker):
    """The same for doctests."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return want == got or same(want, got, optionflags)
