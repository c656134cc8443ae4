"""The names of composite functions, while a profiler records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from compat._core.dispatch.dispatcher import operators
from compat._core.schema.overload import overloads_of
from compat._core.tensor.torch_function import TorchFunctionMode

#: Functions of ``torch.nn.functional`` whose operator is called otherwise, and functions without a schema.
_NAMES = {
    "batch_norm": "batch_norm", "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "cross_entropy": "cross_entropy_loss", "dropout": "dropout", "einsum": "einsum", "embedding": "embedding",
    "functional_softmax": "softmax", "group_norm": "group_norm", "instance_norm": "instance_norm", "item": "item",
    "layer_norm": "layer_norm", "log_softmax": "log_softmax", "nll_loss": "nll_loss_nd", "softmax": "softmax",
    "tensordot": "tensordot", "tensor_reshape": "reshape", "__matmul__": "matmul", "__rmatmul__": "matmul",
    "reshape": "reshape", "detach": "detach",
}  # fmt: skip


class Composites(TorchFunctionMode):
    """Records composites as ranges, around the operators that they call.

    Args:
        record: of a name and operands, the context in which a call runs.
    """

    def __init__(self, record: Callable[[str, Any], AbstractContextManager[None]]):
        super().__init__()
        self._record = record

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        name = _name(func)
        if name is None:
            return func(*args, **(kwargs or {}))
        with self._record(f"aten::{name}", args):
            return func(*args, **(kwargs or {}))


@functools.cache
def _name(func: Any) -> str | None:
    """The operator's name of a function that calls others; None for one that is recorded when it runs."""
    given = getattr(func, "__name__", "")
    overloads = overloads_of(func)
    name = _NAMES.get(given)
    if name is None and overloads:
        name = str(overloads[0].schema).partition("(")[0].partition(".")[0]
    return None if name is None or any(declared.name == name for declared in operators) else name


__all__ = ["Composites"]
