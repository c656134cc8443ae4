"""Remote calls, references to remote values, and gradients through both."""

from __future__ import annotations

import pytest

import compat.distributed.rpc as rpc
from tests.compat.distributed.launching import run_processes


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
