"""What the programs of this folder share: some steps of training, and numbers as lines of JSON."""

import json

import torch


def declare_torchvision():
    """Declares the operators whose absence keeps torchvision from being imported.

    Its wheels are compiled for one build of PyTorch's; beside another they cannot load. Models need none of them.
    """
    try:
        import torchvision  # noqa: F401 (whether it can be imported)
    except ImportError:
        return None
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None


_declared = declare_torchvision()  # before a package imports it


def train(net, loss, steps=5, optimizer=None):
    """The losses of some steps, and the last one's first gradient."""
    optimizer = optimizer or torch.optim.AdamW(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return losses


def _numbers(value):
    if isinstance(value, torch.Tensor):
        return value.detach().double().flatten().tolist()[:200]
    if isinstance(value, list | tuple):
        return [n for v in value for n in _numbers(v)]
    return [float(value)]


def report(name, value):
    """Says numbers under a name."""
    print("REPORT", json.dumps([name, _numbers(value)]), flush=True)
