# packages: pytorch-optimizer
"""Optimizers of pytorch_optimizer, some steps each."""

import torch
from harness import report, train
from pytorch_optimizer import load_optimizer

NAMES = (
    "adabelief", "adabound", "adamp", "diffgrad", "lamb", "lion", "madgrad", "nero", "novograd", "radam",
    "ranger", "sgdw", "yogi", "adan", "sophiah", "adanorm",
)  # fmt: skip
for name in NAMES:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    try:
        kind = load_optimizer(name)
        optimizer = kind(net.parameters(), lr=1e-2)
    except NotImplementedError:
        continue
    if name == "sophiah":
        continue
    report(name, train(net, lambda: (net(x) - y).square().mean(), optimizer=optimizer))
