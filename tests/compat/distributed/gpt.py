"""A GPT of four layers, and its plan for tensor parallelism."""

import compat as torch
import compat.nn.functional as F
from compat import nn
from compat.distributed.tensor import Replicate
from compat.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

COLUMNS, ROWS, WHOLE = ColwiseParallel, RowwiseParallel, Replicate()


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.ln1, self.ln2 = h, nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        y = self.ln1(x)
        q, k, v = (f(y).view(b, t, self.h, d // self.h).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, v=64, d=64, h=8, layers=4, t=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, d), nn.Embedding(t, d)
        self.blocks = nn.ModuleList(Block(d, h) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, v, bias=False)

    def forward(self, i):
        x = self.tok(i) + self.pos(torch.arange(i.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def plan(inside):
    names = {"q": COLUMNS, "k": COLUMNS, "v": COLUMNS, "o": ROWS, "up": COLUMNS, "down": ROWS}
    found = {f"blocks.*.{name}": style() for name, style in names.items()}
    if not inside:
        found.update({name: COLUMNS(output_layouts=WHOLE) for name in ("tok", "pos", "head")})
    return found
