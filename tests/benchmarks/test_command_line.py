"""The command line: its options, its output and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks.__main__ import NAMES, Settings, main
from benchmarks.contestants import CONTESTANTS
from benchmarks.harness import Spread
from benchmarks.race import Rules
from benchmarks.results import Limits, Race, Result, Run, problems, restored
from benchmarks.workloads import all_workloads
from benchmarks.workloads.base import Workload


def order(*arguments: str) -> Settings:
    parser = program._parser()
    return program.parse_settings(parser, parser.parse_args(arguments))


def pairs(found: Settings) -> list[tuple[str, str]]:
    return [(workload.name, size) for workload, size in found.workloads]


def test_without_names_everything_runs_at_all_its_sizes():
    found = order()
    assert found.benchmarks == list(NAMES)
    assert pairs(found) == [(w.name, size) for w in all_workloads().values() for size in w.sizes]
    assert [c.name for c in found.contestants] == list(CONTESTANTS)
    assert order("training").benchmarks == [] and order("functional").workloads == []


def test_names_sizes_and_contestants():
    found = order("chain", "habits", "eager_grad", "mlp", "--sizes", "medium,depth=8", "--contestants", "compat,jax")
    assert found.benchmarks == ["eager_grad"]
    habits = [(w, "medium") for w in all_workloads() if w.startswith("habit_")]
    assert len(habits) > 3
    # Only one of them has a depth.
    assert pairs(found) == [("chain", "medium"), *habits, ("mlp", "medium"), ("mlp", "depth=8")]
    assert [c.name for c in found.contestants] == ["compat", "jax"] and found.baseline == "compat"


def test_rounds_threads_quick_and_series():
    assert order("--rounds", "4", "--threads", "1").rules == Rules(rounds=4, threads=1)
    quick = order("--quick")
    assert {size for _, size in pairs(quick)} == {"small"} and quick.benchmarks == []
    assert "torch.compile" not in [c.name for c in quick.contestants] and not quick.rules.second_process
    assert (
        order("--quick", "lstm").rules.rounds < Rules().rounds and order("--quick", "--rounds", "9").rules.rounds == 9
    )
    assert pairs(order("chain", "--series")) == [("chain", f"length={n}") for n in (10, 50, 200, 800)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_thing"], "no benchmark is called no_such_thing"),
        (["--contestants", "numpy"], "no contestant is called numpy"),
        (["mlp", "--sizes", "tiny"], "no workload of these has a size tiny"),
        (["mlp", "--sizes", "depth=many"], "no workload of these has a size depth=many"),
    ],
)
def test_unknown_names_on_the_command_line_are_errors(arguments, message, capsys):
    with pytest.raises(SystemExit):
        order(*arguments)
    assert message in capsys.readouterr().err


def test_the_list_has_everything(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name in (*NAMES, *all_workloads(), *CONTESTANTS):
        assert name in listed


# ---------------------------------------------------------------- from made-up races to the printed tables

STEPS = {"torch": 8e-3, "compat": 2e-3, "jax": 1e-3}


def invented(workload: Workload, size: str, *rest: object) -> Race:
    """Steps that grow with the batch, four times as fast in compat and eight times as fast in JAX."""
    fields = {"batch": workload.size(size).batch}
    results = {}
    for name, seconds in STEPS.items():
        step = Spread(seconds * fields["batch"], seconds, seconds * 2)
        ratio = STEPS["torch"] / seconds
        results[name] = Result(
            "ok", None, 0.5, 0.1, [0.3, 0.1], [1.0, 0.9], 0.2, 0.0, 100, step, Spread(ratio, ratio, ratio), 2**20, 2**21
        )
    results["compat.compile"] = Result("void", "its losses are off by 0.5")
    return Race(workload.name, workload.title, size, fields, "torch", False, 7, 1e6, 2e6, 0.3, results)


def test_the_command_line_writes_its_output(tmp_path: Path, capsys, monkeypatch):
    file = tmp_path / "new" / "out.json"
    monkeypatch.setattr(program, "race", invented)
    monkeypatch.setattr(program.limits, "in_own_process", lambda threads: Limits(1e9, 1e10))
    arguments = [
        "mlp",
        "jit_call",
        "--sizes",
        "small,batch=1,batch=4",
        "--rounds",
        "2",
        "--markdown",
        "--json",
        str(file),
    ]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    written = json.loads(file.read_text())
    assert problems(written, Run) == []
    assert written["command"] == arguments and written["environment"]["versions"]["jax"]

    run: Run = restored(written, Run)
    assert [race.size for race in run.races] == ["small", "batch=1", "batch=4"]
    assert run.means["compat"]["all"].ratio == pytest.approx(4)
    assert run.means["jax"]["small"].ratio == pytest.approx(8) and "compat.compile" not in run.means
    # A million operations in a millisecond are the machine's peak rate.
    assert run.races[1].results["jax"].flops_fraction == pytest.approx(1)
    assert run.races[2].results["jax"].bytes_fraction == pytest.approx(0.05)
    for comparison in run.comparisons["jit_call"]:
        assert comparison.case in printed and comparison.rounds == 2 and comparison.ratio.median > 0

    assert "void: its losses are off by 0.5" in printed and "DO NOT AGREE" in printed
    assert "THE MACHINE WAS BUSY: 30%" in printed and "3 of 3 races were run on a busy machine" in printed
    assert "| mlp | batch=1 | 4.00 † | 8.00 † | void |" in markdown_of(printed)
    assert "time ~ size to the power   1.00" in " ".join(printed.split("mlp: a step's time with its batch")[1:])

    assert main(["--show", str(file), "--markdown"]) == 0
    assert markdown_of(capsys.readouterr().out) == markdown_of(printed)


def markdown_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_pictures(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from benchmarks.plot import draw

    mlp = all_workloads()["mlp"]
    races = [invented(mlp, size) for size in ("small", "batch=1", "batch=4")]
    run = Run(1, "2030-01-01", [], {}, None, races, {}, {})
    assert [file.name for file in draw(run, tmp_path)] == ["ratios.png", "series.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in tmp_path.iterdir())


def test_a_file_of_another_form_is_not_shown(tmp_path: Path):
    file = tmp_path / "old.json"
    file.write_text('{"results": []}')
    with pytest.raises(SystemExit, match="does not contain results of this form"):
        main(["--show", str(file)])
