"""Writes golden/rnn.json: real PyTorch's results of the scripts in golden/rnn.txt. Run it beside PyTorch (the
``parity`` extra): ``python tests/compat/make_rnn_golden.py``.
"""

from __future__ import annotations

import json

import torch
from scripts import GOLDEN, observe


def main() -> None:
    blocks = [block.strip("\n") for block in (GOLDEN / "rnn.txt").read_text().strip("\n").split("\n\n")]
    found = {block: observe(torch, block) for block in blocks}
    assert len(found) == len(blocks), "a script occurs twice"
    (GOLDEN / "rnn.json").write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(found)} scripts, {sum('error' in f for f in found.values())} of them errors")


if __name__ == "__main__":
    main()
