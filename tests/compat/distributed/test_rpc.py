"""Remote calls, references to remote values, and gradients through both."""

from __future__ import annotations

import pickle

import pytest

import compat as torch
import compat.distributed as dist
import compat.distributed.rpc as rpc
from compat.distributed import _tensor
from compat.distributed.checkpoint import state_dict
from tests.compat.distributed.launching import free_port, run_processes, run_python


def test_calls_and_references() -> None:
    outputs = run_processes("rpc_program.py", 3)
    assert all(status == 0 for status, _ in outputs) and "done" in outputs[0][1], outputs


def test_distributed_autograd() -> None:
    for status, text in run_processes("distributed_autograd_program.py", 2):
        assert status == 0 and "done" in text, text


def test_options() -> None:
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=3, rpc_timeout=5)
    assert (options.num_worker_threads, options.rpc_timeout, options.init_method) == (3, 5, "env://")
    with pytest.raises(ValueError, match="move tensors to the CPU"):
        rpc.TensorPipeRpcBackendOptions(device_maps={"w1": {0: 1}})
    with pytest.raises(ValueError, match="num_worker_threads must be positive"):
        rpc.TensorPipeRpcBackendOptions(num_worker_threads=0)
    with pytest.raises(TypeError, match="Argument backend must be a member of BackendType"):
        rpc.init_rpc("w", backend="TENSORPIPE")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rpc_backend_options must be an instance"):
        rpc.init_rpc("w", rpc_backend_options={})  # type: ignore[arg-type]
    assert repr(rpc.BackendType.TENSORPIPE) == "BackendType.TENSORPIPE"


@pytest.mark.parametrize(
    "function", [torch.Tensor.sum, torch.sum, torch.add, torch.Tensor.add, torch.nn.functional.relu]
)
def test_functions_that_are_sent_by_name(function: object) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_functions_that_require_rpc() -> None:
    def function() -> int:
        """Its text."""
        return 1

    checked = rpc.api._require_initialized(function)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        checked()
    assert checked.__doc__ == "Its text."


def test_a_process_group_and_rpc_share_an_address() -> None:
    """One server is for all groups of a process, at the same time and one after another."""
    address = f"tcp://127.0.0.1:{free_port()}"
    for _ in range(2):
        dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
        options = rpc.TensorPipeRpcBackendOptions(init_method=address)
        rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        assert rpc.rpc_sync("alone", dist.get_world_size) == 1
        rpc.shutdown()
        dist.destroy_process_group()


def test_a_worker_that_raises_is_named_with_its_exception() -> None:
    status, text = run_python("rpc_spawned_program.py", str(free_port()))
    assert status == 0, text
    assert "rank 1" in text and "has ended with KeyError: 'oops'" in text, text


def test_names_for_programs_with_sharded_parameters() -> None:
    assert _tensor.Shard is dist.tensor.Shard and _tensor.DTensor is dist.tensor.DTensor
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    state_dict._init_optim_state(optimizer)
    assert optimizer.state[model.weight]["step"] == 0 and torch.equal(model.weight, before)
