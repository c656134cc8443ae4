"""``torch._functorch.vmap``: the steps of ``vmap``, which packages call or replace.

tensordict assigns ``_process_batched_inputs``, ``_create_batched_inputs`` and ``_unwrap_batched`` of this module, to
batch its dictionaries. From then on ``torch.vmap`` runs these steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from compat._core.pytree.trees import TreeSpec, broadcast_to_and_flatten, tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensor_of
from compat._core.transforms import level_stack
from compat.func._vmap import Batch, Mapped, mapping, name_of, result_dims, set_replaced_steps, unbatched, vmap
from funcgrad.interpreters.batching import Batching

__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_create_batched_inputs", "_get_name",
    "_maybe_remove_batch_dim", "_process_batched_inputs", "_remove_batch_dim", "_unwrap_batched", "restore_vmap",
    "tree_flatten", "tree_unflatten", "vmap", "vmap_increment_nesting",
]  # fmt: skip

_broadcast_to_and_flatten = broadcast_to_and_flatten
_get_name = name_of
_STEPS = frozenset(("_create_batched_inputs", "_process_batched_inputs", "_unwrap_batched"))


# ---------------------------------------------------------------- a tensor


def _batch_at(vmap_level: int) -> Batch:
    """The running ``vmap`` at this level, counted from 1, the outermost."""
    levels = level_stack.state.levels
    batch = levels[vmap_level - 1].batch if 0 < vmap_level <= len(levels) else None
    if batch is None:
        raise RuntimeError(f"vmap_level={vmap_level}: no vmap runs at this level; {len(levels)} transforms are running")
    found: Batch = batch
    return found


def _add_batch_dim(tensor: Tensor, in_dim: int, vmap_level: int) -> Tensor:
    """A tensor with a batch dimension removed, as seen inside a running ``vmap``.

    Raises:
        RuntimeError: if none runs at this level.
    """
    return _batch_at(vmap_level).add(tensor, in_dim % tensor.dim())


def _remove_batch_dim(tensor: Tensor, vmap_level: int, batch_size: int, out_dim: int) -> Tensor:
    """A result with its batch dimension at ``out_dim``.

    Raises:
        RuntimeError: if no ``vmap`` runs at this level.
    """
    removed: Tensor = _batch_at(vmap_level).remove(tensor, out_dim)
    return removed


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: Any) -> Any:
    """As ``_remove_batch_dim``; with ``out_dim`` None the result is unchanged, and may be any object.

    Args:
        name: the name of the function in messages.
    """
    batch = _batch_at(vmap_level)
    batch.name = name
    return batch.remove(batched_output, out_dim)


# ---------------------------------------------------------------- the steps


def _process_batched_inputs(
    in_dims: Any, args: tuple, func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The batch size, the batch dimension of each leaf of the arguments, the leaves and their structure."""
    mapped = Mapped(func, in_dims, 0, "error", args, {})
    return mapped.size, mapped.dims, mapped.leaves, mapped.tree


def _create_batched_inputs(
    flat_in_dims: Sequence[int | None], flat_args: Sequence[Any], vmap_level: int, args_spec: TreeSpec
) -> Any:
    """The arguments as seen inside the ``vmap``."""
    elements = [x if d is None else _add_batch_dim(x, d, vmap_level) for x, d in zip(flat_args, flat_in_dims)]
    return tree_unflatten(elements, args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """The results with their batch dimensions."""
    batch = _batch_at(vmap_level)
    outs, tree = tree_flatten(batched_outputs)
    dims = result_dims(batch.name, out_dims, batched_outputs, tree)
    return tree_unflatten([batch.remove(x, d) for x, d in zip(outs, dims)], tree)


@contextmanager
def vmap_increment_nesting(batch_size: int, randomness: str, name: str = "func") -> Iterator[int]:
    """Runs the body inside a ``vmap``; yields its level.

    Example:
        >>> x = torch.arange(6.0).reshape(2, 3)
        >>> with vmap_increment_nesting(2, "error") as level:
        ...     total = _remove_batch_dim(_add_batch_dim(x, 0, level).sum(), level, 2, 0)
        >>> total
        tensor([ 3., 12.])
    """
    with mapping(Batch(Batching(batch_size), name), randomness):
        yield len(level_stack.state.levels)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """``func`` vectorized, returning results with their own batch dimensions.

    Args:
        in_dims: the batch dimension of each leaf of the arguments, as a pytree.

    Returns:
        A function of the same arguments that returns the results and their batch dimensions, None for unbatched ones.

    Example:
        >>> restore_vmap(lambda x: (x.sum(), torch.ones(2)), (1,), 3, "error")(torch.ones(2, 3))
        ((tensor([2., 2., 2.]), tensor([1., 1.])), (0, None))
    """

    def restored(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(args)
        dims = broadcast_to_and_flatten(in_dims, tree)
        if dims is None:
            raise ValueError(f"restore_vmap: in_dims={in_dims} is not compatible with the structure {tree} of `inputs`")
        with vmap_increment_nesting(batch_size, randomness, name_of(func)) as level:
            batch = _batch_at(level)
            outs, out_tree = tree_flatten(func(*_create_batched_inputs(dims, leaves, level, tree), **kwargs))
            batch.write_back()
            found = [unbatched(batch.interpreter, x) if isinstance(x, Tensor) else (x, None) for x in outs]
            values = [x if d is None else tensor_of(value) for x, (value, d) in zip(outs, found)]
        return tree_unflatten(values, out_tree), tree_unflatten([d for _, d in found], out_tree)

    return restored


# ---------------------------------------------------------------- replaced steps


def _run_by_steps(
    func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """One call of a vectorized function, by the present steps of this module."""
    size, dims, leaves, tree = _process_batched_inputs(in_dims, args, func)
    with vmap_increment_nesting(size, randomness, name_of(func)) as level:
        result = func(*_create_batched_inputs(dims, leaves, level, tree), **kwargs)
        _batch_at(level).write_back()
        return _unwrap_batched(result, out_dims, level, size, func)


class _Module(ModuleType):
    """This module's class, which detects that a step is replaced."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _STEPS:
            replaced = any(getattr(self, step) is not _OWN[step] for step in _STEPS)
            set_replaced_steps(_run_by_steps if replaced else None)


_OWN = {step: globals()[step] for step in _STEPS}
sys.modules[__name__].__class__ = _Module
