"""Tensors in parts on eight virtual devices, in a process of their own: devices do not change while a program runs."""

from __future__ import annotations

from pathlib import Path

from tests.compat.distributed.launching import run_python


def test_tensors_in_parts(tmp_path: Path) -> None:
    for what in ("train", "load"):
        status, text = run_python("eight_devices_program.py", what, str(tmp_path / "state"), devices=8)
        assert status == 0, text
