# packages: gpytorch
"""Gaussian processes of GPyTorch: exact ones, variational ones, and their predictions."""

import gpytorch
import torch
from harness import report, train

x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * torch.cos(40 * x)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


kernels = gpytorch.kernels
KERNELS = {
    "rbf": kernels.ScaleKernel(kernels.RBFKernel()), "matern": kernels.ScaleKernel(kernels.MaternKernel(nu=1.5)),
    "periodic": kernels.PeriodicKernel() + kernels.LinearKernel(), "spectral": kernels.SpectralMixtureKernel(3),
}  # fmt: skip
for name, kernel in KERNELS.items():
    torch.manual_seed(0)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    net = Exact(kernel, likelihood)
    if name == "spectral":
        kernel.initialize_from_data(x, y)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, net)
    report(f"{name} losses", train(net.train(), lambda: -marginal(net(x), y), steps=20))
    found = likelihood(net.eval()(x + 0.01))
    report(f"{name} prediction", [found.mean, found.variance])


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernels.ScaleKernel(kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


for name, likelihood, target in (
    ("regression", gpytorch.likelihoods.GaussianLikelihood(), y),
    ("classification", gpytorch.likelihoods.BernoulliLikelihood(), (y > 0).float()),
):
    torch.manual_seed(0)
    net = Variational(x[::4].clone())
    bound = gpytorch.mlls.VariationalELBO(likelihood, net, num_data=len(x))
    report(f"variational {name}", train(net, lambda: -bound(net(x), target), steps=20))
