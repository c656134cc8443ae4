"""Sharded tensors on eight virtual devices, in a process of their own: the devices of a process are fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.distributed.launching import run_python


def test_tensors_in_parts(tmp_path: Path) -> None:
    for what in ("train", "load"):
        status, text = run_python("eight_devices_program.py", what, str(tmp_path / "state"), devices=8)
        assert status == 0, text


@pytest.mark.parametrize("how", ["data", "sharded", "tensor"])
def test_collectives_of_a_compiled_step(how: str, tmp_path: Path) -> None:
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    status, text = run_python("collectives_program.py", how, str(tmp_path), devices=8, flags=flags)
    assert status == 0 and text.endswith("done\n"), text


def test_placements_of_results_are_pytorchs() -> None:
    status, text = run_python("placements_program.py", devices=2)
    assert (status, text) == (0, "done\n"), text
