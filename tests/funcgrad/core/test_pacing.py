"""Pacing of background threads."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

import pytest

from funcgrad.core import pacing
from funcgrad.runtime import background


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads of the breaks that are taken; a turn is over at once."""
    taken: list[int] = []
    monkeypatch.setattr(pacing, "TURN", 0.0)
    sleep = time.sleep  # also of the thread that writes the cache on disk
    monkeypatch.setattr(time, "sleep", lambda s: taken.append(threading.get_ident()) if s == pacing.BREAK else sleep(s))
    return taken


def work() -> None:
    """Calls a function."""


def test_a_paced_thread_takes_breaks_at_calls(breaks: list[int]) -> None:
    work()
    assert not breaks
    with pacing.paced():
        work()
        assert breaks
    count = len(breaks)
    work()
    assert len(breaks) == count


def test_other_threads_take_no_breaks(breaks: list[int]) -> None:
    other = threading.Thread(target=lambda: [work() for _ in range(100)])
    with pacing.paced():
        other.start()
        other.join()
    assert breaks and other.ident not in breaks


def test_a_paced_thread_takes_no_breaks_while_another_waits_for_it(breaks: list[int]) -> None:
    with pacing.paced():
        with pacing.hurried():
            before = len(breaks)
            with pacing.hurried():
                work()
            work()
            assert len(breaks) == before
        work()
        assert len(breaks) > before


def test_a_profile_function_of_the_thread_stays() -> None:
    calls: list[str] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pacing.paced():
            work()
            assert sys.getprofile() is profile
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert "work" in calls


def test_the_switch_interval_is_restored_unless_somebody_sets_it_meanwhile() -> None:
    background.wait()  # a thread that is paced at this time changes the interval, too
    before = sys.getswitchinterval()
    microsecond = 1e-6  # to which CPython rounds down
    try:
        sys.setswitchinterval(0.005)
        with pacing.paced():
            assert sys.getswitchinterval() == pytest.approx(pacing.SWITCH_INTERVAL, abs=microsecond)
        assert sys.getswitchinterval() == pytest.approx(0.005, abs=microsecond)
        with pacing.paced():
            sys.setswitchinterval(0.25)
        assert sys.getswitchinterval() == pytest.approx(0.25)
    finally:
        sys.setswitchinterval(before)
