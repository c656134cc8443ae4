"""``torch.fx.experimental``: symbolic sizes of traces; here sizes are always concrete."""
