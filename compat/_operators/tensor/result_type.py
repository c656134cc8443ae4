"""``result_type``, ``typename``, and the default type and device of new tensors."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, not_overridable
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import default_device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import Once
from compat._core.types.type_promotion import common_dtype


@composite(
    "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
    "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
    "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
    "result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType",
    names="torch.result_type",
)
def result_type(tensor1: Any, tensor2: Any) -> Dtype:
    """The result dtype of an operation on two tensors or numbers.

    Example:
        >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int32), 1.0)
        torch.float32
    """
    tensors = [t for t in (tensor1, tensor2) if isinstance(t, Tensor)]
    numbers = [type(dtypes.plain_number(x)) for x in (tensor1, tensor2) if not isinstance(x, Tensor)]
    return common_dtype([t.dtype for t in tensors if t.dim()], [t.dtype for t in tensors if not t.dim()], numbers)


@function("torch.typename")
@not_overridable
def typename(obj: Any, /) -> str:
    """The name of an object's type."""
    if isinstance(obj, Tensor):
        return obj.type()
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


@function("torch.set_default_tensor_type")
@not_overridable
def set_default_tensor_type(t: Any, /) -> None:
    """Sets the default dtype by the name of a type: ``"torch.DoubleTensor"``.

    Raises:
        TypeError: for a GPU type, and integer types.
    """
    Once.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    if getattr(t, "is_cuda", False) is True or (isinstance(t, str) and t.startswith("torch.cuda.")):
        name = t.removeprefix("torch.cuda.") if isinstance(t, str) else t.__name__
        raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")
    name = t if isinstance(t, str) else f"torch.{t.__name__}" if isinstance(t, type) else ""
    short = name.removeprefix("torch.").removesuffix("Tensor")
    found = next((d for d in dtypes.ALL if d.scalar_name == short), None)
    if found is None and isinstance(t, str):
        raise AttributeError(f"module 'torch' has no attribute '{name.removeprefix('torch.')}'")
    if found is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    dtypes.set_default_dtype(found)


@function("torch.get_default_device")
@not_overridable
def get_default_device() -> Any:
    """The default device of new tensors."""
    return default_device()
