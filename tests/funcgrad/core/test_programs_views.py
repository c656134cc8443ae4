"""Representations of a program: names, costs, graphs, StableHLO, and serialized functions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.languages import compare_trees

P = {"w": np.ones((4, 4), "float32"), "b": np.ones(4, "float32")}
X = np.ones((3, 4), "float32")


def loss(params: Any, x: Any) -> Any:
    return fnp.sum(fg.scan(lambda c, _: (fnp.tanh(c @ params["w"] + params["b"]), None), x, length=5)[0])


# ---------------------------------------------------------------- names and lines


def test_inputs_bear_the_names_of_arguments() -> None:
    text = fg.trace(loss, P, X).pretty(names=True)
    assert text.startswith("program(params['b']: f32[4], params['w']: f32[4,4], x: f32[3,4]) {")
    assert "= scan params['w'] params['b'] x {" in text
    assert fg.trace(loss, P, X).pretty().startswith("program(a: f32[4], b: f32[4,4], c: f32[3,4]) {")
    assert fg.trace(loss, P, x=X).arguments == ["params['b']", "params['w']", "x"]
    assert fg.jit(loss).trace(P, X).arguments == ["params['b']", "params['w']", "x"]
    assert fg.trace(lambda *xs: xs[0] + xs[1], 1.0, 2.0).arguments == ["argument 0", "argument 1"]
    assert fg.jit(lambda n, x: x * n, static_argnums=0).trace(2, 1.0).arguments == ["x"]


def test_lines_on_request() -> None:
    text = fg.trace(loss, P, X).pretty(source=True)
    assert re.search(r"tanh \w+    # test_programs_views.py:\d+ \(in <lambda>\): return fnp.sum", text)


# ---------------------------------------------------------------- costs


def flops(f: Any, *args: Any) -> int:
    return fg.trace(f, *args).cost().flops


def test_flops() -> None:
    a, b = np.ones((3, 4)), np.ones((4, 5))
    assert flops(lambda a, b: a @ b, a, b) == 2 * 3 * 4 * 5
    assert flops(lambda a: fnp.sin(a) + a, a) == 24
    assert fg.trace(lambda a: fnp.sin(a) + a, a).cost().transcendentals == 12
    assert flops(fnp.sum, a) == 12
    assert flops(lambda a: a.T[::-1].reshape(-1), a) == 0
    assert flops(fg.vmap(lambda a, b: a @ b), np.ones((7, 3, 4)), np.ones((7, 4, 5))) == 7 * 120
    image, kernel = np.ones((1, 2, 5, 5), "float32"), np.ones((3, 2, 2, 2), "float32")
    assert flops(fg.nn.conv, image, kernel) >= 2 * (3 * 4 * 4) * (2 * 2 * 2)


def test_costs_of_loops_branches_and_calls() -> None:
    step = flops(lambda c: fnp.tanh(c @ P["w"] + P["b"]), X)
    assert flops(loss, P, X) == 5 * step + X.size
    assert flops(lambda x: fg.cond(True, lambda x: x @ P["w"], lambda x: x, x), X) == 2 * 3 * 4 * 4
    assert flops(fg.jit(lambda x: x + 1), X) == X.size
    unknown = fg.trace(lambda x: fg.while_loop(lambda x: x < 9, lambda x: x * 2, x), 1.0).cost()
    assert not unknown.bounded and unknown.flops == 2 and "at least 2 flops" in repr(unknown)


def test_bytes() -> None:
    assert fg.trace(lambda x: x + 1, X).cost().bytes == 2 * X.nbytes + 4
    assert fg.trace(lambda x: x, X).cost().bytes == 0


def test_a_gradient_costs_a_few_times_the_function() -> None:
    ratio = flops(fg.grad(loss), P, X) / flops(loss, P, X)
    assert 2 < ratio < 5
    products = fg.trace(fg.grad(loss), P, X).cost().by_primitive["dot"]
    assert products == 3 * fg.trace(loss, P, X).cost().by_primitive["dot"]


# ---------------------------------------------------------------- graphs and StableHLO


def test_the_graph_has_a_node_for_each_equation_and_an_edge_for_each_operand() -> None:
    program = fg.trace(loss, P, X)
    text = program.dot()
    step = program.equations[0].params["program"]
    equations = [*program.equations, *step.equations]
    for equation in equations:
        assert f'label="{equation.primitive.name}"' in text
    edges = sum(len(e.inputs) for e in equations) + len(program.outputs) + len(step.outputs)
    assert text.count("->") == edges
    assert text.count("subgraph cluster_") == 1 and "params['w']" in text and 'label="f32[4,4]"' in text
    assert text.count("{") == text.count("}")


def test_labels_are_escaped() -> None:
    f = lambda x: fg.checkpoint_name(x['a"b\\'] * 2, "n")
    text = fg.trace(f, {'a"b\\': 1.0}).dot()
    assert r"x['a\"b\\\\']" in text


def test_graphviz_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fg.trace(lambda x: x * 2, X)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"Graphviz.*is not installed"):
        program.svg()
    stand_in = tmp_path / "dot"
    stand_in.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1], sys.stdin.read())\n")
    stand_in.chmod(0o755)
    assert program.svg() == f"-Tsvg {program.dot()}\n"


def test_stablehlo() -> None:
    text = fg.trace(lambda x: fnp.sin(x) * 2, X).stablehlo()
    assert "stablehlo.sine" in text and "tensor<3x4xf32>" in text


# ---------------------------------------------------------------- serialized functions


def test_an_exported_function_is_the_function() -> None:
    exported = fg.export(fg.grad(loss), P, fg.ArrayType((3, 4), np.dtype("float32")))
    compare_trees(exported(P, X), fg.grad(loss)(P, X), "called")
    compare_trees(fg.jit(lambda p: fnp.sum(exported(p, X)["b"]))(P), fnp.sum(fg.grad(loss)(P, X)["b"]), "in jit")
    assert repr(exported) == "<exported loss(float32[4], float32[4,4], float32[3,4]) for cpu>"
    assert "stablehlo" in exported.stablehlo
    with pytest.raises(ValueError, match="shape"):
        exported(P, X[:2])


def test_another_process_runs_it(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    path = tmp_path / "gradient.bin"
    fg.export(fg.jit(lambda x: {"y": (fg.grad(lambda x: fnp.sum(x**3))(x), x)}), X).save(path)
    script = (
        "import sys, numpy as np, funcgrad as fg\n"
        "out = fg.load(sys.argv[1])(np.full((3, 4), 2, 'float32'))\n"
        "print(out['y'][0].tolist()[0], out['y'][1].shape)"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert done.stdout == "[12.0, 12.0, 12.0, 12.0] (3, 4)\n"
    assert fg.load(path.read_bytes()).name == "<lambda>"
    with pytest.raises(FileNotFoundError):
        fg.load(tmp_path / "absent")
