"""``torch.torch_version``: the class of ``torch.__version__``, a string that compares as a version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from compat.version import __version__ as _number

__all__ = ["TorchVersion"]

#: Compiled at the first comparison.
_VERSION = r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_number>\d*))?
    (?:-(?P<bare_post>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*"""
_SPELLED = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are ordered by, as PEP 440 defines it; None for a text that is not a version."""
    found = re.fullmatch(_VERSION, text, re.VERBOSE | re.IGNORECASE)
    if found is None:
        return None
    part = found.groupdict()
    release = [int(n) for n in part["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = part["bare_post"] or (part["post"] and (part["post_number"] or "0"))
    dev = part["dev"] and (part["dev_number"] or "0")
    # Before releases come candidates, and before these development versions without another mark.
    pre: tuple[int, str, int] = (-1 if dev and not post else 1, "", 0)
    if part["pre"]:
        letter = part["pre"].lower()
        pre = 0, _SPELLED.get(letter, letter), int(part["pre_number"] or 0)
    local = [
        (1, int(s), "") if s.isdigit() else (0, 0, s.lower()) for s in re.split(r"[-_.]", part["local"] or "") if s
    ]
    return (
        int(part["epoch"] or 0), tuple(release), pre, int(post) if post else -1, int(dev) if dev else inf, tuple(local),
    )  # fmt: skip


def _comparison(name: str) -> Callable[[str, Any], Any]:
    as_texts = getattr(str, name)

    def compare(self: str, other: Any) -> Any:
        text = ".".join(map(str, other)) if isinstance(other, Iterable) and not isinstance(other, str) else other
        mine, given = _key(self), _key(text) if isinstance(text, str) else None
        return as_texts(self, other) if mine is None or given is None else getattr(mine, name)(given)

    compare.__name__ = name
    return compare


class TorchVersion(str):
    """A version: a string that compares with strings and tuples of numbers by PEP 440's order of versions.

    With what is not a version it compares as a string; ``!=`` always does, as in PyTorch.

    Example:
        >>> "2.13.0" > "2.4", TorchVersion("2.13.0") > "2.4", TorchVersion("2.13.0") >= (2, 4)
        (False, True, True)
        >>> TorchVersion("2.13.0a0") < "2.13" < TorchVersion("2.13.0.post1")
        True
    """

    __slots__ = ()
    __hash__ = str.__hash__
    __eq__ = _comparison("__eq__")
    __lt__, __le__ = _comparison("__lt__"), _comparison("__le__")
    __gt__, __ge__ = _comparison("__gt__"), _comparison("__ge__")


__version__ = TorchVersion(_number)
