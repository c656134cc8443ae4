"""Whole modules and schedulers saved by PyTorch load in compat, and the reverse.

    python tests/ecosystem/whole_objects.py save FOLDER      # under PyTorch, or with -m compat
    python tests/ecosystem/whole_objects.py load FOLDER      # under the other

``save`` writes each object with ``torch.save``, and its result for an input; ``load`` reads it, calls it and compares.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as schedulers

Made = tuple[Any, tuple[Any, ...]]


def x(*size: int) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(size).numel()).reshape(size)


MODULES: dict[str, Callable[[], Made]] = {
    "Linear": lambda: (nn.Linear(3, 4), (x(2, 3),)),
    "Bilinear": lambda: (nn.Bilinear(3, 3, 4), (x(2, 3), x(2, 3))),
    "Identity": lambda: (nn.Identity(), (x(2),)),
    "Conv1d": lambda: (nn.Conv1d(2, 3, 2), (x(1, 2, 5),)),
    "Conv2d": lambda: (nn.Conv2d(2, 4, 3, groups=2, padding="same"), (x(1, 2, 5, 5),)),
    "Conv3d": lambda: (nn.Conv3d(1, 2, 2), (x(1, 1, 3, 3, 3),)),
    "ConvTranspose2d": lambda: (nn.ConvTranspose2d(2, 3, 3, 2), (x(1, 2, 3, 3),)),
    "BatchNorm1d": lambda: (nn.BatchNorm1d(3), (x(4, 3),)),
    "BatchNorm2d": lambda: (nn.BatchNorm2d(2), (x(2, 2, 3, 3),)),
    "SyncBatchNorm": lambda: (nn.SyncBatchNorm(2).eval(), (x(2, 2, 3, 3),)),
    "InstanceNorm2d": lambda: (nn.InstanceNorm2d(2, affine=True), (x(2, 2, 3, 3),)),
    "LayerNorm": lambda: (nn.LayerNorm(3), (x(2, 3),)),
    "RMSNorm": lambda: (nn.RMSNorm(3), (x(2, 3),)),
    "GroupNorm": lambda: (nn.GroupNorm(2, 4), (x(2, 4, 3),)),
    "LocalResponseNorm": lambda: (nn.LocalResponseNorm(2), (x(1, 4, 3),)),
    "Embedding": lambda: (nn.Embedding(5, 3, padding_idx=0), (torch.tensor([0, 4]),)),
    "EmbeddingBag": lambda: (nn.EmbeddingBag(5, 3), (torch.tensor([[0, 4]]),)),
    "RNN": lambda: (nn.RNN(3, 4, 2), (x(5, 2, 3),)),
    "LSTM": lambda: (nn.LSTM(3, 4, bidirectional=True), (x(5, 2, 3),)),
    "GRU": lambda: (nn.GRU(3, 4, batch_first=True), (x(2, 5, 3),)),
    "LSTMCell": lambda: (nn.LSTMCell(3, 4), (x(2, 3),)),
    "MultiheadAttention": lambda: (nn.MultiheadAttention(4, 2).eval(), (x(3, 1, 4),) * 3),
    "TransformerEncoderLayer": lambda: (nn.TransformerEncoderLayer(4, 2, 8).eval(), (x(3, 1, 4),)),
    "TransformerEncoder": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, enable_nested_tensor=False).eval(),
        (x(3, 1, 4),)),
    "Transformer": lambda: (
        nn.Transformer(4, 2, 1, 1, 8, batch_first=True).eval(), (x(1, 3, 4), x(1, 2, 4))),
    "MaxPool2d": lambda: (nn.MaxPool2d(2), (x(1, 1, 4, 4),)),
    "AvgPool2d": lambda: (nn.AvgPool2d(2), (x(1, 1, 4, 4),)),
    "AdaptiveAvgPool2d": lambda: (nn.AdaptiveAvgPool2d(2), (x(1, 1, 5, 5),)),
    "LPPool2d": lambda: (nn.LPPool2d(2, 2), (x(1, 1, 4, 4),)),
    "Dropout": lambda: (nn.Dropout(0.5).eval(), (x(3),)),
    "ReLU": lambda: (nn.ReLU(inplace=True), (x(3),)),
    "PReLU": lambda: (nn.PReLU(), (x(3),)),
    "GELU": lambda: (nn.GELU("tanh"), (x(3),)),
    "SiLU": lambda: (nn.SiLU(), (x(3),)),
    "Softmax": lambda: (nn.Softmax(0), (x(3),)),
    "LogSoftmax": lambda: (nn.LogSoftmax(0), (x(3),)),
    "Softplus": lambda: (nn.Softplus(2), (x(3),)),
    "Hardswish": lambda: (nn.Hardswish(), (x(3),)),
    "GLU": lambda: (nn.GLU(), (x(4),)),
    "Flatten": lambda: (nn.Flatten(), (x(2, 2, 2),)),
    "Unflatten": lambda: (nn.Unflatten(1, (2, 2)), (x(2, 4),)),
    "PixelShuffle": lambda: (nn.PixelShuffle(2), (x(1, 4, 2, 2),)),
    "Upsample": lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), (x(1, 1, 2, 2),)),
    "ReflectionPad2d": lambda: (nn.ReflectionPad2d(1), (x(1, 1, 3, 3),)),
    "Fold": lambda: (nn.Fold((3, 3), 2), (x(1, 4, 4),)),
    "CosineSimilarity": lambda: (nn.CosineSimilarity(), (x(2, 3), x(2, 3))),
    "CrossEntropyLoss": lambda: (nn.CrossEntropyLoss(label_smoothing=0.1), (x(2, 3), torch.tensor([0, 2]))),
    "BCEWithLogitsLoss": lambda: (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)), (x(3), torch.ones(3))),
    "HuberLoss": lambda: (nn.HuberLoss(), (x(3), torch.ones(3))),
    "TripletMarginLoss": lambda: (nn.TripletMarginLoss(), (x(2, 3), x(2, 3) + 1, x(2, 3) * 2)),
    "CTCLoss": lambda: (nn.CTCLoss(), (x(5, 1, 3).log_softmax(2), torch.tensor([[1, 2]]), (5,), (2,))),
    "Sequential": lambda: (nn.Sequential(nn.Linear(3, 2), nn.Tanh()), (x(2, 3),)),
    "weight_norm": lambda: (nn.utils.weight_norm(nn.Linear(3, 2)), (x(2, 3),)),
}  # fmt: skip

SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "StepLR": lambda o: schedulers.StepLR(o, 2),
    "MultiStepLR": lambda o: schedulers.MultiStepLR(o, [1, 3]),
    "ConstantLR": schedulers.ConstantLR,
    "LinearLR": schedulers.LinearLR,
    "ExponentialLR": lambda o: schedulers.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: schedulers.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 2),
    "PolynomialLR": lambda o: schedulers.PolynomialLR(o, 6, 2),
    "ReduceLROnPlateau": lambda o: schedulers.ReduceLROnPlateau(o, patience=0),
    "CyclicLR": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, step_size_up=2, mode="exp_range", gamma=0.9),
    "OneCycleLR": lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=12),
    "SequentialLR": lambda o: schedulers.SequentialLR(
        o, [schedulers.ConstantLR(o, 0.5), schedulers.ExponentialLR(o, 0.9)], [2]),
    "ChainedScheduler": lambda o: schedulers.ChainedScheduler(
        [schedulers.ConstantLR(o, 0.5), schedulers.ExponentialLR(o, 0.9)]),
}  # fmt: skip


def _stepped(optimizer: Any, scheduler: Any, steps: int) -> list[float]:
    rates = []
    for n in range(steps):
        optimizer.step()
        scheduler.step(*([float(n)] if isinstance(scheduler, schedulers.ReduceLROnPlateau) else []))
        rates.append(float(optimizer.param_groups[0]["lr"]))
    return rates


def _optimizer() -> Any:
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    return torch.optim.SGD([parameter], lr=0.1, momentum=0.9)


def save(folder: Path) -> None:
    """Writes every object."""
    torch.manual_seed(0)
    for name, make in MODULES.items():
        module, given = make()
        with torch.no_grad():
            found = module(*[t.clone() if isinstance(t, torch.Tensor) else t for t in given])
        torch.save((module, given, found), folder / f"{name}.pt")
    for name, make_scheduler in SCHEDULERS.items():
        optimizer = _optimizer()
        scheduler = make_scheduler(optimizer)
        _stepped(optimizer, scheduler, 2)
        torch.save((optimizer, scheduler), folder / f"{name}.pt")
        torch.save(_stepped(optimizer, scheduler, 5), folder / f"{name}.rates.pt")


def _load(folder: Path, name: str) -> Any:
    return torch.load(folder / f"{name}.pt", weights_only=False)


def load(folder: Path) -> int:
    """Reads every object and compares its results; returns how many differ."""
    wrong = 0
    for name in [*MODULES, *SCHEDULERS]:
        try:
            if name in SCHEDULERS:
                optimizer, scheduler = _load(folder, name)
                for p in optimizer.param_groups[0]["params"]:
                    p.grad = torch.ones(2)
                rates = torch.tensor(_stepped(optimizer, scheduler, 5))
                torch.testing.assert_close(rates, torch.tensor(_load(folder, f"{name}.rates")))
                assert type(scheduler) is getattr(schedulers, name)
            else:
                module, given, found = _load(folder, name)
                with torch.no_grad():
                    again = module(*given)
                torch.testing.assert_close(again, found, rtol=1e-4, atol=1e-5)
                repr(module), module.state_dict(), module.train()
        except Exception:
            wrong += 1
            print(f"{name}: {traceback.format_exc().strip().splitlines()[-1]}")
    print(f"{len(MODULES) + len(SCHEDULERS) - wrong} of {len(MODULES) + len(SCHEDULERS)} load and do the same")
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    sys.exit(save(where) if sys.argv[1] == "save" else load(where) > 0)
