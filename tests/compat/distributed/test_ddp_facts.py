"""Facts about a module under DistributedDataParallel."""

from __future__ import annotations

from pathlib import Path

import compat as torch
import compat.distributed as dist
from compat.nn.parallel import DistributedDataParallel


def test_the_logged_facts(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        facts = DistributedDataParallel(torch.nn.Linear(2, 1), bucket_cap_mb=1)._get_ddp_logging_data()
    finally:
        dist.destroy_process_group()
    assert (facts["module_name"], facts["world_size"], facts["rank"]) == ("Linear", 1, 0)
    assert facts["bucket_cap_bytes"] == 1 << 20 and not facts.get("can_set_static_graph")
