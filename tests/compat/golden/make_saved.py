"""Writes with real PyTorch ``saved.pt``, ``saved_old.pt`` (in the format before version 1.6), and ``saved.json``, the
contents of both; see ``tests/compat/test_serialization.py``.

pip install torch==2.13.0
python tests/compat/golden/make_saved.py
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from saved import contents, described

GOLDEN = Path(__file__).parent


def main() -> None:
    made = contents(torch)
    torch.save(made, GOLDEN / "saved.pt")
    torch.save(made, GOLDEN / "saved_old.pt", _use_new_zipfile_serialization=False)
    read = torch.load(GOLDEN / "saved.pt")
    assert described(torch, read) == described(torch, made)
    (GOLDEN / "saved.json").write_text(json.dumps(described(torch, read), indent=0) + "\n")


if __name__ == "__main__":
    main()
