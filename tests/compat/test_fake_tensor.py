"""``torch._subclasses``: fake tensors and their mode."""

import copy
import io

import pytest

import compat as torch
from compat import nn
from compat._subclasses import FakeTensor, FakeTensorMode
from compat._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
)
from compat.fx.experimental.symbolic_shapes import ShapeEnv
from compat.utils._python_dispatch import TorchDispatchMode
from compat.utils.flop_counter import FlopCounterMode

HUGE = 1 << 24


@pytest.fixture
def mode():
    with FakeTensorMode() as mode:
        yield mode


def test_factories_make_fake_tensors(mode):
    x = torch.randn(HUGE, HUGE)
    assert type(x) is FakeTensor and x.fake_mode is mode and x.device.type == "cpu" and x.is_cpu and not x.is_meta
    assert repr(x) == f"FakeTensor(..., size=({HUGE}, {HUGE}))" and f"{x}" == repr(x)
    assert (x.T.stride(), x.T.shape, x.untyped_storage().device.type) == ((1, HUGE), (HUGE, HUGE), "meta")
    assert repr(torch.empty(2, dtype=torch.int64)) == "FakeTensor(..., size=(2,), dtype=torch.int64)"
    for made in (torch.tensor([1.0, 2]), torch.as_tensor([1, 2]), x.new_tensor([1.0]), torch.tril_indices(2, 2)):
        assert type(made) is FakeTensor and made.device.type == "cpu"


def test_devices_that_are_claimed(mode):
    x = torch.ones(2, device="cuda")
    assert (str(x.device), x.is_cuda, x.get_device(), str((x + 1).device)) == ("cuda:0", True, 0, "cuda:0")
    assert repr(torch.ones(2).to("cuda:1")) == "FakeTensor(..., device='cuda:1', size=(2,))"
    assert str((x + torch.ones(())).device) == "cuda:0" and str((torch.ones(()) * x).device) == "cuda:0"
    with pytest.raises(FakeTensorDeviceMismatchError, match="at least two devices, cuda:0 and cpu!"):
        x + torch.ones(2)


def test_devices_outside_the_mode():
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.ones(2, device="cuda:7")


def test_what_needs_values(mode):
    x = torch.randn(2, 3)
    for f in (lambda: x.sum().item(), lambda: bool(x.sum() > 0), lambda: float(x.sum()), x.tolist):
        with pytest.raises(DataDependentOutputException, match=r"^aten._local_scalar_dense.default$"):
            f()
    with pytest.raises(DataDependentOutputException, match=r"^aten.equal.default$"):
        torch.equal(x, x)
    for f in (x.nonzero, lambda: x[x > 0], lambda: torch.where(x > 0)):
        with pytest.raises(DynamicOutputShapeException, match=r"^aten.nonzero.default$"):
            f()
    with pytest.raises(DynamicOutputShapeException, match=r"^aten._unique2.default$"):
        torch.unique(x)
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        x.numpy()


def test_constants(mode):
    x = torch.tensor(3.0)
    assert x.item() == 3 and (x + 1).item() == 4 and x.add_(2).item() == 5
    x.uniform_()
    with pytest.raises(DataDependentOutputException):
        x.item()


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(288, 9)), (2, 3, 8, 8)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16), (4, 2, 8)),
        (lambda: nn.LSTM(3, 4), (2, 5, 3)),
        (lambda: nn.GRU(3, 4), (2, 5, 3)),
    ],
    ids=["conv", "transformer", "lstm", "gru"],
)  # fmt: skip
def test_training_step(make, size):
    def step():
        net, found = make(), None
        optimizer = torch.optim.Adam(net.parameters())
        found = net(torch.randn(*size))
        found = found if isinstance(found, torch.Tensor) else found[0]
        found.sum().backward()
        optimizer.step()
        return found, *net.parameters(), *[p.grad for p in net.parameters()]

    real = step()
    with FakeTensorMode():
        fake = step()
    told = lambda t: (t.shape, t.dtype, t.stride(), t.requires_grad, type(t.grad_fn).__name__)
    assert list(map(told, fake)) == list(map(told, real))
    assert all(type(t) is FakeTensor for t in fake)


def test_parameters(mode):
    net = nn.Linear(HUGE, HUGE, bias=False)
    assert isinstance(net.weight, nn.Parameter)
    assert repr(net.weight) == f"Parameter(FakeTensor(..., size=({HUGE}, {HUGE}), requires_grad=True))"
    copied = copy.deepcopy(net.weight)
    assert type(copied) is FakeTensor and isinstance(copied, nn.Parameter) and copied.fake_mode is mode


def test_from_tensor():
    mode, x = FakeTensorMode(), torch.arange(6.0).view(2, 3).clone()
    fake = mode.from_tensor(x)
    assert mode.from_tensor(x) is fake and mode.from_tensor(fake) is fake
    view = mode.from_tensor(x[:, 1:])
    assert (view.stride(), view.storage_offset(), view._is_view()) == ((3, 1), 1, True)
    assert type(fake * 2) is FakeTensor  # also outside the mode
    parameter = mode.from_tensor(nn.Parameter(x))
    assert isinstance(parameter, nn.Parameter) and parameter.is_leaf and parameter.requires_grad
    (parameter * fake).sum().backward()
    assert type(parameter.grad) is FakeTensor and parameter.grad.shape == (2, 3)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(fake)
    assert is_fake(fake) and not is_fake(x) and maybe_get_fake_mode(fake) is mode


def test_tensors_with_values():
    x = torch.ones(2, 3, requires_grad=True)
    with FakeTensorMode(), pytest.raises(AssertionError, match=r"Found in aten.mul.Tensor\(tensor\(\[...\], size"):
        x * 2
    with FakeTensorMode(allow_non_fake_inputs=True):
        y = torch.nn.functional.linear(torch.ones(4, 3), x)
        assert type(y) is FakeTensor and y.shape == (4, 2) and y.requires_grad
        assert type(x.t()) is FakeTensor
    assert x.tolist() == [[1.0] * 3] * 2


def test_unset_temporarily(mode):
    with unset_fake_temporarily() as before:
        assert type(torch.ones(2)) is torch.Tensor and before is mode
    assert type(torch.ones(2)) is FakeTensor


def test_nested_modes(mode):
    with FakeTensorMode() as inner:
        assert torch.ones(1).fake_mode is inner
        with inner:
            assert torch.ones(1).fake_mode is inner
    assert torch.ones(1).fake_mode is mode


def test_other_modes_come_first():
    def count():
        return torch.nn.functional.linear(torch.ones(5, 10), torch.ones(20, 10))

    with FakeTensorMode(), FlopCounterMode(display=False) as inner:
        count()
    with FlopCounterMode(display=False) as outer, FakeTensorMode():
        count()
    assert inner.get_total_flops() == outer.get_total_flops() == 2 * 5 * 10 * 20


def test_modes_see_tensors_of_data():
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names():
        torch.tensor([1.0])
        nn.Linear(2, 3)
    assert seen == ["aten.lift_fresh.default", *["aten.empty.memory_format"] * 2, *["aten.uniform_.default"] * 2]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: torch.Tensor([1.0, 2]), ("cpu", (2,), torch.float32)),
        (lambda: torch.Tensor(HUGE, HUGE), ("cpu", (HUGE, HUGE), torch.float32)),
        (torch.Tensor, ("cpu", (0,), torch.float32)),
        (lambda: torch.LongTensor(HUGE, HUGE), ("cpu", (HUGE, HUGE), torch.int64)),
        (lambda: torch.IntTensor([1]) + 1, ("cpu", (1,), torch.int32)),
        (lambda: torch.ones(2, device="cuda").new(3), ("cuda", (3,), torch.float32)),
        (lambda: torch.ones(2).new([1.0]), ("cpu", (1,), torch.float32)),
    ],
)
def test_legacy_constructors(mode, make, told):
    made = make()
    assert type(made) is FakeTensor and (made.device.type, made.shape, made.dtype) == told
    assert torch.Tensor([3.0]).item() == 3


def test_a_legacy_constructor_of_a_tensor_makes_one_on_its_device():
    assert torch.ones(2, device="meta").new(3, 4).device.type == "meta"


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("location", [None, "cuda", "meta"])
def test_files_are_read_without_values(weights_only, location):
    net = nn.Linear(2, 3)
    torch.save({"w": net.weight, "t": net.weight.detach().t(), "s": torch.ones(())}, file := io.BytesIO())
    file.seek(0)
    with FakeTensorMode() as mode:
        found = torch.load(file, map_location=location, weights_only=weights_only)
        with pytest.raises(DataDependentOutputException):
            found["s"].item()
    for t in found.values():
        assert (t.fake_mode, t.device.type, t.untyped_storage().device.type) == (mode, location or "cpu", "meta")
    assert isinstance(found["w"], nn.Parameter) and found["w"].requires_grad
    assert (found["t"].shape, found["t"].stride()) == ((2, 3), (1, 2))
    file.seek(0)
    assert torch.equal(torch.load(file)["w"], net.weight)


def test_sizes_are_numbers_with_a_shape_env_too():
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    assert (mode.shape_env, mode.static_shapes, FakeTensorMode().static_shapes) == (env, False, True)
    assert mode.from_tensor(torch.ones(2, 3)).shape == (2, 3)
