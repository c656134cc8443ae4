"""Text generated token by token by an untrained transformer: every step has new shapes.

Each sample is a new process, which generates ``TOKENS`` tokens; its start and imports do not count. It is compared with
the same program with every operation compiled, as with XLA alone, and with PyTorch (if it is installed).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Contestant

TOKENS, LETTERS, WIDTH, HEADS, LAYERS = 24, 65, 64, 4, 2


def generate(torch: Any) -> list[int]:
    """The tokens, each drawn from the distribution that a causal transformer computes from those before."""
    nn = torch.nn
    torch.manual_seed(0)
    letters, places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(TOKENS, WIDTH)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    body, head = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), nn.Linear(WIDTH, LETTERS)
    tokens = torch.zeros(1, 1, dtype=torch.long)
    with torch.no_grad():
        for length in range(1, TOKENS):
            mask = nn.Transformer.generate_square_subsequent_mask(length)
            inner = body(letters(tokens) + places(torch.arange(length)), mask=mask, is_causal=True)
            chances = torch.softmax(head(inner[:, -1]), dim=-1)
            tokens = torch.cat([tokens, torch.multinomial(chances, 1)], dim=1)
    return tokens[0].tolist()


def _timed(package: str) -> None:
    """The main function of a sample's process, which prints the duration and the text."""
    torch: Any = importlib.import_module(package)
    start = time.perf_counter()
    found = generate(torch)
    print(time.perf_counter() - start, *found)


def _seconds(package: str, setting: str) -> float:
    root = Path(__file__).resolve().parent.parent
    code = f"{setting}from benchmarks import new_shapes; new_shapes._timed({package!r})"
    # Without the caches on disk of earlier processes.
    environment = dict(os.environ, FUNCGRAD_CACHE_DIR="")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout.split()[0])


def _contestant(name: str, package: str, setting: str = "") -> Contestant:
    return Contestant(name, partial(_seconds, package, setting), clock=True)


def cases() -> list[Case]:
    compiled = "from funcgrad import runtime; runtime.settings.by_numpy = False; "
    others = [_contestant("all compiled", "compat", compiled)]
    if importlib.util.find_spec("torch"):
        others.append(_contestant("torch", "torch"))
    return [Case(f"{TOKENS} tokens", _contestant("compat", "compat"), others, 3, sample_seconds=0)]
