"""``torch.fx.passes.utils``: matching of subgraphs."""
