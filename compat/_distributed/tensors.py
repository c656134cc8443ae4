"""Conversion of tensors from and to the arrays that processes exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compat._core.memory import strided_access
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, refresh
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.device import META, on
from funcgrad import runtime


def check_tensor(t: Any, name: str) -> None:
    """Checks that an argument is a tensor.

    Raises:
        TypeError: otherwise.
    """
    if not isinstance(t, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(t)} instead."
        )


def check_tensors(tensors: Any, name: str) -> None:
    """Checks that an argument is a list of tensors.

    Raises:
        TypeError: otherwise.
    """
    wanted = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{wanted}{type(tensors)} instead.")
    if not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{wanted}{type(tensors)} with elements of type {[type(t) for t in tensors]}.")


def check_one_dtype(*tensors: Tensor) -> None:
    """Checks that tensors have one dtype.

    Raises:
        ValueError: otherwise.
    """
    for t in tensors[1:]:
        if t.dtype is not tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {t.dtype}")


def check_sizes(name: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    """Checks that tensors have as many elements as another.

    Raises:
        RuntimeError: otherwise.
    """
    for i, t in enumerate(tensors):
        if t.numel() != like.numel():
            raise RuntimeError(
                f"{name}: tensor {i} of the list has size {list(t.shape)}, which holds {t.numel()} elements, but "
                f"{list(like.shape)} was expected"
            )


def reader(t: Tensor) -> Callable[[], np.ndarray]:
    """A function that returns the tensor's present values, to be called later and in another thread.

    Recorded operations are dispatched to XLA here; calling the function waits until they are computed.

    Raises:
        RuntimeError: for a sparse tensor, or one without values.
    """
    if t.is_sparse or t._layout_.base.device is META:
        kind = "sparse tensors" if t.is_sparse else "tensors on the meta device"
        raise RuntimeError(f"torch.distributed: {kind} cannot be exchanged between processes; got {list(t.shape)}")
    if t._view_ is not None:
        refresh(t)
    if t._layout_.base.traced:
        array = np.ascontiguousarray(array_of(t))  # raises if there are no values
        return lambda: array
    buffer, layout, offset = runtime.ready(t._storage_.buffer), t._layout_, t._offset_
    return lambda: np.ascontiguousarray(strided_access.to_numpy(buffer, layout, offset))


def like(t: Tensor) -> np.ndarray:
    """An uninitialized array of a tensor's shape and dtype."""
    return np.empty(tuple(t.shape), t._layout_.dtype.numpy)


def write(t: Tensor, array: np.ndarray) -> None:
    """Copies an array to a tensor, whether or not it requires grad."""
    if t._view_ is not None:
        refresh(t)
    layout, storage = t._layout_, t._storage_
    if layout.base.traced:
        vmap_checks.concrete(storage.buffer, "its values")
    plain = layout.contiguous and not layout.conj and not layout.neg and layout.dtype is layout.base.dtype
    if plain and t._offset_ == 0 and layout.numel == layout.base.numel:
        storage.write(on(storage.device, strided_access.buffer_from_numpy(array.reshape(layout.base.shape))))
        bump_version(t)
        return
    with no_grad():
        names_of("Tensor")["copy_"](t.detach(), from_array(array.reshape(tuple(t.shape)), layout.dtype))
    runtime.flush()  # another thread does not run this thread's operations
