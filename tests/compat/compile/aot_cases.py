"""Functions and inputs for the tests of AOT autograd: operations whose derivatives have different steps."""

import compat as torch
import compat.nn.functional as F
from compat import nn


def _x(*shape):
    return torch.randn(*shape, requires_grad=True)


def _of(f, *shapes):
    return lambda: (f, [_x(*shape) for shape in shapes])


def _module(make, *shape):
    def case():
        m = make()
        names = [n for n, _ in m.named_parameters()]

        def f(x, *parameters):
            found = torch.func.functional_call(m, dict(zip(names, parameters)), (x,))
            return found[0] if isinstance(found, tuple) else found

        return f, [_x(*shape), *m.parameters()]

    return case


def _positive(f):
    return lambda x: f(x.abs() + 0.5)


def _attention(x):
    return F.scaled_dot_product_attention(x, x + 1, x * 2)


CASES = {
    "linear": _module(lambda: nn.Linear(3, 4), 2, 3),
    "conv": _module(lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1), 2, 2, 8, 8),
    "conv_groups_dilation": _module(lambda: nn.Conv2d(4, 4, 3, groups=2, dilation=2), 1, 4, 8, 8),
    "conv1d": _module(lambda: nn.Conv1d(2, 3, 2), 1, 2, 5),
    "conv_transpose": _module(lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), 1, 2, 3, 3),
    "layer_norm": _module(lambda: nn.LayerNorm(4), 3, 4),
    "group_norm": _module(lambda: nn.GroupNorm(2, 4), 2, 4, 3),
    "rms_norm": _module(lambda: nn.RMSNorm(4), 2, 4),
    "max_pool": _of(lambda x: F.max_pool2d(x, 2), (1, 2, 4, 4)),
    "avg_pool": _of(lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), (1, 2, 5, 5)),
    "adaptive_avg_pool": _of(lambda x: F.adaptive_avg_pool2d(x, 2), (1, 2, 4, 4)),
    "lstm": _module(lambda: nn.LSTM(3, 4), 3, 2, 3),
    "gru": _module(lambda: nn.GRU(3, 4), 3, 2, 3),
    "attention": _of(_attention, (1, 2, 3, 4)),
    "embedding": _of(lambda w: F.embedding(torch.tensor([1, 0, 1]), w), (3, 4)),
    "cross_entropy": _of(lambda x: F.cross_entropy(x, torch.tensor([0, 2])), (2, 3)),
    "bce_with_logits": _of(lambda x: F.binary_cross_entropy_with_logits(x, torch.ones(3)), (3,)),
    "smooth_l1": _of(lambda x: F.smooth_l1_loss(x, torch.zeros(3)), (3,)),
    **{
        name: _of(getattr(F, name), (3, 4))
        for name in ("relu", "gelu", "silu", "elu", "softplus", "leaky_relu", "hardswish", "mish", "normalize")
    },
    **{name: _of(getattr(torch, name), (3, 4)) for name in ("exp", "sin", "tanh", "sigmoid", "erf", "atan", "square")},
    **{name: _of(_positive(getattr(torch, name)), (3,)) for name in ("log", "sqrt", "rsqrt", "reciprocal", "log1p")},
    **{
        name: _of(getattr(torch, name), (3, 4)) for name in ("sum", "mean", "prod", "var", "std", "amax", "max", "norm")
    },
    "power": _of(lambda x: x.abs() ** 1.5, (3,)),
    "softmax": _of(lambda x: x.softmax(-1), (2, 3)),
    "logsumexp": _of(lambda x: x.logsumexp(0), (2, 3)),
    "cumsum": _of(lambda x: x.cumsum(0), (3, 2)),
    "cumprod": _of(lambda x: x.cumprod(0), (3, 2)),
    "sort": _of(lambda x: x.sort(-1)[0], (2, 4)),
    "topk": _of(lambda x: x.topk(2)[0], (4,)),
    "gather": _of(lambda x: x.gather(0, torch.tensor([[0, 1, 0]])), (2, 3)),
    "scatter": _of(lambda x, y: x.scatter(0, torch.tensor([[0, 1, 0]]), y), (2, 3), (1, 3)),
    "index": _of(lambda x: x[torch.tensor([0, 0, 1])], (2, 3)),
    "index_columns": _of(lambda x: x[:, torch.tensor([0, 0, 1])], (2, 3)),
    "index_select": _of(lambda x: x.index_select(1, torch.tensor([1, 1])), (2, 3)),
    "slices": _of(lambda x: x[1, ::2] + x[0, :2], (2, 4)),
    "views": _of(lambda x: x.t().reshape(2, 3).unsqueeze(1).expand(2, 4, 3).flatten(), (2, 3)),
    "join": _of(lambda x, y: torch.cat([x, y, x]) + torch.stack([x, y, x]).flatten(0, 1), (2, 3), (2, 3)),
    "pad": _of(lambda x: F.pad(x, (1, -1)), (2, 3)),
    "unfold": _of(lambda x: x.unfold(0, 2, 1), (4,)),
    "flip_roll": _of(lambda x: x.flip(0).roll(1, 0) + x.tril(), (3, 3)),
    "matmul": _of(lambda x, y: x @ y, (2, 3, 4), (4, 2)),
    "bmm": _of(torch.bmm, (2, 3, 4), (2, 4, 2)),
    "einsum": _of(lambda x, y: torch.einsum("bij,bkj->bik", x, y), (2, 3, 4), (2, 2, 4)),
    "inverse": _of(lambda x: torch.linalg.inv(x + 4 * torch.eye(3)), (3, 3)),
    "where": _of(lambda x, y: torch.where(x > 0, x * y, y / (x * x + 1)), (5,), (5,)),
    "clamp": _of(lambda x: x.clamp(-0.5, 0.5) + x.masked_fill(x > 0, 1.0), (5,)),
    "double": _of(lambda x: x.double().sin().float() * 2, (3,)),
    "half": _of(lambda x: (x.bfloat16() @ x.bfloat16().t()).float(), (3, 4)),
    "interpolate": _of(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 1, 3, 3)),
    "several": _of(lambda x: (x.sin(), x.cos().sum(), x.argmax()), (3,)),
}
