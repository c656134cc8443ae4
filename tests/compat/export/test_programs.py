"""Graphs of operators, exported programs and their files, and backends of ``compile``."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import nn
from compat.fx.experimental.proxy_tensor import make_fx


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **said: Any) -> None:
        super().__init__()
        self.layers = kind(5, 6, 2, **said)
        self.out = nn.Linear(6 * (2 if said.get("bidirectional") else 1), 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(x)[0])


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(), nn.Linear(64, 2),
    )  # fmt: skip


def attention() -> nn.Module:
    return nn.Sequential(nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 3))


MODELS: list[tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = [
    (convolutions, lambda: torch.randn(2, 3, 8, 8)),
    (attention, lambda: torch.randint(11, (2, 5))),
    (lambda: Recurrent(nn.LSTM, bidirectional=True), lambda: torch.randn(7, 2, 5)),
    (lambda: Recurrent(nn.GRU, batch_first=True), lambda: torch.randn(7, 2, 5)),
    (lambda: Recurrent(nn.RNN), lambda: torch.randn(7, 2, 5)),
]
NAMES = ["convolutions", "attention", "lstm", "gru", "rnn"]


@pytest.mark.parametrize(("make", "example"), MODELS, ids=NAMES)
def test_a_program_goes_through_a_file_and_trains(make: Any, example: Any) -> None:
    torch.manual_seed(0)
    net, x = make().eval(), example()
    file = io.BytesIO()
    torch.export.save(torch.export.export(net, (x,)), file)
    module = torch.export.load(file).module()
    torch.testing.assert_close(module(x), net(x))
    module(x).sum().backward()
    net(x).sum().backward()
    for name, p in net.named_parameters():
        torch.testing.assert_close(dict(module.named_parameters())[name].grad, p.grad, rtol=1e-4, atol=1e-5)


OUTSIDE = """
import io, sys, zipfile
import numpy as np
from funcgrad.tools.export import load
archive = zipfile.ZipFile(sys.argv[1])
parts = [dict(np.load(io.BytesIO(archive.read(name)))) for name in ("weights.npz", "constants.npz")]
weights = parts[0] | parts[1]
found = load(archive.read("program.stablehlo"))(weights, [np.load(sys.argv[2])])[0]
np.save(sys.argv[3], np.asarray(found))
print("compat" in sys.modules)
"""


def test_stablehlo_runs_where_compat_is_not_imported(tmp_path: Path) -> None:
    net, x = convolutions().eval(), torch.randn(2, 3, 8, 8)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    np.save(tmp_path / "x.npy", x.numpy())
    said = [str(tmp_path / name) for name in ("net.pt2", "x.npy", "y.npy")]
    run = subprocess.run([sys.executable, "-c", OUTSIDE, *said], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert "stablehlo" in torch.export.export(net, (x,)).stablehlo.stablehlo


def test_invalid_dynamic_shapes_and_programs_that_export_refuses() -> None:
    net, x = nn.Linear(2, 1), torch.ones(3, 2)
    with pytest.raises(TypeError, match=r"dynamic_shapes: a size is a Dim.* got 1"):
        torch.export.export(net, (x,), dynamic_shapes={"input": {0: 1}})
    with pytest.raises(torch._dynamo.exc.UserError, match=r"Constraints violated \(width\).* cannot be multiplied"):
        torch.export.export(net, (x,), dynamic_shapes=({1: torch.export.Dim("width")},))
    with pytest.raises(TypeError, match="Expecting `args` to be a tuple"):
        torch.export.export(net, x)  # type: ignore[arg-type]
    program = torch.export.export(net, (x,))
    with pytest.raises(AssertionError, match=r"Guard failed: input input_1 is .* got torch.float32 of shape \[4, 2\]"):
        program.module()(torch.ones(4, 2))
    with pytest.raises(RuntimeError, match="module\\(\\)"):
        program(x)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("other", "")
    with pytest.raises(RuntimeError, match="not written by compat's"):
        torch.export.load(file)


def test_graphs_name_weights_and_include_writes() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))

    def f(x: torch.Tensor) -> torch.Tensor:
        y = net(x)
        y.add_(1)
        return y * y

    graph, x = make_fx(f)(torch.randn(3, 2)), torch.randn(3, 2)
    torch.testing.assert_close(graph(x), f(x))
    assert "torch.ops.aten.addmm.default" in graph.code
    assert "0.weight" in [n.target for n in make_fx(net)(x).graph.nodes]


def test_a_decomposition_replaces_an_operator() -> None:
    table = {torch.ops.aten.silu.default: lambda x: x * torch.sigmoid(x)}
    graph = make_fx(nn.functional.silu, table)(torch.ones(2))
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.sigmoid.default", "aten.mul.Tensor",
    ]  # fmt: skip


def test_values_read_in_a_trace_are_errors_instead_of_constants() -> None:
    with pytest.raises(RuntimeError, match=r"reads the value of a tensor.* torch.no_grad\(\)"):
        make_fx(lambda x: x * float(x.sum()))(torch.randn(7))


def test_recurrent_layers_with_gradients_are_traced_step_by_step() -> None:
    net, x, other = Recurrent(nn.GRU, batch_first=True), torch.randn(7, 2, 5), torch.randn(7, 2, 5)
    torch.testing.assert_close(make_fx(net)(x)(other), net(other))


def test_a_backend_is_called_with_a_graph_once_for_each_kind_of_call() -> None:
    seen: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        seen.append((module, inputs))
        return module.forward

    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    compiled, x = torch.compile(net, backend=backend), torch.randn(2, 3)
    assert torch.equal(compiled(x), net(x)) and torch.equal(compiled(x + 1), net(x + 1))
    compiled(x).sum().backward()
    assert len(seen) == 1 and net[0].weight.grad is not None
    assert next(n.target for n in seen[0][0].graph.nodes if n.op == "call_function") is nn.functional.linear
    compiled(torch.randn(5, 3))
    assert len(seen) == 2
    changed = torch.compile(lambda a, b: {"sum": a + b, "n": 3}, backend=lambda g, _: lambda *t: (g(*t)[0] * 2, 3))
    assert changed(torch.ones(1), torch.ones(1))["sum"].item() == 4


def test_functions_that_read_values_are_not_one_graph() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    assert torch.compile(f, backend=lambda g, _: g)(-torch.ones(1)).item() == 1
    with pytest.raises(RuntimeError, match=r"bool at test_programs.py:.* reads the value of a tensor"):
        torch.compile(f, backend=lambda g, _: g, fullgraph=True)(torch.ones(1))
    assert torch._dynamo.explain(f)(torch.ones(1)).graph_break_count == 1


def test_traced_modules_are_saved_and_loaded(tmp_path: Path) -> None:
    net, x = convolutions().eval(), torch.randn(2, 3, 8, 8)
    traced = torch.jit.trace(net, x)
    traced.save(tmp_path / "net.pt")
    torch.testing.assert_close(torch.jit.load(tmp_path / "net.pt")(x), net(x))


# ---------------------------------------------------------------- dynamic sizes


@pytest.mark.parametrize(("make", "example"), MODELS, ids=NAMES)
def test_a_traced_module_takes_other_batches_when_it_is_loaded(make: Any, example: Any) -> None:
    net, x = make().eval(), example()
    file = io.BytesIO()
    torch.jit.trace(net, x).save(file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for dim in (0, 1) if x.dim() < 4 else (0,):
        for n in (1, 3, 11):
            other = x.index_select(dim, torch.arange(n) % x.shape[dim])
            torch.testing.assert_close(loaded(other), net(other))


def test_sizes_by_name_change_together_and_stay_in_their_range() -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=9)
    net = attention().eval()
    program = torch.export.export(net, (torch.randint(11, (2, 5)),), dynamic_shapes={"input": {0: batch, 1: length}})
    file = io.BytesIO()
    torch.export.save(program, file)
    for module in (program.module(), torch.export.load(file).module()):
        x = torch.randint(11, (3, 8))
        torch.testing.assert_close(module(x), net(x))
        with pytest.raises(AssertionError, match=r"of shape \[batch, length\] in the program.*of shape \[3, 10\]"):
            module(torch.randint(11, (3, 10)))

    class Added(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.flatten() + y.flatten() * x.shape[0]

    arguments = torch.ones(2, 3), torch.ones(2, 3)
    both = torch.export.export(Added(), arguments, dynamic_shapes=({0: batch}, {0: batch})).module()
    assert both(torch.ones(4, 3), torch.ones(4, 3)).tolist() == [5.0] * 12
    with pytest.raises(AssertionError, match="Guard failed"):
        both(torch.ones(4, 3), torch.ones(5, 3))
    with pytest.raises(torch._dynamo.exc.UserError, match="Constraints violated"):
        torch.export.export(Added(), arguments, dynamic_shapes=({0: batch}, None))


def test_tracing_at_several_sizes_leaves_a_module_as_it_was() -> None:
    net = convolutions().train()
    before, state = {k: v.clone() for k, v in net.state_dict().items()}, torch.get_rng_state()
    torch.export.export(net, (torch.randn(2, 3, 8, 8),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.set_rng_state(state)
    once = nn.Sequential(*net)
    once.load_state_dict(before)
    once(torch.randn(2, 3, 8, 8))
    assert net[1].num_batches_tracked == 1


# ---------------------------------------------------------------- files written by PyTorch

CODE = """class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int=2) -> Tensor:
    weight = (self.pair)[0]
    y = torch.linear(x, weight, None)
    for i in range(n):
      _0 = torch.eq(torch.remainder(i, 2), 0)
      if _0:
        y0 = torch.add(y, CONSTANTS.c0)
      else:
        y0 = torch.mul(y, 3.)
      y = y0
    return {last}
"""


def archive(tmp_path: Path, last: str) -> Path:
    """A file in TorchScript's format."""
    weights = io.BytesIO()
    torch.save((torch.tensor([[1.0, 2.0]]),), weights)
    weights.seek(0)
    given = zipfile.ZipFile(weights)
    root = given.namelist()[0].split("/")[0]
    path = tmp_path / "script.pt"
    state = given.read(f"{root}/data.pkl")
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("script/code/__torch__.py", CODE.replace("{last}", last))
        # The tuple of one tensor becomes the state of an object of the file's class.
        body = state[2:-1].rstrip(b".")
        pickled = b"\x80\x02c__torch__\nNet\n)\x81}(X\x04\x00\x00\x00pair" + body + b"X\x08\x00\x00\x00training\x89ub."
        out.writestr("script/data.pkl", pickled)
        out.writestr("script/constants.pkl", state)
        for name in given.namelist():
            if "/data/" in name:
                out.writestr(name.replace(f"{root}/data/", "script/data/"), given.read(name))
                out.writestr(name.replace(f"{root}/data/", "script/constants/"), given.read(name))
        out.writestr("script/version", "3\n")
    return path


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_code_of_a_file_is_run_operator_by_operator(tmp_path: Path) -> None:
    net = torch.jit.load(archive(tmp_path, "y"))
    x = torch.tensor([[1.0, 1.0]])
    assert net(x).tolist() == [[12.0, 15.0]] and isinstance(net, torch.jit.ScriptModule)
    assert net(x, 1).tolist() == [[4.0, 5.0]]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("torch.no_such_operator(y)", "aten::no_such_operator, which is not supported"),
        ("ops.prim.NoSuch(y)", "prim::NoSuch, which is not supported"),
        ("y.__class__", "uses __class__"),
        ("[v for v in y]", "a ListComp, which is not supported"),
    ],
)
def test_unsupported_operators_of_a_file_are_named(tmp_path: Path, last: str, message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        torch.jit.load(archive(tmp_path, last))(torch.ones(1, 2))


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> Any:
        classes = nn.functional.one_hot(hidden.long(), 2)
        return self.layers(x, src_key_padding_mask=hidden), classes, x.quantile(0.5, dim=1)


def test_checks_of_values_are_no_part_of_a_program() -> None:
    net, batch = Padded().eval(), torch.export.Dim("batch")
    hidden = torch.tensor([[False, False, True]]).expand(2, 3).clone()
    program = torch.export.export(net, (torch.randn(2, 3, 4), hidden), dynamic_shapes=({0: batch}, {0: batch}))
    x, other = torch.randn(5, 3, 4), torch.tensor([[False, True, False]]).expand(5, 3).clone()
    with torch.no_grad():
        for mask in (hidden[:1].expand(5, 3).clone(), other):
            torch.testing.assert_close(program.module()(x, mask), net(x, mask))


def test_four_sizes_change_together() -> None:
    class Sums(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.reshape(-1).sum() * y.reshape(y.shape[0] * y.shape[1])

    names = torch.export.dims("a", "b", "c", "d")
    shapes = ({0: names[0], 1: names[1]}, {0: names[2], 1: names[3]})
    program = torch.export.export(Sums(), (torch.ones(2, 3), torch.ones(4, 5)), dynamic_shapes=shapes)
    assert program.module()(torch.ones(3, 4), torch.ones(6, 7)).shape == (42,)


def test_nodes_have_an_nn_module_stack() -> None:
    from compat.fx._dispatch_trace import record

    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Linear(2, 2))
    with torch.no_grad():
        recorder, _ = record(net, (torch.ones(1, 2),), root=net)
    stacks = [list(n.meta["nn_module_stack"]) for n in recorder.graph.nodes if n.op == "call_function"]
    assert stacks[0] == ["", "0", "0.0"] and stacks[-1] == ["", "1"]


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y]) + x.shape[0]


def joined(shapes: Any, rows: tuple[int, int] = (3, 7)) -> Callable[[int, int], torch.Size]:
    examples = tuple(torch.ones(n, 2) for n in rows)
    program = torch.export.export(Joined(), examples, dynamic_shapes=shapes)
    torch.export.save(program, file := io.BytesIO())
    module = torch.export.load(file).module()

    def run(n: int, m: int) -> torch.Size:
        out = module(torch.ones(n, 2), torch.ones(m, 2))
        assert out.eq(1 + n).all()
        return out.shape

    return run


def test_sizes_follow_from_others() -> None:
    b = torch.export.Dim("b", min=1)
    run = joined({"x": {0: b}, "y": {0: 2 * b + 1}})
    assert run(5, 11) == (16, 2)
    with pytest.raises(AssertionError, match=r"shape \[2\*b \+ 1, 2\]"):
        run(5, 12)
    run = joined({"x": {0: 3 * b}, "y": {0: 3 * b + 1}}, (6, 7))  # no argument has the size b
    assert run(9, 10) == (19, 2)
    with pytest.raises(ValueError, match=r"7 is not 2\*b for any integer b"):
        joined({"x": {0: b}, "y": {0: 2 * b}})


def test_sizes_that_do_not_increase_are_refused() -> None:
    b = torch.export.Dim("b")
    for f in (lambda: -1 * b, lambda: 3 - b, lambda: b * 0.5, lambda: b + 0.5):
        with pytest.raises(NotImplementedError, match="Only increasing linear operations"):
            f()
    assert repr(2 * (b + 1)) == "2*b + 2"
    with pytest.raises(AssertionError, match="min value of b - 1"):
        assert (b - 1).min


def test_sizes_by_tensor_and_by_examples() -> None:
    b = torch.export.Dim("b")
    x, y = torch.ones(3, 2), torch.ones(4, 2)
    shapes = torch.export.ShapesCollection()
    shapes[x] = {0: b}
    shapes[y][0] = b + 1
    module = torch.export.export(Joined(), (x, y), dynamic_shapes=shapes).module()
    assert module(torch.ones(5, 2), torch.ones(6, 2)).shape == (11, 2)
    shapes[torch.ones(1)] = {0: b}
    with pytest.raises(ValueError, match="not found in args"):
        torch.export.export(Joined(), (x, y), dynamic_shapes=shapes)
    others = torch.export.AdditionalInputs()
    others.add((torch.ones(5, 2), torch.ones(4, 2)))
    module = torch.export.export(Joined(), (x, y), dynamic_shapes=others).module()
    assert module(torch.ones(6, 2), y).shape == (10, 2)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(x, x)
    others.add((x, 3))
    with pytest.raises(ValueError, match="differing types"):
        torch.export.export(Joined(), (x, y), dynamic_shapes=others)


def test_a_program_is_printed_with_the_types_of_its_values() -> None:
    ep = torch.export.export(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), (torch.ones(4, 2),))
    text = str(ep)
    assert 'def forward(self, p_0_weight: "f32[3, 2]", p_0_bias: "f32[3]", input_1: "f32[4, 2]"):' in text
    assert 'relu: "f32[4, 3]" = torch.ops.aten.relu.default(' in text and '"f32' not in ep.graph_module.code
    assert ep.graph_module.print_readable(print_output=False).splitlines()[1].startswith("    def forward(self, p_0_w")
    batch = ({0: torch.export.Dim("batch")},)
    dynamic = torch.export.export(torch.nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes=batch)
    assert 'input_1: "f32[batch, 2]"' in str(dynamic) and "f32[4" not in str(dynamic)
