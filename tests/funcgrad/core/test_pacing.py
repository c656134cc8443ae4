"""Pacing of background threads."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from funcgrad.core import pacing


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The breaks that are taken; a turn is over at once."""
    taken: list[float] = []
    monkeypatch.setattr(pacing, "TURN", 0.0)
    sleep = time.sleep  # also of the thread that writes the cache on disk
    monkeypatch.setattr(time, "sleep", lambda s: taken.append(s) if s == pacing.BREAK else sleep(s))
    return taken


def test_only_a_paced_thread_takes_breaks(breaks: list[float]) -> None:
    pacing.pause()
    assert not breaks
    with pacing.paced():
        other = threading.Thread(target=pacing.pause)
        other.start()
        other.join()
        assert not breaks
        pacing.pause()
        assert breaks == [pacing.BREAK]
    pacing.pause()
    assert len(breaks) == 1


def test_a_paced_thread_takes_no_breaks_while_another_waits_for_it(breaks: list[float]) -> None:
    with pacing.paced():
        with pacing.hurried(), pacing.hurried():
            pacing.pause()
        assert not breaks
        pacing.pause()
        assert len(breaks) == 1


def test_the_switch_interval_is_restored_unless_somebody_sets_it_meanwhile() -> None:
    before = sys.getswitchinterval()
    try:
        with pacing.paced():
            assert sys.getswitchinterval() == pytest.approx(pacing.SWITCH_INTERVAL)
        assert sys.getswitchinterval() == pytest.approx(before)
        with pacing.paced():
            sys.setswitchinterval(0.25)
        assert sys.getswitchinterval() == pytest.approx(0.25)
    finally:
        sys.setswitchinterval(before)
