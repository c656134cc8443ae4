# packages: einops
"""Named axes."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
from harness import report

torch.manual_seed(0)
x = torch.randn(2, 3, 4, 6)
report("rearrange", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3))
report("reduce", reduce(x, "b c h w -> b c", "max"))
report("repeat", repeat(x[0, 0], "h w -> (h 2) w"))
report("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
report("pack", pack([x[..., 0], x[..., 1, 0]], "b *")[0])
net = torch.nn.Sequential(
    Rearrange("b c h w -> b h w c"),
    EinMix("b h w c -> b h w d", weight_shape="c d", c=3, d=5),
    Reduce("b h w d -> b d", "mean"),
)
y = net(x)
y.sum().backward()
report("layers", [y, net[1].weight.grad])
