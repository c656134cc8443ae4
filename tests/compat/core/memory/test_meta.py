"""The meta device: results that follow from shapes, and PyTorch's errors for those that do not."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import nn
from tests.compat import facts

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = r"Tensor.item\(\) cannot be called on meta tensors"


def meta(*size: int, **options: Any) -> Any:
    return torch.empty(size, device="meta", **options)


@contextmanager
def default_device(name: str) -> Iterator[None]:
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


# ---------------------------------------------------------------- results that follow from shapes

#: Operations that need values: counts of elements, and data-dependent numbers.
_BY_VALUES = (
    "nonzero",
    "argwhere",
    "masked_select",
    "unique",
    "bincount",
    "cov(",
    "corrcoef",
    "x(3)[torch.tensor(True)]",
)
_BY_VALUES += ("torch.tensor([1, 0, 2])", "torch.tensor_split(x(5,4),torch", "F.one_hot(torch.tensor([0, 2]))")
_BY_VALUES += ("label_smoothing=0.1", "AdaptiveLogSoftmaxWithLoss")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "family",
    ["activation", "attention", "comparison", "contraction", "convolution", "functions", "images", "indexing",
     "joining", "losses", "norms", "padding", "pooling", "products", "ranks", "reductions", "sorting"],
)  # fmt: skip
def test_meta_tensors_have_the_metadata_of_tensors_with_values(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes, dtypes, strides, graphs and saved values are those of PyTorch with values; and the backward pass runs."""
    monkeypatch.setattr(facts, "_array", lambda t: np.zeros(0))
    checked = 0
    for source, want in facts.cases(family)[::4]:
        if "outputs" not in want or any(part in source for part in _BY_VALUES):
            continue
        with default_device("meta"):
            got = facts.observe(torch, source)
        assert got.get("error") == want.get("error"), (source, got)
        for g, w in zip(got["outputs"], want["outputs"], strict=True):
            assert {**g, "values": None} == {**w, "values": None}, source
        checked += 1
    assert checked


def test_views_share_and_writes_count() -> None:
    x = meta(4, 5)
    assert x[1]._base is x and x[1].storage_offset() == 5 and x.t().stride() == (1, 5)
    assert x.detach().untyped_storage() is x.untyped_storage()
    assert (x.untyped_storage().nbytes(), x.untyped_storage().device, x.data_ptr()) == (80, torch.device("meta"), 0)
    before = x._version
    x[0].add_(1)
    x[1:, 2] = 3
    x[2] = torch.ones(5)  # from the CPU: there is nothing to copy
    x.t().mul_(x.t())
    assert x._version == before + 4
    y = meta(4, 5, requires_grad=True) * 2
    y[0].mul_(3)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"


def test_a_model_too_large_for_any_memory() -> None:
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(1 << 17, 1 << 17) for _ in range(8)])
        x = torch.randn(3, 1 << 17)
    optimizer = torch.optim.AdamW(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    assert sum(p.numel() for p in model.parameters()) == 8 * ((1 << 34) + (1 << 17))
    weight = model[0].weight
    assert weight.grad.is_meta and weight.grad.shape == weight.shape
    assert optimizer.state[weight]["exp_avg"].device == torch.device("meta")


def test_modules_run_backward() -> None:
    with torch.device("meta"):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        y = model(torch.empty(2, 3, 8))
        out, (h, _) = nn.LSTM(8, 4, 2)(y)
        nn.BatchNorm1d(4)(out.flatten(0, 1)).sum().backward()
    assert tuple(h.shape) == (2, 3, 4)
    assert all(p.grad.device.type == "meta" and p.grad.shape == p.shape for p in model.parameters())


def test_transforms_and_functions_of_the_user() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    x = meta(2, 3, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.is_meta
    x = meta(2, 3)
    for f in (torch.func.vmap(torch.sin), torch.func.grad(lambda x: x.sin().sum())):
        assert repr(f(x)) == "tensor(..., device='meta', size=(2, 3))"
    assert tuple(torch.func.jacrev(torch.sin)(x).shape) == (2, 3, 2, 3)
    assert torch.compile(torch.sin)(x).is_meta


def test_random_numbers_are_not_drawn() -> None:
    torch.manual_seed(0)
    x = meta(100).normal_()
    torch.rand(3, device="meta"), torch.randperm(3, device="meta"), torch.nn.functional.dropout(x)
    assert tuple(torch.multinomial(meta(2, 3), 2).shape) == (2, 2)
    torch.bernoulli(x), torch.normal(x, 1.0), nn.init.orthogonal_(meta(3, 3)), nn.init.kaiming_normal_(meta(3, 3))
    assert torch.rand(1).item() == pytest.approx(0.4962566)


# ---------------------------------------------------------------- creation


def test_where_new_tensors_are() -> None:
    x = meta(2)
    with torch.device("meta"):
        made = [torch.ones(2), torch.tensor([1.0]), torch.arange(3), torch.as_tensor([1]), torch.eye(2), torch.rand(2)]
        made += [torch.full((2,), 1.0), torch.linspace(0, 1, 3), torch.tril_indices(2, 2), torch.hann_window(3)]
        made += [
            torch.scalar_tensor(1.0),
            torch.empty_strided((2,), (1,)),
            nn.Linear(2, 2).weight,
            torch.normal(0, 1, (2,)),
        ]
        assert all(t.is_meta and not t.is_cpu for t in made)
        assert not torch.zeros(1, device="cpu").is_meta and not torch.from_numpy(np.ones(2)).is_meta
        with torch.device("cpu"):
            assert not torch.ones(1).is_meta
        assert torch.ones(1).is_meta
    assert not torch.ones(1).is_meta
    assert x.new_zeros(2).is_meta and torch.zeros_like(x).is_meta and torch.rand_like(x).is_meta
    assert not torch.zeros_like(x, device="cpu").is_meta and torch.empty_like(torch.ones(2), device="meta").is_meta
    assert torch.empty(2, device="meta:0").device == torch.device("meta")
    assert torch.ones(2).to("meta", torch.float64).dtype is torch.float64 and torch.ones(2).to(x).is_meta
    with default_device("meta"):
        assert torch.ones(1).is_meta and torch.get_default_device() == torch.device("meta")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: meta(2, 3), "tensor(..., device='meta', size=(2, 3))"),
        (lambda: meta(2, dtype=torch.int64), "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
        (lambda: meta(2, requires_grad=True), "tensor(..., device='meta', size=(2,), requires_grad=True)"),
        (lambda: meta(2, requires_grad=True) * 2, "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)"),
        (lambda: nn.Parameter(meta(1)),
         "Parameter containing:\ntensor(..., device='meta', size=(1,), requires_grad=True)"),
        (lambda: meta(2).untyped_storage(), "...\n[torch.storage.UntypedStorage(device=meta) of size 8]"),
        (lambda: meta(2).type(), "'torch.meta.FloatTensor'"),
    ],
)  # fmt: skip
def test_text(make: Callable[[], Any], text: str) -> None:
    assert repr(make()) == text
    assert f"{meta()}" == "tensor(..., device='meta', size=())"


def test_copies_and_files() -> None:
    x = meta(2, 3).t()
    kept = io.BytesIO()
    torch.save({"x": x, "model": nn.Linear(2, 2, device="meta").state_dict()}, kept)
    kept.seek(0)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), torch.load(kept)["x"]):
        assert (y.is_meta, tuple(y.shape), y.stride()) == (True, (3, 2), (1, 3))
    kept = io.BytesIO()
    torch.save(torch.ones(2, 3), kept)
    kept.seek(0)
    assert repr(torch.load(kept, map_location="meta")) == "tensor(..., device='meta', size=(2, 3))"


# ---------------------------------------------------------------- modules


@pytest.mark.parametrize("swapping", [False, True])
def test_modules_move_to_meta_and_load_a_state_dict(swapping: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.__future__, "get_swap_module_params_on_conversion", lambda: swapping)
    full = nn.Linear(3, 2)
    model = copy.deepcopy(full).to("meta")
    assert model.weight.is_meta and isinstance(model.weight, nn.Parameter) and not full.weight.is_meta
    with pytest.warns(UserWarning, match="copying from a non-meta parameter in the checkpoint to a meta parameter"):
        model.load_state_dict(full.state_dict())
    assert model.weight.is_meta
    model.load_state_dict(full.state_dict(), assign=True)
    assert torch.equal(model(torch.ones(1, 3)), full(torch.ones(1, 3))) and model.weight.requires_grad
    with pytest.raises(RuntimeError, match=NO_DATA):
        full.load_state_dict(nn.Linear(3, 2, device="meta").state_dict())


def test_modules_leave_it_empty() -> None:
    model = nn.BatchNorm1d(3, device="meta")
    with pytest.raises(NotImplementedError, match=r"no data! Please use torch.nn.Module.to_empty\(\) instead of"):
        model.to("cpu")
    assert model.to_empty(device="cpu") is model
    model.reset_parameters()
    assert model.running_var.tolist() == model.weight.tolist() == [1.0, 1.0, 1.0]


def test_a_skeleton_for_stacked_weights() -> None:
    models = [nn.Linear(3, 2) for _ in range(4)]
    weights, buffers = torch.func.stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    x = torch.ones(5, 3)
    call = lambda p, b: torch.func.functional_call(skeleton, (p, b), (x,))
    found = torch.func.vmap(call)(weights, buffers)
    assert all(torch.allclose(found[i], model(x)) for i, model in enumerate(models))


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda: meta().item(), RuntimeError, NO_ITEM),
        (lambda: bool(meta()), RuntimeError, NO_ITEM),
        (lambda: float(meta()), RuntimeError, NO_ITEM),
        (lambda: meta(2).tolist(), NotImplementedError, NO_DATA),
        (lambda: meta(2).cpu(), NotImplementedError, NO_DATA),
        (lambda: meta(2).numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda: torch.ones(2).copy_(meta(2)), NotImplementedError, NO_DATA),
        (lambda: meta(2) + torch.ones(2), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
        (lambda: torch.ones(2) + meta(2), RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
        (lambda: torch.cat([meta(2), torch.ones(2)]), RuntimeError, "Tensor on device cpu is not on the expected"),
        (lambda: meta(2).nonzero(), NotImplementedError, r"The register_meta function for torch.nonzero\(\) raises"),
        (lambda: meta(2)[meta(2) > 0], NotImplementedError, r"The register_meta function for torch.nonzero\(\) raises"),
        (lambda: meta(2).unique(), NotImplementedError, "aten::_unique2: attempted to run this operator with Meta"),
        (lambda: torch.equal(meta(2), meta(2)), NotImplementedError, "aten::equal: attempted to run this operator"),
        (lambda: meta(2, 3) @ meta(2, 3), RuntimeError, "cannot be multiplied"),
        (lambda: meta(2).__dlpack__(), BufferError, "Cannot pack tensors on meta"),
        (lambda: torch.add(torch.ones(2), 1, out=meta(2)), RuntimeError, "cross-device copies are not allowed!"),
        (lambda: setattr(meta(2), "grad", torch.ones(2)), RuntimeError, "with device type 'cpu' to a tensor"),
        (lambda: setattr(torch.ones(2), "data", meta(2)), RuntimeError, "have incompatible tensor type"),
        (lambda: meta(2, requires_grad=True).backward(torch.ones(2)), RuntimeError, "expected device meta but got cpu"),
        (lambda: torch.ones(1, requires_grad=True).to("meta").backward(), NotImplementedError, NO_DATA),
    ],
)  # fmt: skip
def test_errors(f: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f()


def test_a_number_of_the_cpu_may_be_among_them() -> None:
    assert (meta(2) + torch.tensor(1.0)).is_meta
    assert meta(2, 3)[torch.tensor([0, 1])].is_meta
    assert nn.functional.embedding(torch.tensor([0]), meta(3, 2)).is_meta
