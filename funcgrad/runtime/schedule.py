"""At which of its meetings a window is compiled.

Rounding differs between operations that run one by one and the one program that they become, so the moment of the
change must be the same whenever a program is run. It is a number of meetings, which follows from what running and
compiling are estimated to take. No clock is read here, and no look is taken at how far the compiler has come: a program
that is ready early waits for its meeting, and a meeting waits for a program that is late.
"""

from __future__ import annotations

from math import ceil

from funcgrad.runtime.deferred import settings

#: At this meeting a program is used at the latest, where that saves anything: estimates may be wrong.
LAST = 1000
#: The debt at which twice as many meetings are waited for, in milliseconds.
DEBT = 2000.0


class Debt:
    """The estimated milliseconds spent on compiling that runs of the compiled programs have not saved yet.

    Where sizes depend on data, structures come a few times and then never again.

    Attributes:
        owed: the debt.
    """

    __slots__ = ("owed",)

    def __init__(self) -> None:
        self.owed = 0.0

    def owe(self, milliseconds: float) -> None:
        """Takes account of something that is compiled and is to pay by its runs."""
        self.owed += milliseconds

    def saved(self, milliseconds: float) -> None:
        """Takes account of a run of something compiled."""
        self.owed = max(0.0, self.owed - milliseconds)

    def factor(self) -> float:
        """The factor by which compilations wait longer."""
        return 1 + (self.owed / DEBT) ** 2


debt = Debt()


def due(seen: int, saves: float, cost: float) -> bool:
    """Whether a window is to be compiled behind the program.

    Args:
        seen: how often it was met, this time included.
        saves: the milliseconds that a run of the compiled program saves.
        cost: the milliseconds that compiling takes.
    """
    enough = (seen - 1) * saves >= settings.patience * cost * debt.factor()
    return seen > 1 and (enough or (saves > 0 and seen * (settings.behind + 1) >= LAST))


def adopted_at(seen: int, saves: float, cost: float) -> int:
    """The occurrence from which a window requested now runs its compiled program; arguments as for ``due``."""
    further = ceil(settings.behind * settings.patience * cost / saves) if saves > 0 else 1
    return max(settings.meetings + 1, seen + 1, min(LAST, seen + further))
