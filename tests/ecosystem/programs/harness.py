"""Shared by the programs of this folder: a few training steps, and numbers reported as lines of JSON."""

import json

import torch


def _greedy_nms(boxes, scores, threshold):
    """The reference of ``nms``: the best box, then the best of those that do not overlap it, and so on."""
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    shared = (torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - low).clamp(0).prod(-1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    overlap = shared / (areas[:, None] + areas - shared) > threshold
    kept, free = [], torch.ones(len(boxes), dtype=torch.bool)
    for n in scores.argsort(descending=True, stable=True).tolist():
        if free[n]:
            kept.append(n)
            free &= ~overlap[n]
    return torch.tensor(kept, dtype=torch.int64)


def declare_torchvision():
    """Substitutes for torchvision's compiled operators where its library cannot be loaded.

    Wheels of the registry are compiled for one build of PyTorch, and cannot be loaded with another. Then torchvision
    computes ``roi_align`` with tensor operations of its own, and ``nms`` is the loop above.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    try:
        import torchvision.extension as extension
    except ImportError:
        return None
    except RuntimeError:  # older ones declare shapes of operators that do not exist
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision.extension as extension
    if extension._has_ops():
        return None
    if not hasattr(torch.ops.torchvision, "nms"):
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", _greedy_nms, "CPU")
    from torchvision.ops import boxes

    boxes._assert_has_ops = lambda: None
    return library


_declared = declare_torchvision()  # before a package imports it


def train(net, loss, steps=5, optimizer=None):
    """The losses of some steps, and the first gradient of the last one."""
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
    """Reports numbers under a name."""
    print("REPORT", json.dumps([name, _numbers(value)]), flush=True)
