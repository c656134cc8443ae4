"""Anomaly mode: the forward operation of a node whose backward failed or returned NaN.

In this mode (``torch.autograd.set_detect_anomaly``) every node records the stack of the operation that made it
(``metadata["traceback_"]``) and the node during whose backward it was made (``metadata["parent_"]``).
``compat._core.tensor.version_counter`` records the lines of in-place operations.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import user_frame, warn


def record_stack(node: Any) -> None:
    """Records where a node is made, in anomaly mode."""
    if mode.anomaly:
        node.metadata["traceback_"] = traceback.format_stack(user_frame())
        if mode.node is not None:
            node.metadata["parent_"] = mode.node


def warn_with_stack(node: Any) -> None:
    """Warns with the stack of the failed node's forward operation, and of its parents' in double backward."""
    said, what = "Error detected in", "caused the error"
    while node is not None:
        said, stack = f"{said} {node.name()}.", node.metadata.get("traceback_")
        if stack is None:
            _warn(
                f"{said} No forward pass information available. Enable detect anomaly during forward pass for more "
                "information."
            )
            return
        _warn(f"{said} Traceback of forward call that {what}:\n{''.join(stack)}")
        said, what = "\n\nPrevious calculation was induced by", "induced the previous calculation"
        node = node.metadata.get("parent_")


def _warn(text: str) -> None:
    try:
        warn(text)
    except UserWarning as error:  # under -W error: raising it would hide the error in flight
        print(f"UserWarning: {error}", file=sys.stderr)


def check_nan(node: Any, results: Any) -> None:
    """Checks that a node returned no NaN.

    Raises:
        RuntimeError: naming the node.
    """
    for i, grad in enumerate(results):
        if grad is not None and bool((grad != grad).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
