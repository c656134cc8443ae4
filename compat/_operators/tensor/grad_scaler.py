"""The operators of ``GradScaler``, which unscale gradients and update the scale without reading values.

Example:
    >>> grads, infinite = [torch.tensor([2.0, 4.0]), torch.tensor([1.0, float("inf")])], torch.zeros(())
    >>> torch._amp_foreach_non_finite_check_and_unscale_(grads, infinite, torch.tensor(0.5))
    >>> grads, infinite
    ([tensor([1., 2.]), tensor([0.5000,    inf])], tensor(1.))
"""

from __future__ import annotations

from collections.abc import Sequence

from compat._core.operators.composite import composite
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import lacks, wrong_argument


def _check_number(name: str, t: Tensor, dtype: Dtype = dtypes.float32) -> None:
    if t.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if t.dtype is not dtype:
        raise RuntimeError(f"{name} must be {'a float' if dtype is dtypes.float32 else 'an int'} tensor.")


@composite(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    names="torch._amp_foreach_non_finite_check_and_unscale_",
)
def amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies gradients by a number, in place, and records whether any is nonfinite.

    Args:
        self: the gradients.
        found_inf: a one-element tensor, set to 1 if any gradient is nonfinite.
        inv_scale: a one-element tensor, the factor.

    Raises:
        RuntimeError: if ``found_inf`` or ``inv_scale`` is not a single float32 element.
        TypeError: if the gradients are not a list of tensors.
        NotImplementedError: for gradients that are not floating-point.
    """
    name = "_amp_foreach_non_finite_check_and_unscale_"
    if not isinstance(self, (list, tuple)):
        raise wrong_argument(name, "self", 1, "tuple of Tensors", self)
    _check_number("inv_scale", inv_scale)
    _check_number("found_inf", found_inf)
    for grad in self:
        if not grad.dtype.is_floating_point:
            raise lacks("_amp_foreach_non_finite_check_and_unscale_cpu", grad.dtype)
    with no_grad():
        found, factor = found_inf.reshape(()), inv_scale.reshape(())
        for grad in self:
            found.masked_fill_(grad.isfinite().all().logical_not(), 1.0)
            grad.mul_(factor)


@composite(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    names="torch._amp_update_scale_",
)
def amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Updates a scale after a step, in place: it decreases after nonfinite gradients and grows after many finite steps.

    Args:
        self: the scale, one element.
        growth_tracker: the number of consecutive steps with finite gradients, one int32 element; updated, too.
        found_inf: one element, nonzero if a gradient of the step was nonfinite.
        scale_growth_factor: the factor by which the scale grows, unless it would become infinite.
        scale_backoff_factor: the factor by which it decreases.
        growth_interval: the number of consecutive finite steps after which it grows.

    Raises:
        RuntimeError: for a tensor of another dtype or with another number of elements.

    Example:
        >>> scale, steps = torch.tensor(4.0), torch.tensor(1, dtype=torch.int32)
        >>> torch._amp_update_scale_(scale, steps, torch.tensor(0.0), 2.0, 0.5, 2), steps
        (tensor(8.), tensor(0, dtype=torch.int32))
    """
    if type(growth_interval) is not int:
        raise wrong_argument("_amp_update_scale_", "growth_interval", 6, "int", growth_interval)
    _check_number("growth_tracker", growth_tracker, dtypes.int32)
    _check_number("current_scale", self)
    _check_number("found_inf", found_inf)
    where = names_of("torch")["where"]
    with no_grad():
        infinite, grown, steps = found_inf.reshape(()) != 0, self * scale_growth_factor, growth_tracker + 1
        due = steps == growth_interval
        after_finite = where(due & grown.isfinite(), grown, self)
        self.copy_(where(infinite, self * scale_backoff_factor, after_finite))
        growth_tracker.copy_(steps.masked_fill(infinite | due, 0))
    return self
