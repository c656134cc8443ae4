"""Lazy layers, which infer their input size from the first input."""

from __future__ import annotations

import itertools
from typing import Any

from compat._core.transforms.grad_mode import no_grad
from compat._core.types.dtype import int64
from compat.nn._uninitialized import is_lazy
from compat.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from compat.nn.modules.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from compat.nn.modules.linear import Linear
from compat.nn.modules.utils import filled, requalified

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear", "LazyModuleMixin",
]  # fmt: skip


def _parameter(device: Any, dtype: Any) -> Any:
    # Imported here, for the reason that compat.nn._uninitialized gives.
    from compat.nn._lazy_tensors import UninitializedParameter

    return UninitializedParameter(device=device, dtype=dtype)


def _buffer(device: Any, dtype: Any) -> Any:
    from compat.nn._lazy_tensors import UninitializedBuffer

    return UninitializedBuffer(device=device, dtype=dtype)


class LazyModuleMixin:
    """A base of modules with ``UninitializedParameter``s, before ``Module`` among the bases.

    The first call determines their sizes, by ``initialize_parameters``, which a class defines with the arguments of
    ``forward``; loading a state does, too. After the first call the module's class is ``cls_to_become``.

    Attributes:
        cls_to_become: the class of the initialized module; None to keep the class.
    """

    cls_to_become: type | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _initialize_hook: Any
    _load_hook: Any

    def __init__(self: Any, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in (*self._parameters.items(), *self._persistent_buffers_()):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: Any) -> None:
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(tensor) and not is_lazy(given):
                with no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Initializes the parameters' sizes from the inputs of ``forward``.

        Raises:
            NotImplementedError: if the class does not define it.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no size yet."""
        return any(is_lazy(tensor) for tensor in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: tuple, kwargs: dict | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> None:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )


class _Lazy(LazyModuleMixin):
    """A lazy layer whose sizes follow from the number of input features.

    Attributes:
        _inferred_: the attribute with the number of features; 0 until it is known.
    """

    _inferred_: str

    def reset_parameters(self) -> None:
        """Redraws the parameters, once they have sizes."""
        if not self.has_uninitialized_params() and getattr(self, self._inferred_) != 0:
            super().reset_parameters()  # type: ignore[misc]


class LazyLinear(_Lazy, Linear):
    """A ``Linear`` that infers ``in_features`` from its first input.

    Args:
        out_features, bias: as for ``Linear``.

    Example:
        >>> layer = torch.nn.LazyLinear(3)
        >>> _ = layer(torch.ones(2, 5))
        >>> layer
        Linear(in_features=5, out_features=3, bias=True)
    """

    __module__ = "compat.nn.modules.linear"

    cls_to_become = Linear
    _inferred_ = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False)
        self.weight = _parameter(device, dtype)
        self.out_features = out_features
        if bias:
            self.bias = _parameter(device, dtype)

    def initialize_parameters(self, input: Any) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the parameters were loaded
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConv(_Lazy):
    """A convolution that infers ``in_channels`` from its first input."""

    _inferred_ = "in_channels"

    def _register_uninitialized_(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Registers an uninitialized weight and bias."""
        self.weight = _parameter(device, dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = _parameter(device, dtype)

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        inputs, outputs = self.in_channels, self.out_channels
        channels = (inputs, outputs // self.groups) if self.transposed else (outputs, inputs // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Any) -> int:
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        return input.shape[input.dim() - n - 1]

    def _get_num_spatial_dims(self: Any) -> int:
        return len(self.kernel_size)


@requalified("__init__")
class _LazyConvolution(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._register_uninitialized_(out_channels, bias, device, dtype)


@requalified("__init__")
class _LazyTransposed(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device=device,
            dtype=dtype,
        )  # fmt: skip
        self._register_uninitialized_(out_channels, bias, device, dtype)


class _LazyNorm(_Lazy):
    """A normalization that infers ``num_features`` from its first input."""

    _inferred_ = "num_features"

    def __init__(
        self: Any,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = _parameter(device, dtype)
            if bias:
                self.bias = _parameter(device, dtype)
        if track_running_stats:
            self.running_mean = _buffer(device, dtype)
            self.running_var = _buffer(device, dtype)
            self.num_batches_tracked = filled((), 0, device, int64)

    def initialize_parameters(self: Any, input: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            tensor = getattr(self, name)
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


_DOC = """A ``{0}`` that infers ``{1}`` from its first input; the other arguments are those of ``{0}``."""


def _lazy_class(kind: type, lazy: type) -> Any:
    """The lazy class that becomes ``kind``."""
    doc = _DOC.format(kind.__name__, lazy._inferred_)  # type: ignore[attr-defined]
    names = {"cls_to_become": kind, "__module__": kind.__module__, "__doc__": doc}
    return type(f"Lazy{kind.__name__}", (lazy, kind), names)


LazyConv1d = _lazy_class(Conv1d, _LazyConvolution)
LazyConv2d = _lazy_class(Conv2d, _LazyConvolution)
LazyConv3d = _lazy_class(Conv3d, _LazyConvolution)
LazyConvTranspose1d = _lazy_class(ConvTranspose1d, _LazyTransposed)
LazyConvTranspose2d = _lazy_class(ConvTranspose2d, _LazyTransposed)
LazyConvTranspose3d = _lazy_class(ConvTranspose3d, _LazyTransposed)
LazyBatchNorm1d = _lazy_class(BatchNorm1d, _LazyNorm)
LazyBatchNorm2d = _lazy_class(BatchNorm2d, _LazyNorm)
LazyBatchNorm3d = _lazy_class(BatchNorm3d, _LazyNorm)
LazyInstanceNorm1d = _lazy_class(InstanceNorm1d, _LazyNorm)
LazyInstanceNorm2d = _lazy_class(InstanceNorm2d, _LazyNorm)
LazyInstanceNorm3d = _lazy_class(InstanceNorm3d, _LazyNorm)
