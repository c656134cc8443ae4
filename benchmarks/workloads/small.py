"""Small typical training programs for ``first_steps``, each built by a function of the module ``torch``.

A builder seeds, makes the model and its data, and returns the function of one step. All but two need PyTorch's API
only; ``NEEDS`` names the packages of the others.
"""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable
from itertools import cycle
from typing import Any

Step = Callable[[], Any]


def bert(torch: Any) -> Step:
    """A BERT of two layers that classifies sequences, with masks, dropout and AdamW; the loss is read at each step."""
    nn, F = torch.nn, torch.nn.functional
    words, width, heads, batch, length = 1000, 64, 4, 8, 32

    class Layer(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.drop = nn.Dropout(0.1)

        def forward(self, x: Any, mask: Any) -> Any:
            q, k, v = (f(x).view(batch, -1, heads, width // heads).transpose(1, 2)
                       for f in (self.query, self.key, self.value))  # fmt: skip
            scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads) + mask
            mixed = (self.drop(F.softmax(scores, dim=-1)) @ v).transpose(1, 2).reshape(batch, -1, width)
            x = self.norm1(x + self.drop(self.out(mixed)))
            return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))

    class Bert(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width, padding_idx=0), nn.Embedding(64, width)
            self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
            self.layers = nn.ModuleList([Layer() for _ in range(2)])
            self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 2)

        def forward(self, tokens: Any, seen: Any) -> Any:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            x = self.drop(self.norm(x))
            mask = (1.0 - seen[:, None, None, :].float()) * torch.finfo(torch.float32).min
            for layer in self.layers:
                x = layer(x, mask)
            return self.head(self.drop(torch.tanh(self.pool(x[:, 0]))))

    torch.manual_seed(0)
    model = Bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(1, words, (16, batch, length))
    lengths, labels = torch.randint(length // 2, length, (16, batch)), torch.randint(0, 2, (16, batch))
    batches = cycle([(t, torch.arange(length) < n[:, None], y) for t, n, y in zip(tokens, lengths, labels)])

    def step() -> float:
        t, seen, y = next(batches)
        loss = F.cross_entropy(model(t, seen), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def llama(torch: Any) -> Step:
    """A Llama of two layers (rotary positions, RMS norm, gated layers), with AdamW and a schedule."""
    nn, F = torch.nn, torch.nn.functional
    words, width, heads, batch, length = 256, 64, 4, 4, 32
    depth = width // heads

    class Norm(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x: Any) -> Any:
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def turned(x: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    class Layer(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.gate, self.up = nn.Linear(width, 172, bias=False), nn.Linear(width, 172, bias=False)
            self.down, self.norm1, self.norm2 = nn.Linear(172, width, bias=False), Norm(), Norm()

        def forward(self, x: Any, cos: Any, sin: Any) -> Any:
            y = self.norm1(x)
            q, k, v = (f(y).view(batch, -1, heads, depth).transpose(1, 2)
                       for f in (self.query, self.key, self.value))  # fmt: skip
            q, k = q * cos + turned(q) * sin, k * cos + turned(k) * sin
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, -1, width))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.norm = nn.Embedding(words, width), Norm()
            self.layers = nn.ModuleList([Layer() for _ in range(2)])
            self.head = nn.Linear(width, words, bias=False)
            self.register_buffer("rates", 1.0 / 10000 ** (torch.arange(0, depth, 2).float() / depth))

        def forward(self, tokens: Any) -> Any:
            angles = torch.arange(tokens.shape[1])[:, None].float() * self.rates
            angles = torch.cat((angles, angles), dim=-1)
            x = self.words(tokens)
            for layer in self.layers:
                x = layer(x, angles.cos(), angles.sin())
            return self.head(self.norm(x))

    torch.manual_seed(0)
    model = Llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 20))
    batches = cycle(list(torch.randint(0, words, (16, batch, length + 1))))

    def step() -> float:
        tokens = next(batches)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, words), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.item()

    return step


def mnist_rnn(torch: Any) -> Step:
    """An LSTM over the rows of images, batch normalization, two dropouts and Adadelta."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.norm = nn.LSTM(28, 64, batch_first=True), nn.BatchNorm1d(64)
            self.drop1, self.drop2 = nn.Dropout(0.25), nn.Dropout(0.5)
            self.dense, self.head = nn.Linear(64, 32), nn.Linear(32, 10)

        def forward(self, images: Any) -> Any:
            rows, _ = self.rnn(images.reshape(-1, 28, 28))
            x = self.drop1(self.norm(rows[:, -1, :]))
            return F.log_softmax(self.head(self.drop2(F.relu(self.dense(x)))), dim=1)

    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.1)
    batches = cycle([(torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))) for _ in range(8)])

    def step() -> Any:
        images, labels = next(batches)
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def vae(torch: Any) -> Step:
    """A variational autoencoder, 784-400-20, Adam, and the loss read at each step."""
    from benchmarks.workloads.vae import Size, build

    training = build(torch, Size(128))
    return lambda: training().item()


def gcn(torch: Any) -> Step:
    """A graph network of two layers over a sparse adjacency matrix, trained on a mask of the nodes."""
    nn, F = torch.nn, torch.nn.functional
    nodes, features, hidden, classes = 1000, 64, 16, 7
    torch.manual_seed(0)
    edges = torch.randint(0, nodes, (2, 4 * nodes))
    places = torch.cat([edges, edges.flip(0), torch.arange(nodes).repeat(2, 1)], dim=1)
    degree = torch.bincount(places[0], minlength=nodes).float()
    values = degree[places[0]].rsqrt() * degree[places[1]].rsqrt()
    adjacency = torch.sparse_coo_tensor(places, values, (nodes, nodes)).coalesce()

    class Layer(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.kernel, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.zeros(outputs))
            nn.init.xavier_normal_(self.kernel)

        def forward(self, x: Any) -> Any:
            return torch.spmm(adjacency, torch.mm(x, self.kernel)) + self.bias

    first, second = Layer(features, hidden), Layer(hidden, classes)
    x, labels, chosen = torch.rand(nodes, features), torch.randint(0, classes, (nodes,)), torch.rand(nodes) < 0.2
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01, weight_decay=5e-4)

    def step() -> float:
        optimizer.zero_grad()
        output = F.log_softmax(second(F.dropout(F.relu(first(x)), 0.5)), dim=1)
        loss = F.nll_loss(output[chosen], labels[chosen])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def actor_critic(torch: Any) -> Step:
    """Actor critic on episodes of random length: an action is sampled at each time, and the losses of the whole episode
    are summed for one backward pass. A step is an episode."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    draw = random.Random(0)

    class Policy(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.actor, self.critic = nn.Linear(4, 128), nn.Linear(128, 2), nn.Linear(128, 1)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.inner(x))
            return F.softmax(self.actor(x), dim=-1), self.critic(x)

    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)

    def step() -> float:
        saved, rewards, state = [], [], [0.0] * 4
        for _ in range(draw.randint(8, 40)):
            chances, value = model(torch.tensor(state))
            actions = torch.distributions.Categorical(chances)
            action = actions.sample()
            saved.append((actions.log_prob(action), value))
            push = 1.0 if action.item() else -1.0
            state = [0.9 * s + 0.1 * push * draw.random() for s in state]
            rewards.append(1.0 - abs(state[0]))
        total, returns = 0.0, []
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        wanted = torch.tensor(returns)
        wanted = (wanted - wanted.mean()) / (wanted.std() + 1e-7)
        of_actor, of_critic = [], []
        for (log_prob, value), target in zip(saved, wanted):
            of_actor.append(-log_prob * (target - value.item()))
            of_critic.append(F.smooth_l1_loss(value, torch.tensor([target])))
        optimizer.zero_grad()
        loss = torch.stack(of_actor).sum() + torch.stack(of_critic).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def gpytorch(torch: Any) -> Step:
    """Regression by an exact Gaussian process of a hundred points, its hyperparameters trained with Adam."""
    gpytorch: Any = importlib.import_module("gpytorch")
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 100)
    y = torch.sin(2 * math.pi * x) + 0.2 * torch.randn(100)

    class Exact(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(likelihood)
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def step() -> float:
        optimizer.zero_grad()
        loss = -marginal(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def pyro(torch: Any) -> Step:
    """Pyro's stochastic variational inference of a Bayesian regression."""
    pyro: Any = importlib.import_module("pyro")
    infer, guides = importlib.import_module("pyro.infer"), importlib.import_module("pyro.infer.autoguide")
    dist: Any = importlib.import_module("pyro.distributions")
    pyro.set_rng_seed(0)
    x = torch.randn(50, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * torch.randn(50)

    def model(x: Any, y: Any) -> None:
        weight = pyro.sample("weight", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
        bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
        sigma = pyro.sample("sigma", dist.LogNormal(0.0, 1.0))
        with pyro.plate("data", len(x)):
            pyro.sample("obs", dist.Normal(x @ weight + bias, sigma), obs=y)

    svi = infer.SVI(model, guides.AutoNormal(model), pyro.optim.Adam({"lr": 0.02}), infer.Trace_ELBO())
    return lambda: svi.step(x, y)


PROGRAMS: dict[str, Callable[[Any], Step]] = {
    f.__name__: f for f in (bert, llama, mnist_rnn, vae, gpytorch, pyro, gcn, actor_critic)
}
#: The packages of the programs that need more than PyTorch.
NEEDS = {"gpytorch": "gpytorch", "pyro": "pyro"}
