"""Shared settings of all tests: the platform, Hypothesis profiles, and checks of every program."""

from __future__ import annotations

import os
import sys
from typing import Any

# Set before JAX is imported. Tolerances of the tests are the CPU's.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pytest
from hypothesis import HealthCheck, settings

from funcgrad import runtime
from funcgrad.core.ir import Program

# The first example of a new shape compiles; a deadline would measure XLA.
_common: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=25, derandomize=True, **_common)
settings.register_profile("search", max_examples=500, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_init = Program.__init__


def _checked(self: Program, *args: Any, **kwargs: Any) -> None:
    _init(self, *args, **kwargs)
    self.check()


# Every program that a test traces, transforms or derives, at any depth, is checked to be well formed and well typed.
Program.__init__ = _checked  # type: ignore[method-assign]


# A third run is compiled: with the normal patience, tests would rarely reach that.
runtime.settings.patience = runtime.settings.behind = 0.0
runtime.settings.warmup = 2


@pytest.fixture(autouse=True)
def _warnings_once_per_test() -> None:
    """Each test gives the warnings that a program gives once."""
    errors = sys.modules.get("compat._core.types.errors")
    if errors is not None:
        errors.Once.said.clear()


@pytest.fixture(autouse=True)
def _deferral(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of deferred execution use it even if ``COMPAT_EAGER=1`` turns it off for all others."""
    if request.node.get_closest_marker("deferral") is not None:
        monkeypatch.setattr(runtime.settings, "limit", runtime.deferred.Settings().limit)
