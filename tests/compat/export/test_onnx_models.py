"""Ten models through ``torch.onnx.export`` and onnxruntime: sizes, dtypes, versions of operators, names and files."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pytest

import compat as torch
from compat import nn
from tests.compat.export.models import MODELS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def made(name: str, size: int = 2) -> tuple[Any, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    make, example = MODELS[name]
    return make().eval(), example(size)


def results(net: Any, x: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    with torch.no_grad():
        return list(torch.utils._pytree.tree_leaves(net(*x)))


def half(x: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(t.half() if t.is_floating_point() else t for t in x)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_batches_of_any_size(name: str, dynamo: bool, dtype: Any) -> None:
    net, x = made(name)
    if dtype is torch.float16:
        net, x = net.half(), half(x)
    names, file = [f"in{n}" for n in range(len(x))], io.BytesIO()
    sizes: dict[str, Any] = (
        {"dynamic_shapes": tuple({0: torch.export.Dim("batch")} for _ in x)}
        if dynamo
        else {"dynamic_axes": {name: {0: "batch"} for name in [*names, "out"]}}
    )
    torch.onnx.export(net, x, file, input_names=names, output_names=["out"], dynamo=dynamo, **sizes)
    session = onnxruntime.InferenceSession(file.getvalue())
    described = session.get_inputs()[0], session.get_outputs()[0]
    assert [d.name for d in described] == ["in0", "out"] and {d.shape[0] for d in described} == {"batch"}
    for size in (2, 1, 5):
        y = MODELS[name][1](size)
        y = half(y) if dtype is torch.float16 else y
        found = session.run(None, {key: t.numpy() for key, t in zip(names, y)})
        close = dict(rtol=2e-2, atol=2e-2) if dtype is torch.float16 else dict(rtol=1e-4, atol=1e-5)
        torch.testing.assert_close([torch.from_numpy(v) for v in found], results(net, y), **close)


@pytest.mark.parametrize("name", MODELS)
def test_versions_of_operators(name: str) -> None:
    net, x = made(name)
    for version in (11, 12, 13, 14, 15, 16, 17, 18, 20, 21):
        with warnings.catch_warnings(action="error"):
            program = torch.onnx.export(net, x, opset_version=version)
        assert program is not None and program.model_proto.opset_import[0].version == version
        torch.testing.assert_close(list(program(*x)), results(net, x), rtol=1e-4, atol=1e-5)


def test_a_model_without_a_form_in_a_version_stays_in_a_later_one() -> None:
    class Bits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x & 6

    with pytest.warns(UserWarning, match="no form in version 13: .*BitwiseAnd"):
        program = torch.onnx.export(Bits(), (torch.arange(4),), opset_version=13)
    assert program is not None and program.model_proto.opset_import[0].version == 18
    assert program(torch.arange(4) + 4)[0].tolist() == [4, 4, 6, 6]


def test_softmax_over_another_dimension_in_version_12() -> None:
    program, x = torch.onnx.export(nn.Softmax(1), (torch.ones(2, 3, 4),), opset_version=12), torch.randn(2, 3, 4)
    torch.testing.assert_close(program(x)[0], x.softmax(1), rtol=1e-4, atol=1e-5)


def test_results_that_are_one_value_or_an_argument() -> None:
    class Repeated(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            z = x + y
            return z, z, x, z * 2

    x = torch.ones(2), torch.full((2,), 3.0)
    program = torch.onnx.export(Repeated(), x, output_names=["a", "b", "c", "d"])
    assert program is not None and [o.name for o in program.model_proto.graph.output] == ["a", "b", "c", "d"]
    assert [t.tolist() for t in program(*x)] == [[4.0, 4.0], [4.0, 4.0], [1.0, 1.0], [8.0, 8.0]]


def test_arguments_by_name_and_names_that_are_unknown() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, *, scale: Any = None, mask: Any = None) -> Any:
            x = x if scale is None else x * scale
            return {"y": x if mask is None else x.masked_fill(mask, 0.0)}

    x, mask = torch.ones(2, 3), torch.tensor([True, False, True])
    program = torch.onnx.export(Scaled(), (x,), kwargs={"mask": mask})
    assert program is not None and [i.name for i in program.model_proto.graph.input] == ["x", "mask"]
    assert program(x, mask=~mask)[0].tolist() == [[1.0, 0.0, 1.0]] * 2
    with pytest.warns(UserWarning, match="'z' is not a name of an input or result"):
        torch.onnx.export(Scaled(), (x,), dynamic_axes={"z": {0: "batch"}})


def test_programs_are_saved_with_their_weights_apart(tmp_path: Path) -> None:
    net, x = made("mlp")
    program = torch.onnx.export(net, x)
    assert program is not None
    program.optimize()
    program.save(tmp_path / "whole.onnx")
    for _ in range(2):
        program.save(tmp_path / "apart.onnx", external_data=True)
    sizes = {name: (tmp_path / name).stat().st_size for name in ("whole.onnx", "apart.onnx", "apart.onnx.data")}
    assert sizes["apart.onnx.data"] < sizes["whole.onnx"] < sizes["apart.onnx"] + sizes["apart.onnx.data"]
    for name in ("whole.onnx", "apart.onnx"):
        found = onnxruntime.InferenceSession(tmp_path / name).run(None, {"input": x[0].numpy()})
        torch.testing.assert_close([torch.from_numpy(v) for v in found], results(net, x), rtol=1e-4, atol=1e-5)
    bare = io.BytesIO()
    program.save(bare, include_initializers=False)
    graph = onnx.load_from_string(bare.getvalue()).graph
    assert not graph.initializer and "0.weight" in [i.name for i in graph.input]
    with pytest.raises(ValueError, match="external_data: the weights need a path"):
        program.save(bare, external_data=True)


def test_weights_are_replaced_and_the_reference_agrees() -> None:
    net, x = made("cnn")
    program, other = torch.onnx.export(net, x), made("cnn")[0]
    assert program is not None and program.exported_program is None
    torch.testing.assert_close(list(program.call_reference(*x)), results(net, x), rtol=1e-4, atol=1e-5)
    for p in other.parameters():
        torch.nn.init.normal_(p.data)
    program(*x)
    program.apply_weights({name: t for name, t in other.state_dict().items() if name.startswith("0.")})
    for name in ("weight", "bias"):
        getattr(net[0], name).data = getattr(other[0], name).data
    torch.testing.assert_close(list(program(*x)), results(net, x), rtol=1e-4, atol=1e-5)
