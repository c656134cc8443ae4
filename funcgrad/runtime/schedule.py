"""The schedule: at which occurrence a window is compiled, and from which its program is used.

Operations that run one by one round differently from the compiled program, so the switch must happen at the same
occurrence in every run of a program. It is computed from estimated run and compile times. Neither a clock nor the
compiler's progress is read: a program that is ready early waits for its occurrence, and an occurrence waits for a late
program.
"""

from __future__ import annotations

from math import ceil

from funcgrad.runtime.deferred import settings

#: A program is used at this occurrence at the latest, if that saves anything: estimates may be wrong. With more
#: patience than 1 it is so many times later.
LAST = 1000
#: The debt, in milliseconds, at which windows wait for twice as many occurrences.
DEBT = 2000.0


class Debt:
    """The estimated milliseconds spent on compiling that runs of the compiled programs have not saved yet.

    If sizes depend on data, structures occur a few times and never again.

    Attributes:
        owed: the debt.
    """

    __slots__ = ("owed",)

    def __init__(self) -> None:
        self.owed = 0.0

    def owe(self, milliseconds: float) -> None:
        """Adds the cost of a compilation."""
        self.owed += milliseconds

    def saved(self, milliseconds: float) -> None:
        """Subtracts what a run of a compiled program saves."""
        self.owed = max(0.0, self.owed - milliseconds)

    def factor(self) -> float:
        """The factor by which compilations are delayed."""
        return 1 + (self.owed / DEBT) ** 2


debt = Debt()


def due(seen: int, saves: float, cost: float) -> bool:
    """Whether a window is to be compiled in the background now.

    Args:
        seen: its number of occurrences, this one included.
        saves: the milliseconds that a compiled run saves.
        cost: the milliseconds of compiling.
    """
    enough = (seen - 1) * saves >= settings.patience * cost * debt.factor()
    return seen > 1 and (enough or (saves > 0 and seen * (settings.behind + 1) >= _last()))


def adopted_at(seen: int, saves: float, cost: float) -> int:
    """The occurrence from which a window requested now runs its compiled program; arguments as for ``due``."""
    further = ceil(settings.behind * settings.patience * cost / saves) if saves > 0 else 1
    return max(settings.meetings + 1, seen + 1, min(_last(), seen + further))


def _last() -> int:
    return round(LAST * max(1.0, settings.patience))
