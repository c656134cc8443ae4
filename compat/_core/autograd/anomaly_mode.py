"""Gradients that are not numbers, and where they came from, while ``torch.autograd.set_detect_anomaly`` is on.

While it is on, every node notes the lines of the program that made it (``metadata["traceback_"]``) and the node during
whose backward it was made (``metadata["parent_"]``), and every change in place notes its line.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from compat._core.autograd.saved_variable import writes
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import warn

_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep


def made(node: Any) -> None:
    """Notes where a node was made, while anomalies are looked for."""
    if mode.anomaly:
        node.metadata["traceback_"] = _stack()
        if mode.node is not None:
            node.metadata["parent_"] = mode.node


def written(counter: Any) -> None:
    """Notes which line changed a tensor in place, while anomalies are looked for."""
    if mode.anomaly:
        frame = _users_frame()
        if frame is not None:
            lines = traceback.format_stack(frame, limit=1)
            writes.setdefault(counter, {})[counter.version] = f"here:\n{lines[0]}".rstrip()


def _users_frame() -> Any:
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    return frame


def _stack() -> list[str]:
    return traceback.format_stack(_users_frame())


def explain(node: Any) -> None:
    """Warns with the stack of the failed node's forward operation, and of its parents' in double backward."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        _warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
        return
    _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}")
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_")
        if stack is None:
            _warn(
                "\n\nPrevious calculation was induced by " + parent.name() + ". No forward pass information "
                "available. Enable detect anomaly during forward pass for more information."
            )
            return
        _warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{''.join(stack)}"
        )
        parent = parent.metadata.get("parent_")


def _warn(text: str) -> None:
    try:
        warn(text)
    except UserWarning as error:  # warnings are errors: the one on its way is not to be hidden
        print(f"UserWarning: {error}", file=sys.stderr)


def check(node: Any, results: Any) -> None:
    """Raises if a node gave values that are not numbers.

    Raises:
        RuntimeError: naming the node.
    """
    for i, grad in enumerate(results):
        if grad is not None and bool((grad != grad).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
