"""Records real PyTorch's results of the expressions in NAME.txt in NAME.json.

pip install torch==2.13.0
python tests/compat/golden/make_expressions.py images
"""

import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from facts import GOLDEN, observe


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    for name in names:
        sources = [line for line in (GOLDEN / f"{name}.txt").read_text().splitlines() if line]
        rows = (f"{json.dumps(source)}: {json.dumps(observe(torch, source))}" for source in sources)
        (GOLDEN / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
