"""Records what torchviz draws of PyTorch's graphs.

PYTHONPATH=. python tests/notebooks/make_drawings_golden.py        with torch 2.13.0 and torchviz 0.0.3
"""

import json

import torch
from torchviz import make_dot

from tests.notebooks.drawings import DRAWINGS, GOLDEN, drawn

if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({what.__name__: drawn(torch, make_dot, what) for what in DRAWINGS}, indent=1) + "\n")
