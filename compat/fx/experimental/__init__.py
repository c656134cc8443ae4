"""``torch.fx.experimental``: what packages ask of traces with sizes that are not known; here they always are."""
