"""Features other than tensors that packages for PyTorch need: TorchScript's decorators, process groups."""

from __future__ import annotations

import io
import pickle

import pytest

import compat as torch
from compat.utils.data import DataLoader, DistributedSampler


def test_marks_of_torchscript() -> None:
    @torch.jit.unused
    def left_out(x: int) -> int:
        return x + 1

    @torch.jit.ignore
    def python(x: int) -> int:
        return x + 2

    @torch.jit.ignore(drop=False)
    def python_too(x: int) -> int:
        return x + 3

    @torch.jit.export
    def exported(x: int) -> int:
        return x + 4

    assert [f(0) for f in (left_out, python, python_too, exported)] == [1, 2, 3, 4]
    assert left_out._torchscript_modifier.startswith("unused")
    assert python._torchscript_modifier == python_too._torchscript_modifier
    with pytest.raises(RuntimeError, match=r"Argument to @torch.jit.ignore must be a bool or a function but got 3"):
        torch.jit.ignore(3)


def test_traced_modules_run_as_python_and_can_be_saved() -> None:
    net = torch.nn.Linear(2, 1)
    traced = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(net.eval(), torch.ones(1, 2))))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for batch in (1, 3, 8):
        assert torch.equal(loaded(torch.ones(batch, 2)), net(torch.ones(batch, 2)))
    with pytest.raises(RuntimeError, match="example_inputs and example_kwarg_inputs should not both be None"):
        torch.jit.trace(net)
    with pytest.raises(RuntimeError, match="Freezing is currently only implemented for modules in eval mode"):
        torch.jit.freeze(torch.jit.trace(net.train(), torch.ones(1, 2)))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        torch.jit.trace(net, torch.ones(1, 3))

    class Local(torch.nn.Linear): ...

    scripted, file = torch.jit.script(Local(2, 1)), io.BytesIO()
    with pytest.raises(pickle.PicklingError, match=r"after torch\.jit\.trace"):
        torch.jit.save(scripted, file)
    torch.jit.save(torch.jit.trace(scripted, torch.ones(1, 2)), file := io.BytesIO())
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(torch.ones(3, 2)), scripted(torch.ones(3, 2)))


def test_scripts_run_as_python() -> None:
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()
    x = torch.ones(2, requires_grad=True)
    doubled = torch.jit.script(lambda v: v * 2)
    doubled(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    net = torch.nn.Linear(2, 2)
    assert isinstance(torch.jit.script(net), torch.jit.ScriptModule) and not isinstance(net, torch.jit.ScriptModule)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], list[int], True),
        ([1, "2"], list[int], False),
        ({"a": 1.0}, dict[str, float], True),
        ({1: 1.0}, dict[str, float], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        (None, int | None, True),
        ("a", int | None, False),
        ("a", (int, str), True),
    ],
)
def test_subscripted_types(value: object, kind: object, expected: bool) -> None:
    assert torch.jit.isinstance(value, kind) is expected


def test_distributed_is_not_initialized() -> None:
    assert torch.distributed.is_available() and not torch.distributed.is_initialized()


# Results of PyTorch's sampler for ten samples, seed 3 and epoch 2: for each number of processes, each process's part.
SHUFFLED = {
    (3, False): [[1, 6, 0, 7], [4, 3, 2, 1], [9, 5, 8, 4]],
    (3, True): [[1, 6, 0], [4, 3, 2], [9, 5, 8]],
    (12, False): [[1], [4], [9], [6], [3], [5], [0], [2], [8], [7], [1], [4]],
}


@pytest.mark.parametrize(("replicas", "drop_last"), SHUFFLED)
def test_distributed_sampler_indices_per_rank(replicas: int, drop_last: bool) -> None:
    shares = []
    for rank in range(replicas):
        sampler = DistributedSampler(range(10), replicas, rank, seed=3, drop_last=drop_last)
        sampler.set_epoch(2)
        shares.append(list(sampler))
        assert len(sampler) == len(shares[-1])
    assert shares == SHUFFLED[replicas, drop_last]


def test_distributed_sampler_in_a_data_loader() -> None:
    sampler = DistributedSampler(range(5), 2, 1, shuffle=False)
    assert [batch.tolist() for batch in DataLoader(list(range(5)), batch_size=2, sampler=sampler)] == [[1, 3], [0]]


def test_invalid_arguments_of_distributed_samplers() -> None:
    with pytest.raises(ValueError, match=r"Invalid rank 5, rank should be in the interval \[0, 1\]"):
        DistributedSampler(range(5), 2, 5)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(5))
