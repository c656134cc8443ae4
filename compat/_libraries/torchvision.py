"""The operators of ``torchvision``'s compiled library; the package's Python registers their formulas and meta kernels.

Kernels with a separate backward operator in torchvision (``_roi_align_backward``) are differentiated as the tensor
functions that they consist of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad
from compat._libraries._deform_conv import deform_conv2d
from compat._libraries._nms import nms
from compat._libraries._roi import ps_roi_align, ps_roi_pool, roi_align, roi_max_pool, scatter_maxima
from compat.autograd import grad
from compat.library import Library

_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask"
)
_ALIGN = f"Tensor input, Tensor rois, {_POOLED}, int sampling_ratio"


def _linear_backward(pooled: Callable[[Tensor], Tensor], grad_output: Tensor, size: tuple[int, ...]) -> Tensor:
    """The gradient of a function that is linear in its image, with respect to an image of this size."""
    with enable_grad():
        image = grad_output.new_zeros(size).requires_grad_()
        found = pooled(image)
        return grad(found, image, grad_output)[0] if found.requires_grad else image.detach()  # False without regions


def _roi_align_backward(g: Tensor, rois: Tensor, scale: float, ph: int, pw: int, *rest: Any) -> Tensor:
    *size, ratio, aligned = rest
    return _linear_backward(lambda x: roi_align(x, rois, scale, ph, pw, ratio, aligned), g, tuple(size))


def _ps_roi_align_backward(
    g: Tensor, rois: Tensor, mapping: Tensor, scale: float, ph: int, pw: int, ratio: int, *size: int
) -> Tensor:
    return _linear_backward(lambda x: ps_roi_align(x, rois, scale, ph, pw, ratio)[0], g, size)


def _ps_roi_pool_backward(
    g: Tensor, rois: Tensor, mapping: Tensor, scale: float, ph: int, pw: int, *size: int
) -> Tensor:
    # torchvision's forward pass omits the last row and column of the image, its backward pass does not.
    return _linear_backward(lambda x: ps_roi_pool(x, rois, scale, ph, pw, margin=0)[0], g, size)


def _roi_pool_backward(g: Tensor, rois: Tensor, argmax: Tensor, scale: float, ph: int, pw: int, *size: int) -> Tensor:
    return scatter_maxima(g, rois, argmax, size)


def _deform_conv2d_backward(g: Tensor, *args: Any) -> tuple[Tensor, ...]:
    tensors, numbers = args[:5], args[5:]
    with enable_grad():
        leaves = [t.detach().requires_grad_() for t in tensors]
        found = grad(deform_conv2d(*leaves, *numbers), leaves, g, allow_unused=True)
    return tuple(t.new_zeros(t.shape) if f is None else f for t, f in zip(tensors, found))


#: Each operator's schema and kernel; those without a kernel take quantized tensors, which are not supported.
_OPERATORS: tuple[tuple[str, Callable[..., Any] | None], ...] = (
    ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms),
    (f"roi_align({_ALIGN}, bool aligned) -> Tensor", roi_align),
    (f"_roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
     _roi_align_backward),
    (f"roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", roi_max_pool),
    (f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor",
     _roi_pool_backward),
    (f"ps_roi_align({_ALIGN}) -> (Tensor, Tensor)", ps_roi_align),
    (f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, int sampling_ratio, "
     f"{_SIZES}) -> Tensor", _ps_roi_align_backward),
    (f"ps_roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", ps_roi_pool),
    (f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES}) -> Tensor",
     _ps_roi_pool_backward),
    (f"deform_conv2d({_CONV}) -> Tensor", deform_conv2d),
    (f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     _deform_conv2d_backward),
    ("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", None),
    ("qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
     f"int rois_zero_point, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor", None),
    ("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor", None),
)  # fmt: skip


def _declare() -> Library:
    library = Library("torchvision", "DEF")
    for schema, kernel in _OPERATORS:
        name = library.define(schema)
        if kernel is not None:
            library.impl(name, kernel, "CPU")
    library.define("_cuda_version() -> int")
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    return library


_library = _declare()
