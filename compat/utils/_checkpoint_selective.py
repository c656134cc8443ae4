"""Selective checkpoints: operations whose results are saved, in a function that is recomputed otherwise.

Published in ``torch.utils.checkpoint``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, aten
from compat._core.pytree.trees import tree_map
from compat._core.tensor.tensor import Tensor
from compat.utils._python_dispatch import TorchDispatchMode


class CheckpointPolicy(enum.Enum):
    """A policy's decision for an operation: save its results, or recompute it."""

    __module__ = "compat.utils.checkpoint"

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


#: The policies under which results are saved.
_KEEPS = frozenset(
    [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE]
    + [CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD]
)
#: Operations that are not passed to the policy.
SAC_IGNORED_OPS = frozenset([aten.packet("detach").overload("default")])


class SelectiveCheckpointContext:
    """The context of a policy's call besides the operation and its arguments.

    Attributes:
        is_recompute: whether this is the recomputation.
        op_output: the operation's result in the first run.
    """

    __module__ = "compat.utils.checkpoint"

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., Any]


class _Saved:
    """A saved result, with its version."""

    __slots__ = ("val", "version")

    def __init__(self, value: Any):
        self.val = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) else None

    def get(self, may_have_changed: bool) -> Any:
        """The result.

        Raises:
            RuntimeError: if it was changed in place, unless ``may_have_changed``.
        """
        if self.version is not None and not may_have_changed and self.val._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val


#: The saved results by the index of an operation's call; ``_SPENT`` once used.
Storage = dict[Any, dict[int, Any]]
_SPENT = object()


class _CountingMode(TorchDispatchMode):
    """A mode that counts the calls of each operation since it was entered.

    Args:
        policy_fn: the policy.
        storage: the dictionary of saved results.
    """

    def __init__(self, policy_fn: Policy, storage: Storage):
        super().__init__()
        self.policy_fn = policy_fn
        self.storage = storage
        self._counts: dict[Any, int] = {}

    def __enter__(self) -> Any:
        self._counts = {}
        return super().__enter__()

    def _number(self, func: Any) -> int:
        number = self._counts.get(func, 0)
        self._counts[func] = number + 1
        return number


class _CachingTorchDispatchMode(_CountingMode):
    """The mode of the first run, which saves the results that the policy selects."""

    def __init__(self, policy_fn: Policy, storage: Storage, ac_graph_id: int | None = None):
        super().__init__(policy_fn, storage)

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        number = self._number(func)
        if _is_saved(self.policy_fn(context, func, *args, **kwargs)):
            self.storage.setdefault(func, {})[number] = tree_map(_Saved, result)
        return result


class _CachedTorchDispatchMode(_CountingMode):
    """The mode of the recomputation, which returns saved results.

    Args:
        allow_cache_entry_mutation: whether saved results may be changed in place.
    """

    def __init__(self, policy_fn: Policy, storage: Storage, allow_cache_entry_mutation: bool = False):
        super().__init__(policy_fn, storage)
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kept, number = self.storage.get(func, {}), self._number(func)
        if func in SAC_IGNORED_OPS or number not in kept:
            return func(*args, **(kwargs or {}))
        found, kept[number] = kept[number], _SPENT
        if found is _SPENT:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return tree_map(lambda saved: saved.get(self.allow_cache_entry_mutation), found)


def _is_saved(decision: Any) -> bool:
    """Whether a policy's decision, a ``CheckpointPolicy`` or a bool, is to save the result."""
    return decision if isinstance(decision, bool) else decision in _KEEPS


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[_CachingTorchDispatchMode, _CachedTorchDispatchMode]:
    """The contexts of a selective checkpoint; ``functools.partial`` of this function is a ``context_fn``.

    Args:
        policy_fn_or_list: a function ``policy(context, operation, *args, **kwargs)`` that returns a
            ``CheckpointPolicy``, or a list of the operations whose results are saved.
        allow_cache_entry_mutation: whether saved results may be changed in place.

    Raises:
        TypeError, ValueError: for other arguments, and for operations that are not overloads.

    Example:
        >>> import functools
        >>> from compat.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> x = torch.ones(2, 2, requires_grad=True)
        >>> context_fn = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
        >>> y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=context_fn)
        >>> y.sum().backward()
        >>> x.grad
        tensor([[-1.6646, -1.6646],
                [-1.6646, -1.6646]])
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            _check_overload(op)
        listed = frozenset(policy_fn_or_list)
        policy: Policy = lambda context, op, *args, **kwargs: op in listed
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = {}
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
    )


def _check_overload(op: Any) -> None:
    if isinstance(op, OpOverload):
        return
    message = f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
    if isinstance(op, OpOverloadPacket):
        message += (
            "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
            "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
        )
    raise ValueError(message)
