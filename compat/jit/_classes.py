"""Classes of TorchScript's modules."""

from __future__ import annotations

from compat.nn.modules.module import Module


class ScriptModule(Module):
    """Modules loaded from files that PyTorch traced or scripted."""


ScriptModule.__module__ = "torch.jit"
