"""Ten small models of common kinds, with example arguments for a batch of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compat as torch
from compat import nn
from compat.nn import functional as F

Tensor = torch.Tensor


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, out, 3, stride, 1), nn.Conv2d(out, out, 3, 1, 1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.shortcut = nn.Conv2d(channels, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks, self.head = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2)), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.embedding, self.layers = nn.Embedding(20, 16), nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.embedding(x)).mean(1))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        n = x.shape[1]
        return self.layers(x, memory, tgt_mask=torch.triu(torch.full((n, n), float("-inf")), 1))


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layers, self.head = kind(6, 8, 2, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x)[0][:, -1])


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.mean, self.log_var = nn.Linear(12, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 12), nn.Sigmoid())

    def forward(self, x: Tensor, noise: Tensor) -> Any:
        h = F.relu(self.encoder(x))
        mean, log_var = self.mean(h), self.log_var(h)
        return self.decoder(mean + torch.exp(0.5 * log_var) * noise), mean, log_var


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.inner, self.up = nn.Conv2d(1, 4, 3, 1, 1), nn.Conv2d(4, 8, 3, 1, 1), nn.Conv2d(8, 1, 3, 1, 1)
        self.norm, self.transposed = nn.GroupNorm(2, 4), nn.ConvTranspose2d(8, 4, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        a = F.silu(self.norm(self.down(x)))
        b = F.relu(self.inner(F.max_pool2d(a, 2)))
        resized = F.interpolate(b[:, :4], scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.up(torch.cat([a, self.transposed(b) + resized], 1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16))

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = (t.view(b, n, 4, c // 4).transpose(1, 2) for t in self.qkv(self.norms[0](x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous().view(b, n, c)
        x = x + self.out(y)
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(16)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Dropout(), nn.Linear(32, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2), nn.LogSoftmax(-1))


#: By name, a function that makes a model, and one that makes arguments for a batch of a size.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple[Tensor, ...]]]] = {
    "cnn": (cnn, lambda n: (torch.randn(n, 1, 24, 24),)),
    "resnet": (ResNet, lambda n: (torch.randn(n, 3, 32, 32),)),
    "encoder": (Encoder, lambda n: (torch.randint(20, (n, 7)),)),
    "decoder": (Decoder, lambda n: (torch.randn(n, 5, 8), torch.randn(n, 6, 8))),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda n: (torch.randn(n, 5, 6),)),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: (torch.randn(n, 5, 6),)),
    "vae": (VAE, lambda n: (torch.randn(n, 12), torch.randn(n, 3))),
    "unet": (UNet, lambda n: (torch.randn(n, 1, 16, 16),)),
    "mlp": (mlp, lambda n: (torch.randn(n, 4),)),
    "gpt": (GPT, lambda n: (torch.randint(20, (n, 9)),)),
}
