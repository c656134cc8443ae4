"""The autograd state of a tensor: views, gradients and hooks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compat._core.tensor.tensor import Tensor


class View:
    """The state of a tensor that shares its storage.

    Attributes:
        base: the tensor of which it is a view; None if only memory is shared (``detach``, ``data``, a base itself).
        version: the version for which the tensor's ``grad_fn`` was made; a later in-place operation on another view of
            the same base makes it stale.
        origin: PyTorch's ``CreationMeta``, which restricts in-place operations: "", "no_grad", "multiple", "function",
            "inference".
        steps: the functions that replay the view on its base, if it is not an ``as_strided``.
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


#: Marks a tensor whose storage others share, but that is not a view.
SHARED = View(None)
#: The same for a tensor detached inside a forward-mode level: tangents written into it are separate from the
#: original's.
DETACHED_DUAL = View(None)
#: Marks a gradient that is a view of another gradient, made by the backward of a view.
PASSING = View(None)
#: ``_rg`` of an inference tensor that requires grad: an operation is recorded if another operand is not an inference
#: tensor.
WITHIN: Any = 2
#: Marks a tensor over an inference tensor's storage, made outside inference mode: it may be written there.
LOOSE = View(None)


class Autograd:
    """The autograd state that few tensors have: a gradient, hooks, an accumulator node.

    Attributes:
        grad: the gradient.
        accumulator: a weak reference to the ``AccumulateGrad`` node of a leaf.
        hooks: tensor hooks of a leaf. Those of a result belong to its node; if an in-place view operation has replaced
            that node, they are kept here.
        post_accumulate: hooks that run after ``grad`` was updated.
        retains: whether a non-leaf keeps its gradient.
        grad_dtypes: the dtype of its gradient, if not the tensor's own; an empty tuple for any dtype.
        own: whether ``requires_grad`` was set on the tensor itself; a view also inherits it from its base.
        left: a weak reference to the node from which ``detach_`` removed it.
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
