"""Records real PyTorch's errors of calls with wrong arguments; see ``tests/compat/core/operators/test_call_errors.py``.

    pip install torch==2.13.0
    python tests/compat/golden/make_wrong_calls.py

The calls are the lines of the text file beside it; ``x`` is a tensor of three rows of three ones.
"""

import json
import warnings
from pathlib import Path

import torch
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent


def error_of(call: str) -> str:
    """The message of the error that a call raises."""
    try:
        eval(call, {"torch": torch, "F": F, "x": torch.ones(3, 3)})
    except TypeError as error:
        return str(error)
    raise AssertionError(f"{call} is right")


def main() -> None:
    warnings.simplefilter("ignore")
    calls = (HERE / "wrong_calls.txt").read_text().splitlines()
    found = {call: error_of(call) for call in calls}
    (HERE / "wrong_calls.json").write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(found)} calls")


if __name__ == "__main__":
    main()
