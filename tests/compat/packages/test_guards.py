"""``torch._guards``, which tensordict asks for the active fake mode."""

from __future__ import annotations

import pytest

import compat as torch
from compat._subclasses import FakeTensorMode


def test_the_active_fake_mode() -> None:
    guards = torch._guards
    assert guards.active_fake_mode() is None is guards.detect_fake_mode([torch.ones(1)])
    with FakeTensorMode() as outer, FakeTensorMode() as mode:
        assert guards.active_fake_mode() is mode
        x = torch.ones(2)
        assert guards.detect_fake_mode() is mode
    assert outer is not mode and guards.detect_fake_mode({"x": [x]}) is mode
    with FakeTensorMode(), pytest.raises(AssertionError, match="doesn't match"):
        guards.detect_fake_mode([x])
    assert guards.TracingContext.try_get() is None


def test_results_are_matched_by_position() -> None:
    found = torch.min(torch.tensor([[3.0, 1.0]]), 1)
    match found:
        case torch.return_types.min(values, indices):
            assert (values.tolist(), indices.tolist()) == ([1.0], [1])
        case _:
            raise AssertionError(found)
    kind = torch.return_types.linalg_svd
    assert (kind.__match_args__, kind.n_sequence_fields, kind.n_unnamed_fields) == (("U", "S", "Vh"), 3, 0)
