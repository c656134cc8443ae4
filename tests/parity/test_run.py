"""The parity run's verdict, on made-up tables; the run itself needs real PyTorch (make parity)."""

from __future__ import annotations

from pathlib import Path

from tests.parity import run

TABLE = {
    "add": {"exists": True, "forward": True},
    "std": {"exists": True, "forward": True},
    "std.unbiased": {"exists": True, "forward": False},
    "other": {"exists": False},
}
WHY = {"std.unbiased": {"forward": "values differ"}}


def test_a_failing_cell_is_wrong_unless_it_is_an_exception() -> None:
    assert run.judge(["add"], TABLE, WHY, {}) == []
    assert run.judge(["add", "std"], TABLE, WHY, {}) == ["std.unbiased forward: values differ"]
    assert run.judge(["add", "std"], TABLE, WHY, {("std.unbiased", "forward"): "for a reason"}) == []


def test_an_exception_that_is_needed_no_more_is_wrong() -> None:
    assert run.judge(["add"], TABLE, WHY, {("add", "forward"): "once"}) == [
        "add forward: is full, so it needs no exception any more"
    ]
    assert run.judge(["add"], TABLE, WHY, {("add", "grad"): "misspelt"}) == [
        "add grad: is an exception for a cell that is not there"
    ]


def test_listed_programs_must_exist() -> None:
    assert run.judge(["ad"], TABLE, WHY, {}) == ["ad: is listed, but the parity programs have nothing of that name"]


def test_the_lists_can_be_read(tmp_path: Path) -> None:
    ops, modules = (list(run.entries(run.HERE / name)) for name in ("ops.txt", "modules.txt"))
    for names in (ops, modules):
        assert len(names) == len(set(names))
        assert not [name for name in names if " " in name]
    for label, column in run.exceptions(run.HERE / "exceptions.txt"):
        held = run.entry_of(label, [*ops, *modules])
        assert (held is None) == (column == "*"), f"{label} {column} is an exception to nothing that is held"
    (tmp_path / "list.txt").write_text("# a comment\n\nconv2d jvp  rounding, in the last digit\n")
    assert run.exceptions(tmp_path / "list.txt") == {("conv2d", "jvp"): "rounding, in the last digit"}
