"""``torch.fx.passes.dialect.common``: passes over any graph."""
