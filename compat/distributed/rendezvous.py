"""``torch.distributed.rendezvous``: rendezvous of processes at an address."""

from compat._distributed.rendezvous import register_rendezvous_handler, rendezvous

__all__ = ["register_rendezvous_handler", "rendezvous"]
