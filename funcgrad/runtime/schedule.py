"""The schedule: at which occurrence a window is compiled, and from which its program is used.

Operations that run one by one round differently from the compiled program, so the switch must happen at the same
occurrence in every run of a program. It is computed from estimated run and compile times. Neither a clock nor the
compiler's progress is read: a program that is ready early waits for its occurrence, and an occurrence waits for a late
program.

The program and the compiler run side by side, so a program that waits for the compiler gains nothing: the time in which
operations could run one by one is lost. ``Timeline`` says when the compiler will have finished.
"""

from __future__ import annotations

from math import inf

from funcgrad.native.machine import cores
from funcgrad.runtime.deferred import settings

#: A window is compiled at this occurrence at the latest, if that saves anything: estimates may be wrong.
LAST = 4000
#: The milliseconds of Python for each operation of a window: in the user's program, and in recording it.
RECORDED = 0.03
#: The unamortized milliseconds at which windows wait for twice as many occurrences.
DOUBLES = 4000.0
#: A program that stands still until the compiler has finished is noticed the more, the longer it has run: the fraction
#: of ``settings.behind`` that it goes on for at its start, and the milliseconds after which half of the rest is added.
AT_START, STARTS = 0.2 if cores() > 1 else 0.4, 5000.0


class Unamortized:
    """The estimated compile time that runs of the compiled programs have not saved yet.

    If sizes depend on data, structures occur a few times and never again.

    Attributes:
        milliseconds: that time.
    """

    __slots__ = ("milliseconds",)

    def __init__(self) -> None:
        self.milliseconds = 0.0

    def add(self, milliseconds: float) -> None:
        """Adds the cost of a compilation."""
        self.milliseconds += milliseconds

    def subtract(self, milliseconds: float) -> None:
        """Subtracts the time that a run of a compiled program saves."""
        self.milliseconds = max(0.0, self.milliseconds - milliseconds)

    def factor(self) -> float:
        """The factor by which compilations are delayed."""
        return 1 + (self.milliseconds / DOUBLES) ** 2


unamortized = Unamortized()


class Timeline:
    """The estimated progress of the program and of the compiling thread, in milliseconds.

    Attributes:
        now: the run time of all windows so far.
        idle: when the compiling thread has finished everything requested so far.
    """

    __slots__ = ("now", "idle")

    def __init__(self) -> None:
        self.now = self.idle = 0.0

    def ran(self, operations: int, milliseconds: float) -> None:
        """Adds the run of a window of so many operations."""
        self.now += RECORDED * operations + milliseconds

    def compiled_at(self, cost: float) -> float:
        """When a program requested now is ready; it waits for those requested before.

        Args:
            cost: the milliseconds of compiling.
        """
        lasting = self.now / (self.now + STARTS)
        self.idle = max(self.now, self.idle) + settings.behind * (AT_START + (1 - AT_START) * lasting) * cost
        return self.idle


timeline = Timeline()


def price(cost: float) -> float:
    """The milliseconds that a compiled window must have been able to save before it is compiled in the background.

    Args:
        cost: the milliseconds of compiling.
    """
    return settings.patience * cost * cost / (cost + settings.beside)


def due(seen: int, saves: float, cost: float) -> bool:
    """Whether a window is to be compiled in the background now.

    Args:
        seen: its number of occurrences, this one included.
        saves: the milliseconds that a compiled run saves.
        cost: the milliseconds of compiling.
    """
    enough = (seen - 1) * saves >= price(cost) * unamortized.factor()
    return seen > 1 and (enough or (saves > 0 and seen >= LAST))


def earliest(saves: float, cost: float) -> float:
    """The occurrence before which ``due`` is false for the same savings and costs, whatever else is compiled."""
    return min(LAST, 1 + price(cost) / saves) if saves > 0 else inf
