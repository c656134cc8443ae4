"""Stubs of absent PyTorch names: packages can be imported, and using a stub raises an error with the name."""

from __future__ import annotations

import io
import subprocess
import sys

import compat as torch
from compat._absent import missing, stand_in_module, why_absent

PROGRAM = """
import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.ao.quantization import QuantStub
import torch._inductor.config
from torch._C._functorch import is_batchedtensor
import torch.utils.cpp_extension, torch.utils.model_zoo, torch._custom_ops, torch.utils.collect_env

torch._inductor.config.triton.cudagraphs = False
from torch.distributed.autograd import DistAutogradContext

def place(device: str | torch.DeviceObjType, kind: torch.ListType | None = None): ...

print(isinstance(torch.ones(1), FullyShardedDataParallel), is_batchedtensor(torch.ones(1)))
for use in (QuantStub, lambda: torch.quantize_per_tensor, lambda: __import__("torch._inductor.nothing"),
            lambda: torch.nonsense):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_absent_names_can_be_imported_and_raise_when_used() -> None:
    run = subprocess.run([sys.executable, "-m", "compat", "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "False False",
        "NotImplementedError torch.ao.quantization.QuantStub is not there: compat has no quantized tensors",
        "AttributeError module 'torch' has no attribute 'quantize_per_tensor': compat has no quantized tensors",
        "ModuleNotFoundError No module named 'torch._inductor.nothing': "
        "compat compiles by XLA, and has none of PyTorch's own compiler",
        "AttributeError module 'torch' has no attribute 'nonsense'",
    ]


def test_stubs_are_singletons() -> None:
    assert stand_in_module("ao.quantization") is missing("ao", "quantization")
    assert missing("", "nonsense") is None and why_absent("nonsense") is None
    assert not hasattr(torch, "quantize_per_tensor")


def test_small_names() -> None:
    assert torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    attention = torch.nn.MultiheadAttention(4, 2)
    assert type(attention.out_proj) is torch.nn.modules.linear.NonDynamicallyQuantizableLinear
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    assert torch.storage._load_from_bytes(file.getvalue()).tolist() == [1, 1]
    flat = torch._utils._flatten_dense_tensors([torch.ones(2, 2), torch.zeros(1)])
    assert [t.shape for t in torch._utils._unflatten_dense_tensors(flat, [torch.ones(2, 2), torch.ones(1)])] == [
        (2, 2), (1,),
    ]  # fmt: skip
    assert torch.utils.benchmark.Timer("torch.ones(2)").timeit(2).number_per_run == 2


def test_patterns_of_graphs_are_replaced() -> None:
    net = torch.fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(torch.relu(x) + 1))
    found = torch.fx.replace_pattern(net, torch.relu, lambda a: torch.sigmoid(a) * 2)
    x = torch.randn(3)
    twice = lambda t: torch.sigmoid(t) * 2
    assert len(found) == 3
    assert torch.equal(net(x), twice(x) + twice(twice(x) + 1))
