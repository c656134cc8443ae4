"""Tensors that a transformed function captured, into which PyTorch forbids writes inside of it.

A storage records when it was made, and in which transforms. So memory that is older than the transform around a
write, and is none of the arguments, came from outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compat._core.memory.storage import begin
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode


@dataclass
class _Transform:
    """A transform that differentiates.

    Attributes:
        since: when it began: storages made before are from outside of it.
        given: trees of what may be written nevertheless: what its function is called with besides what it is
            differentiated by, and what operations were given to write their results into.
    """

    since: int
    given: list[Any] = field(default_factory=list)


class _State(threading.local):
    """The transforms that this thread is in, outermost first."""

    def __init__(self) -> None:
        self.transforms: list[_Transform] = []


_state = _State()


@contextmanager
def capturing() -> Iterator[None]:
    """Context in which tensors made before count as captured."""
    entered, before, outer = _Transform(begin()), (mode.since, mode.outset), _state.transforms
    try:
        _state.transforms = [*outer, entered]
        mode.since, mode.outset = entered.since, min(mode.outset, entered.since)
        yield
    finally:
        _state.transforms = outer
        mode.since, mode.outset = before


def give(tree: Any) -> None:
    """Says that the function of the innermost transform is called with these tensors, too."""
    _state.transforms[-1].given.append(tree)


def let(out: Tensor) -> None:
    """Has ``out`` take a result, wherever it was made: PyTorch looks at operations that write into themselves only."""
    for entered in _state.transforms:
        entered.given.append(out)


def refuse(t: Tensor, name: str, given: Mapping[str, Any]) -> None:
    """Raises for a write into memory made before the innermost transform began, unless it is an argument's.

    Args:
        name, given: the operation that writes, as it is declared, and its arguments by parameter.

    Raises:
        RuntimeError: for what was captured.
    """
    if not any(_captured(t, entered) for entered in _state.transforms):
        return
    called = _overload_of(name.removesuffix("_"), True, given).name().removesuffix(".default")
    raise RuntimeError(
        f"During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"({called}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
        "transformed to explicitly accept the mutated Tensor(s) as inputs."
    )


#: Which overload a call is of. The table of overloads imports the declarations of operations, and these import this
#: module.
_overload_of: Callable[[str, bool, Mapping[str, Any]], Any]


def set_overloads(overload_of: Callable[[str, bool, Mapping[str, Any]], Any]) -> None:
    """Names the function that tells which overload a call is of."""
    global _overload_of
    _overload_of = overload_of


def _captured(t: Tensor, by: _Transform) -> bool:
    """Whether a tensor is neither made inside a transform nor an argument of its function."""
    if t._storage_.born >= by.since:
        return False
    return not any(isinstance(x, Tensor) and x._storage_ is t._storage_ for x in tree_leaves(by.given))
