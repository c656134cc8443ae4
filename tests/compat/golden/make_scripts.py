"""Records real PyTorch's results of the scripts of the golden tests; see ``tests/compat/scripts.py``.

    pip install torch==2.13.0
    python tests/compat/golden/make_scripts.py [family ...]

The scripts are in the text files beside it, separated by blank lines; a script's result is its last expression.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import GOLDEN, observe

FAMILIES = (
    "random", "init", "nn", "nn_utils", "distributions", "autocast", "signal", "optim", "data", "engine", "tensor",
    "memory", "environment", "averaging", "mistakes", "mistakes_of_values", "mistakes_of_settings", "grad_scaler",
    "matrix_norms", "schedules", "autograd", "custom_functions", "histories", "func", "functional", "forward_ad",
    "gradcheck", "checkpoint", "quasirandom", "graphs", "extremes", "transforms", "sparse", "compressed", "float8",
    "nested", "autocast_bits", "numbers",
)  # fmt: skip


def main() -> None:
    # When forward mode is first used, PyTorch imports modules that issue warnings.
    torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))
    torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))  # the first call imports modules that issue warnings
    for family in sys.argv[1:] or FAMILIES:
        blocks = [block.strip("\n") for block in (GOLDEN / f"{family}.txt").read_text().strip("\n").split("\n\n")]
        found = {block: observe(torch, block) for block in blocks}
        assert len(found) == len(blocks), f"{family}: a script occurs twice"
        (GOLDEN / f"{family}.json").write_text(json.dumps(found, indent=0) + "\n")
        failed = sum("error" in f for f in found.values())
        print(f"{family}: {len(found)} scripts, {failed} of them errors")


if __name__ == "__main__":
    main()
