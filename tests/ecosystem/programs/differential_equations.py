# packages: torchdiffeq
"""torchdiffeq's solutions of differential equations, and their gradients."""

import torch
from harness import report
from torchdiffeq import odeint, odeint_adjoint


class Spiral(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]))

    def forward(self, t, y):
        return y @ self.matrix.T


times, start = torch.linspace(0, 2, 5), torch.tensor([[2.0, 0.0]])
for method in ("dopri5", "rk4", "euler", "midpoint", "bosh3", "adaptive_heun", "explicit_adams"):
    for solve in (odeint, odeint_adjoint):
        net = Spiral()
        found = solve(net, start, times, method=method)
        found.square().sum().backward()
        report(f"{solve.__name__} {method}", [found, net.matrix.grad])
