"""Classes of TorchScript's modules."""

from __future__ import annotations

from compat.nn.modules.module import Module


class ScriptModule(Module):
    """The class of modules that were read from what PyTorch has traced or scripted."""


ScriptModule.__module__ = "torch.jit"
