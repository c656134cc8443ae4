# packages: pyro-ppl
"""Pyro: stochastic variational inference, Hamiltonian Monte Carlo, and enumeration."""

import pyro
import pyro.distributions as dist
import torch
from harness import report
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal, AutoNormal

data = torch.linspace(-1, 2, 12)


def model(data):
    loc = pyro.sample("loc", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 0.5))
    with pyro.plate("data", len(data)):
        pyro.sample("obs", dist.Normal(loc, scale), obs=data)


for guide in (AutoNormal, AutoDiagonalNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    made = guide(model)
    svi = SVI(model, made, pyro.optim.Adam({"lr": 0.02}), Trace_ELBO())
    losses = [svi.step(data) for _ in range(40)]
    report(guide.__name__, losses)


@config_enumerate
def mixture(data):
    weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
    places = pyro.param("places", torch.tensor([-1.0, 1.0]))
    with pyro.plate("data", len(data)):
        kind = pyro.sample("kind", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(places[kind], 0.5), obs=data)


pyro.clear_param_store()
pyro.set_rng_seed(0)
svi = SVI(mixture, AutoDiagonalNormal(pyro.poutine.block(mixture, expose=["weights"])),
          pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))  # fmt: skip
report("enumeration", [svi.step(data) for _ in range(20)])
report("places", pyro.param("places"))
pyro.set_rng_seed(0)
chain = MCMC(NUTS(model, step_size=0.2, adapt_step_size=False), num_samples=5, warmup_steps=2, disable_progbar=True)
chain.run(data)
report("first draw", chain.get_samples()["loc"][0])
