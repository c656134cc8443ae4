"""``torch.distributed.nn``: what processes do together, with gradients; each is refused, as there is no group."""

from compat.distributed.nn import functional

globals().update({name: vars(functional)[name] for name in functional.NAMES})
