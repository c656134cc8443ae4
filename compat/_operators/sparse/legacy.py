"""The legacy types of sparse tensors, such as ``torch.sparse.FloatTensor``, which are constructors, too."""

from __future__ import annotations

from typing import Any

from compat._core.dispatch.layout_tensor import rules_of
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once
from compat._core.types.memory_format import LAYOUTS
from compat._core.types.size import Size
from compat._operators.create.legacy_constructors import LegacyTensorType, is_size, no_form, take_device
from compat._operators.sparse.conversion import size_of_sparse, sparse_coo_tensor
from compat._operators.sparse.tensor import SparseTensor, empty_coo

#: The forms in the error of other arguments.
_FORMS = (
    "(Tensor indices, Tensor values, *, torch.device device = None)",
    "(Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)",
    "(tuple of ints size, *, torch.device device = None)",
)


@rules_of(SparseTensor)("construct")
def construct(dtype: dtypes.dtype, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """A sparse tensor from ``indices, values[, size]`` (of the dtype of the values), or without elements, from sizes.

    Raises:
        TypeError: for other arguments.
        RuntimeError: for another device than the CPU, and parts whose sizes do not match.
    """
    if len(args) > 3:
        raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
    given = dict(named)
    take_device(given)
    if args and isinstance(args[0], Tensor) and not (len(args) == 1 and is_size(args[0])):
        given = dict(zip(("indices", "values", "size"), args)) | given
    elif args:
        given["size"] = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    if not given:
        return empty_coo((0,), dtype)
    indices, values, size = (given.pop(name, None) for name in ("indices", "values", "size"))
    if given or (indices is None) is not (values is None):
        raise no_form(args, named, forms=_FORMS)
    if indices is None:
        if args and isinstance(args[0], tuple) and not isinstance(args[0], Size):
            raise TypeError(
                "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
                "strided tensor and convert it to sparse via to_sparse."
            )
        if not all(is_size(n) for n in size):
            raise no_form(args, named, forms=_FORMS)
        return empty_coo(size_of_sparse([int(n) for n in size]), dtype)
    if not isinstance(indices, Tensor) or not isinstance(values, Tensor):
        raise no_form(args, named, forms=_FORMS)
    return sparse_coo_tensor(indices, values, size)


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
