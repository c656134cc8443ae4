"""What processes do together, with gradients: each is refused, as there is no group."""

import compat.distributed as _distributed

NAMES = (
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
)  # fmt: skip

# One process alone is refused the same with gradients as without.
globals().update({name: getattr(_distributed, name) for name in NAMES})
