"""Records torchviz's drawings of PyTorch's graphs, and draws the pictures on the pages with Graphviz's ``dot``.

PYTHONPATH=. python tests/notebooks/make_drawings_golden.py        with torch 2.13.0 and torchviz 0.0.3
"""

import json
import subprocess
from pathlib import Path

import torch
from torchviz import make_dot

from tests.notebooks.drawings import DRAWINGS, GOLDEN, PICTURES, drawn

IMAGES = Path(__file__).parents[2] / "docs" / "notebooks" / "img"

if __name__ == "__main__":
    found = {what.__name__: drawn(torch, make_dot, what) for what in DRAWINGS}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    for picture, drawing in PICTURES.items():
        command = ["dot", "-Tsvg", "-o", str(IMAGES / f"{picture}.svg")]
        subprocess.run(command, input=found[drawing], text=True, check=True)
