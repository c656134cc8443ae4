"""``torch.utils.benchmark``: the texts are PyTorch 2.13's for the same measurements."""

from __future__ import annotations

import pickle
import shutil
from typing import Any

import pytest

import compat as torch
from compat.utils import benchmark
from compat.utils.benchmark import (
    Compare,
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    Measurement,
    ParameterAlias,
    TaskSpec,
    Timer,
)


def measured(times: list[float], number: int = 1, **spec: Any) -> Measurement:
    return Measurement(number, times, TaskSpec(**{"stmt": "f(x)", "setup": "pass", **spec}))


def some() -> list[Measurement]:
    return [
        measured([2e-6, 2.1e-6], label="dot", sub_label="[1, 64]", description="mul"),
        measured([3e-5, 3.01e-5, 5e-5, 6e-5], label="dot", sub_label="[1, 64]", description="bmm"),
        measured([4.123e-6], label="dot", sub_label="[64, 64]", description="mul"),
        measured([1.5e-6], label="dot", sub_label="[64, 64]", description="bmm", num_threads=4),
    ]


def test_the_table_is_pytorchs() -> None:
    assert str(Compare(some())).splitlines() == [
        "[------------ dot ------------]",
        "                |  mul  |  bmm ",
        "1 threads: --------------------",
        "      [1, 64]   |  2.0  |  40.0",
        "      [64, 64]  |  4.1  |      ",
        "4 threads: --------------------",
        "      [64, 64]  |       |   1.5",
        "",
        "Times are in microseconds (us).",
    ]


def test_colours_significant_figures_and_warnings_are_pytorchs() -> None:
    compare = Compare(some())
    compare.trim_significant_figures()
    compare.colorize(rowwise=True)
    compare.highlight_warnings()
    best, worst, end = "\x1b[92m\x1b[1m", "\x1b[31m\x1b[1m", "\x1b[0m\x1b[0m"
    assert str(compare).splitlines() == [
        "[--------------- dot ---------------]",
        "                |  mul  |     bmm    ",
        "1 threads: --------------------------",
        f"      [1, 64]   |  {best} 2 {end}  |  {worst}40 (! 56%){end}",
        f"      [64, 64]  |  {best} 4 {end}  |            ",
        "4 threads: --------------------------",
        f"      [64, 64]  |       |  {best} 2        {end}",
        "",
        "Times are in microseconds (us).",
        "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.",
    ]


def test_tables_by_label_and_rows_by_environment() -> None:
    found = [measured([1e-3], label=label, env=env, description="d") for label in "ab" for env in ("old", "new")]
    first, second = str(Compare(found)).split("\n\n")[0].splitlines(), str(Compare(found)).count("Times are in")
    assert first == [
        "[-------- a --------]",
        "               |   d ",
        "1 threads: ----------",
        "  (new)  f(x)  |  1.0",
        "  (old)  f(x)  |  1.0",
    ]
    assert second == 2
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`, got <class 'int'> instead"):
        Compare([1])  # type: ignore[list-item]


def test_a_measurement_shows_its_spread() -> None:
    found = some()[1]
    assert repr(found).splitlines()[1:] == [
        "dot: [1, 64]",
        "bmm",
        "  Median: 40.05 us",
        "  IQR:    22.43 us (30.07 to 52.50)",
        "  4 measurements, 1 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 56.0% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.sub_label == "[1, 64]" and again.has_warnings and again.significant_figures == 1
    merged = Measurement.merge([measured([2e-6], 2), measured([3e-6])])
    assert [m.raw_times for m in merged] == [[1e-6, 3e-6]]


def test_units_and_figures() -> None:
    units = [benchmark.select_unit(t) for t in (1e-9, 1e-3, 9.99e-4, 1e-6, 5e-7, 1)]
    assert [u for u, _ in units] == ["ns", "ms", "us", "us", "ns", "s"]
    assert [benchmark.trim_sigfig(1234.5, n) for n in (1, 2, 3, 4)] == [1000.0, 1200.0, 1230.0, 1234.0]
    assert benchmark.unit_to_english("ms") == "millisecond" and benchmark.ordered_unique([2, 1, 2]) == [2, 1]


def test_random_inputs_are_pytorchs() -> None:
    parameters: list[FuzzedParameter | list[FuzzedParameter]] = [
        FuzzedParameter("n", 1, 100, "loguniform"),
        FuzzedParameter("k", 1, 9, "uniform"),
        FuzzedParameter("f", 0.0, 1, "uniform"),
        [
            FuzzedParameter("c", distribution={1: 0.5, ParameterAlias("n"): 0.5}),
            FuzzedParameter("d", distribution={1: 0.3, 2: 0.3, 3: 0.4}, strict=True),
        ],
    ]
    x = FuzzedTensor(
        "x", ("n", "k", "c"), ("k", 1, 2), probability_contiguous=0.3, min_elements=4, max_elements=500,
        dim_parameter="d",
    )  # fmt: skip
    fuzzer = Fuzzer(parameters, [x], [lambda p: p["k"] != 3], seed=7)
    found = [(tuple(t["x"].shape), t["x"].stride(), about["x"]["numel"]) for t, about, _ in fuzzer.take(3)]
    assert found == [((36, 4), (16, 1), 144), ((1, 9, 1), (18, 18, 2), 9), ((65, 6, 1), (72, 2, 2), 390)]
    _, _, params = next(iter(Fuzzer(parameters, [x], [lambda p: p["k"] != 3], seed=7).take(1)))
    assert params == {"n": 36, "k": 4, "f": 0.9782228970785825, "c": 1, "d": 2}


def test_sparse_inputs() -> None:
    parameters = [FuzzedParameter("n", 4, 9, "uniform"), FuzzedParameter("density", distribution={0.4: 1.0})]
    parameters.append(FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}))
    for tensors, about, params in Fuzzer(parameters, [FuzzedSparseTensor("s", ("n", 3))], seed=0).take(3):
        assert tensors["s"].is_sparse and tensors["s"].shape == (params["n"], 3)
        assert about["s"]["is_coalesced"] is tensors["s"].is_coalesced() is params["coalesced"]


def test_impossible_inputs_raise() -> None:
    with pytest.raises(AssertionError, match="Unknown distribution: normal"):
        FuzzedParameter("x", 0, 1, "normal")
    with pytest.raises(AssertionError, match="'minval' must be None"):
        FuzzedParameter("x", 0, distribution={1: 1.0})
    with pytest.raises(AssertionError, match="Distribution is not normalized"):
        FuzzedParameter("x", distribution={1: 0.5})
    with pytest.raises(ValueError, match="Failed to generate a set of valid parameters"):
        next(iter(Fuzzer([FuzzedParameter("n", 1, 2, "uniform")], [], [lambda p: False]).take(1)))
    with pytest.raises(ValueError, match="ParameterAlias cycle detected"):
        next(iter(Fuzzer([FuzzedParameter("x", distribution={ParameterAlias("x"): 1.0})], []).take(1)))
    with pytest.raises(ValueError, match=r"Duplicate names in parameters and tensors: \{'x'\}"):
        Fuzzer([FuzzedParameter("x", 1, 2, "uniform")], [FuzzedTensor("x", (2,))])


def test_setup_is_run_before_each_measurement_in_the_scope_of_the_statement() -> None:
    seen: list[int] = []
    timer = Timer(
        """
        y = x + n
        seen.append(n)
        """,
        "n = 3", globals={"x": torch.ones(2), "seen": seen}, num_threads=2, env="here",
    )  # fmt: skip
    threads = torch.get_num_threads()
    found = timer.timeit(4)
    assert set(seen) == {3} and len(seen) >= 6 and torch.get_num_threads() == threads
    assert found.num_threads == 2 and found.env == "here" and found.stmt == "y = x + n\nseen.append(n)"
    blocks: list[int] = []
    found = timer.blocked_autorange(lambda number, seconds: blocks.append(number), min_run_time=0.01)
    assert blocks == [found.number_per_run] * len(found.raw_times)


def test_statements_that_cannot_be_measured_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Currently only a `str` stmt is supported"):
        Timer(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="global_setup is C\\+\\+ only, got `import x`"):
        Timer(global_setup="import x")
    with pytest.raises(ValueError, match="Invalid language `zig`"):
        Timer(language="zig")
    with pytest.raises(RuntimeError, match="statements in C"):
        Timer(language="cpp")
    with pytest.raises(SyntaxError, match="'return' outside function"):
        Timer("return 3")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(OSError, match="Missing: valgrind, callgrind_control, callgrind_annotate"):
        Timer().collect_callgrind()
