"""The legacy types of sparse tensors, such as ``torch.sparse.FloatTensor``, which are constructors, too."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once
from compat._core.types.memory_format import LAYOUTS
from compat._operators.create.legacy_constructors import LegacyTensorType
from compat._operators.sparse.conversion import sparse_coo_tensor
from compat._operators.sparse.tensor import SparseTensor


class _SparseType(LegacyTensorType):
    """The metaclass of the legacy types, whose instances are the sparse tensors of a dtype."""

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is self.dtype

    def __call__(self, *args: Any, **named: Any) -> Tensor:
        parts = isinstance(args[0], Tensor) if args else False
        given = ("indices, values" + ", shape" * (len(args) > 2)) if parts else "shape" if args else ""
        Once.warn(
            f"torch.sparse.SparseTensor({given + ', *, device=' if given else ''}) is deprecated.  Please use "
            f"torch.sparse_coo_tensor({given or '(0,)'}, dtype={', device=' if given else ''})."
        )
        if parts:
            return sparse_coo_tensor(*args, **named)
        size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return sparse_coo_tensor(tuple(size) or (0,), dtype=self.dtype, **named)


def _declare(dtype: dtypes.dtype) -> Any:
    members = {
        "__module__": "torch.sparse",
        "dtype": dtype,
        "layout": LAYOUTS["sparse_coo"],
        "is_cuda": False,
        "is_sparse": True,
        "is_xpu": False,
        "__doc__": f"The legacy type of sparse tensors of ``{dtype}``: a constructor, and a type for ``isinstance``.",
    }
    return _SparseType(f"{dtype.scalar_name}Tensor", (), members)


for _dtype in (
    dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32, dtypes.int16,
    dtypes.int8, dtypes.uint8,
):  # fmt: skip
    publish(_declare(_dtype), f"sparse.{_dtype.scalar_name}Tensor")
