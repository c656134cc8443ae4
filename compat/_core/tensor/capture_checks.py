"""Checks of in-place operations on captured tensors, which PyTorch forbids inside differentiating transforms.

A storage records the clock at its creation (``born``). A storage that is older than the transform, and does not belong
to an argument of its function, is captured.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from compat._core.memory.storage import begin
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode


@dataclass
class _Transform:
    """A transform that differentiates.

    Attributes:
        since: the clock at its entry: older storages are from outside.
        given: trees of older tensors that may be written: the arguments that are not differentiated, and tensors given
            as ``out=``.
    """

    since: int
    given: list[Any] = field(default_factory=list)


class _State(threading.local):
    """The differentiating transforms of this thread, outermost first."""

    def __init__(self) -> None:
        self.transforms: list[_Transform] = []


_state = _State()


@contextmanager
def capturing() -> Iterator[None]:
    """Context of a differentiating transform: older tensors count as captured."""
    entered, before, outer = _Transform(begin()), (mode.since, mode.outset), _state.transforms
    try:
        _state.transforms = [*outer, entered]
        mode.since, mode.outset = entered.since, min(mode.outset, entered.since)
        yield
    finally:
        _state.transforms = outer
        mode.since, mode.outset = before


def give(tree: Any) -> None:
    """Allows writes into the tensors of a tree, arguments of the innermost transform's function."""
    _state.transforms[-1].given.append(tree)


def let(out: Tensor) -> None:
    """Allows a write into ``out``, whenever it was made: PyTorch checks in-place operations only."""
    for entered in _state.transforms:
        entered.given.append(out)


def refuse(t: Tensor, name: str, given: Mapping[str, Any]) -> None:
    """Raises an error for an in-place operation on a captured tensor.

    Args:
        name, given: the operation's declared name, and its arguments by parameter.

    Raises:
        RuntimeError: if the tensor is captured.
    """
    if not any(_captured(t, entered) for entered in _state.transforms):
        return
    # Above this module, and imported for this error only.
    overload_of = import_module("compat._core.dispatch.overloads").overload_of
    called = overload_of(name.removesuffix("_"), True, given).name().removesuffix(".default")
    raise RuntimeError(
        f"During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"({called}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
        "transformed to explicitly accept the mutated Tensor(s) as inputs."
    )


def _captured(t: Tensor, by: _Transform) -> bool:
    """Whether a tensor is neither made inside a transform nor an argument of its function."""
    if t._storage_.born >= by.since:
        return False
    return not any(isinstance(x, Tensor) and x._storage_ is t._storage_ for x in tree_leaves(by.given))
