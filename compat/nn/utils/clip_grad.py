"""Gradient clipping."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Sequence
from typing import Any

from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.errors import warn
from compat._core.types.type_promotion import promote_types
from compat._operators.create.from_data import tensor
from compat._operators.tensor.multi_tensor import Job, write_together
from funcgrad import numpy as np
from funcgrad.core.caching import Cache
from funcgrad.core.tracing import type_of


def _gradients(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _norm(x: Any, p: float) -> Any:
    """The ``p``-norm of all elements of an array."""
    absolute = np.abs(x)
    if p == math.inf:
        return np.max(absolute)
    if p == -math.inf:
        return np.min(absolute)
    if p == 0:
        return np.astype(np.sum(x != 0), type_of(absolute).dtype)
    if p == 1:
        return np.sum(absolute)
    return np.sqrt(np.sum(absolute * absolute)) if p == 2 else np.power(np.sum(np.power(absolute, p)), 1 / p)


_norms: Cache[tuple[float, int], Kernel] = Cache(KERNELS)


def _total_norm_kernel(norm_type: float, count: int) -> Kernel:
    """The kernel of the norm of the norms of ``count`` tensors."""
    kernel = _norms.get((norm_type, count)) or _norms.again((norm_type, count))
    if kernel is None:
        body = lambda *arrays: [_norm(np.stack([_norm(x, norm_type) for x in arrays]), norm_type)]
        kernel = _norms[norm_type, count] = Kernel("total_norm", body, [f"tensors[{i}]" for i in range(count)])
    return kernel


@no_grad()
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of the vector of all elements of tensors.

    Args:
        tensors: one tensor, or several.
        norm_type: the order of the norm; ``inf`` is the greatest absolute value.
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN.
        foreach: ignored, as all gradients are clipped by one program.

    Raises:
        RuntimeError: for a nonfinite norm, with ``error_if_nonfinite``.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return tensor(0.0)
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = promote_types(dtype, t.dtype)
    total = _total_norm_kernel(float(norm_type), len(tensors)).call(tensors)[0]
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def _scale(settings: Any, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    """A gradient times ``max_norm / (total_norm + 1e-6)``, if this factor is less than 1."""
    max_norm, total = numbers
    (grad,) = row
    factor = np.minimum(max_norm / (total + 1e-6), 1.0)
    return [grad * np.astype(factor, type_of(grad).dtype)]


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scales the gradients of parameters, whose norm is ``total_norm``, to a norm of at most ``max_norm``."""
    grads = _gradients(parameters)
    for grad in grads:
        if grad.is_sparse:
            grad.mul_((max_norm / (total_norm + 1e-6)).clamp(max=1.0))
    grads = [grad for grad in grads if not grad.is_sparse]
    write_together([Job(_scale, None, (float(max_norm), total_norm), [(g,) for g in grads], 1)])


@no_grad()
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of parameters in place to a total norm of at most ``max_norm``.

    Args:
        parameters: one parameter, or several.
        norm_type, error_if_nonfinite, foreach: as for ``get_total_norm``.

    Returns:
        The total norm before clipping.

    Raises:
        RuntimeError: for a nonfinite norm, with ``error_if_nonfinite``.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    if not isinstance(parameters, Tensor):
        generated = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if generated and not parameters:
            warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """A deprecated alias of ``clip_grad_norm_``."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(*args, **kwargs)


def _clamp(settings: Any, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    (limit,), (grad,) = numbers, row
    limit = np.astype(limit, type_of(grad).dtype)
    return [np.minimum(np.maximum(grad, -limit), limit)]


@no_grad()
def clip_grad_value_(parameters: Iterable[Any] | Tensor, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps the gradients of parameters to ``[-clip_value, clip_value]``, in place.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, -0.5])
        >>> torch.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    write_together([Job(_clamp, None, (float(clip_value),), [(g,) for g in _gradients(parameters)], 1)])
