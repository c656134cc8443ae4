"""Batch and instance normalization."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import int64
from compat._core.types.errors import warn
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty, filled, requalified
from compat.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
__all__ += ["SyncBatchNorm"]


@requalified("__init__")
class _NormBase(Module):
    """Base of normalizations: scale and shift for each channel, and running statistics."""

    _version = 2
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(num_features, device, dtype)) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", filled((num_features,), 0, device, dtype) if tracked else None)
        self.register_buffer("running_var", filled((num_features,), 1, device, dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", filled((), 0, device, int64) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Resets the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the running statistics, and sets scale to 1 and shift to 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises an error for an input of another number of dimensions; defined by subclasses."""

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Version 1 did not count the batches.
            present = self.num_batches_tracked
            state_dict[key] = filled((), 0, None, int64) if present is None or present.is_meta else present
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        tracking = self.training and self.track_running_stats
        if tracking and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                factor = 1.0 / float(self.num_batches_tracked)
        from_batch = self.training or (self.running_mean is None and self.running_var is None)
        uses_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if uses_running else None,
            self.running_var if uses_running else None,
            self.weight,
            self.bias,
            from_batch,
            factor,
            self.eps,
        )


def _expect(input: Tensor, *dims: int) -> None:
    if input.dim() not in dims:
        wanted = " or ".join(f"{n}D" for n in dims)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of (batch, channels) or (batch, channels, length); see ``BatchNorm2d``.

    Example:
        >>> torch.nn.BatchNorm1d(1)(torch.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.0000],
                [ 1.0000]])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of (batch, channels, height, width) to mean 0 and variance 1, then scales and shifts it.

    In training, by the statistics of the batch; in evaluation, by running means of them.

    Source: S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015.

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the weight of a new batch in the running statistics; None for a cumulative mean.
        affine: whether to scale and shift, by ``weight`` and ``bias``.
        track_running_stats: False to use batch statistics in evaluation, too.
        bias: whether to shift.

    Attributes:
        running_mean, running_var: of shape (num_features,).
        num_batches_tracked: the number of batches in the statistics.

    Raises:
        ValueError: for an input with another number of dimensions.

    Example:
        >>> torch.nn.BatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect(input, 4)


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel of (batch, channels, depth, height, width); see ``BatchNorm2d``.

    Example:
        >>> torch.nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
        torch.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Normalizes each channel by the statistics of the batch in this process; PyTorch's are those of all processes.

    Args:
        process_group: ignored.
        num_features, eps, momentum, affine, track_running_stats, bias: as for ``BatchNorm2d``.

    Raises:
        ValueError: for an input of fewer than two dimensions, or without channels.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replaces every batch normalization in a module by ``SyncBatchNorm``.

        Args:
            module: modified in place, unless it is a batch normalization itself.
            process_group: passed to the new modules.

        Returns:
            The module, or its replacement.

        Example:
            >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))[0]
            SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            made.training = module.training
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    _unbatched_: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        _expect(input, self._unbatched_, self._unbatched_ + 1)

    def forward(self, input: Tensor) -> Any:
        self._check_input_dim(input)
        channels = input.dim() - self._unbatched_
        if input.size(channels) != self.num_features:
            _mismatch(self.affine, channels, self.num_features, input.size(channels))
        batched: Any = input if channels else input.unsqueeze(0)
        result = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result if channels else result.squeeze(0)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing: Any,
        unexpected: Any,
        errors: list[str],
    ) -> None:
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            found = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                errors.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, found))} for {type(self).__name__} "
                    "with track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be "
                    f"expected because {type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for key in found:
                    del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)


def _mismatch(affine: bool, dim: int, wanted: int, got: int) -> None:
    if affine:
        raise ValueError(f"expected input's size at dim={dim} to match num_features ({wanted}), but got: {got}.")
    warn(
        f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
        "num_features, which is not used because affine=False"
    )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample of (batch, channels, length), or of the same without batch.

    Example:
        >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.0000,  1.0000]]])
    """

    __module__ = "compat.nn.modules.instancenorm"

    _unbatched_ = 2


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each sample of (batch, channels, height, width), or of the same without batch.

    Source: D. Ulyanov et al., "Instance normalization", 2016.

    Args:
        num_features: the number of channels.
        eps, momentum, affine, track_running_stats, bias: as for ``BatchNorm2d``, with the opposite defaults.

    Example:
        >>> torch.nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])
    """

    __module__ = "compat.nn.modules.instancenorm"

    _unbatched_ = 3


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each sample of (batch, channels, depth, height, width), or without batch.

    Example:
        >>> torch.nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
        torch.Size([2, 3, 4, 4, 4])
    """

    __module__ = "compat.nn.modules.instancenorm"

    _unbatched_ = 4
