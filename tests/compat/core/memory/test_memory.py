"""Tensors' memory: writes to overlapping elements, storages."""

import warnings
from typing import Any

import pytest

import compat as torch
from compat._core.memory.typed_storage import warn_typed
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("memory"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_typed()  # warned once per process, and it had been warned in the process that recorded this
    assert_same(observe(torch, source), want)
