"""The autograd state of a tensor: its version, its base, its gradient."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compat._core.tensor.tensor import Tensor


class Version:
    """A version counter that is not its storage's: ``x.data`` and ``x`` count separately."""

    __slots__ = ("version", "__weakref__")

    def __init__(self, version: int = 0):
        self.version = version


class View:
    """The state of a tensor that shares its storage.

    Attributes:
        base: the tensor that it is a view of; None where only memory is shared (``detach``, ``data``, a base itself).
        version: the version at which the tensor's ``grad_fn`` was right; a later in-place operation on another view
            of the same base makes it stale.
        origin: how it was made, for the operations that may not be done to it in place: "", "no_grad", "multiple",
            "function", "inference".
        steps: how to make it of its base again, where that takes more than a look at other places.
    """

    __slots__ = ("base", "version", "origin", "steps")

    def __init__(
        self,
        base: Tensor | None,
        version: int = 0,
        origin: str = "",
        steps: tuple[Callable[[Tensor], Tensor], ...] = (),
    ):
        self.base = base
        self.version = version
        self.origin = origin
        self.steps = steps


#: Marks a tensor whose memory others share, though it is no view itself.
SHARED = View(None)
#: The same, detached within a forward-mode level: the tangents that are written into it are its own.
DETACHED_DUAL = View(None)
#: Marks a gradient that is a view of another, made on its way.
PASSING = View(None)
#: ``_rg_`` of an inference tensor that requires grad: operations are recorded where it meets a tensor that is none.
WITHIN: Any = 2
#: Marks another tensor over the memory of an inference tensor, made outside of inference mode: it may be written there.
LOOSE = View(None)


class Autograd:
    """The state that few tensors have: a gradient, hooks, an accumulator node.

    Attributes:
        grad: the gradient.
        accumulator: a weak reference to the ``AccumulateGrad`` node of a leaf.
        hooks: tensor hooks of a leaf; those of a result belong to its node, which is stored here where that is not the
            one it comes from any more.
        post_accumulate: hooks that run after ``grad`` was updated.
        retains: whether a non-leaf keeps its gradient.
        grad_dtypes: the dtypes that its gradient may have, if not the tensor's own: one, or none for any.
        own: whether it was itself said to require grad, which a view may also do because its base does.
        left: a weak reference to the node that ``detach_`` took it from.
    """

    __slots__ = ("grad", "accumulator", "hooks", "post_accumulate", "grad_dtypes", "retains", "own", "left")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: weakref.ref | None = None
        self.hooks: Any = None
        self.post_accumulate: Any = None
        self.grad_dtypes: tuple[Any, ...] | None = None
        self.retains = False
        self.own = False
        self.left: weakref.ref | None = None
