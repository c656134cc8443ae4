"""The modules of compat that are PyTorch's: ``import torch.…`` finds them after ``compat.install()``.

A module is internal and not visible under ``torch`` if its name or its package's starts with an underscore, unless it
is one of PyTorch's private modules that programs import.
"""

from __future__ import annotations

#: PyTorch's private modules that compat has.
PRIVATE = frozenset((
    "_C", "__config__", "__future__", "_custom_ops", "_decomp", "_dynamo", "_dynamo._trace_wrapped_higher_order_op",
    "_functorch", "_functorch.aot_autograd", "_functorch.compilers", "_functorch.config", "_functorch.partitioners",
    "_functorch.vmap", "_guards", "_higher_order_ops", "_inductor",
    "_inductor.config", "_jit_internal", "_ops", "_subclasses", "_tensor", "_tensor_str", "_utils", "_vmap_internals",
    "distributed._tensor", "fx._compatibility", "fx._pytree", "fx._symbolic_trace", "fx.experimental._config",
    "jit._script", "jit._trace", "nested._internal", "nested._internal.nested_tensor", "nested._internal.ops",
    "nn.modules._functions", "nn.utils._named_member_accessor", "nn.utils._per_sample_grad", "optim._adafactor",
    "optim._functional", "optim._muon", "testing._comparison", "testing._creation", "testing._internal",
    "testing._internal.common_utils", "utils._config_module", "utils._contextlib", "utils._device",
    "utils._foreach_utils", "utils._mode_utils", "utils._python_dispatch", "utils._pytree", "utils.data._utils",
))  # fmt: skip
#: Modules that ``_C`` creates on import, without files.
MADE = frozenset(("_C._functorch", "_C._nn"))
#: Modules that PyTorch does not have, for programs that import compat by its own name.
OURS = frozenset((
    "distributed.autograd.contexts", "distributed.autograd.nodes", "distributed.autograd.passes",
    "distributed.elastic.options", "distributed.fsdp.fully_shard", "distributed.rpc.agent", "distributed.rpc.messages",
    "distributed.rpc.references", "distributed.rpc.rref", "distributed.rpc.thread_pool", "nested._internal.pointwise",
    "nested._internal.products", "nested._internal.ragged_size", "nested._internal.reductions",
    "nested._internal.strided_nested", "nested._internal.table_tensor", "nested._internal.views",
    "utils.data._utils.channel", "utils.data._utils.worker_pool", "utils.einops",
))  # fmt: skip


def is_shown(name: str) -> bool:
    """Whether ``compat.name`` is visible as ``torch.name``."""
    if "_" not in name or name in OURS:
        return name not in OURS
    parts = name.split(".")
    private = (".".join(parts[: n + 1]) for n, part in enumerate(parts) if part.startswith("_"))
    return all(prefix in PRIVATE or prefix in MADE for prefix in private)
