"""Errors and warnings with PyTorch's types and messages, and checks that many operations share."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, ClassVar, TypeVar, cast

from compat._absent import absent
from compat._core.types.dtype import dtype as Dtype
from funcgrad.core.errors import explained

#: The C++ names of dtypes in PyTorch's messages.
CPP_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

NO_GRAD_OF_NON_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
    "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
    "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)

TYPED_STORAGE = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
    "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
    "directly, use tensor.untyped_storage() instead of tensor.storage()"
)

OVERLAPS_ITSELF = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)

OVERLAPS_INPUT = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


#: PyTorch's errors that have an entry on the documentation's page of errors: regular expressions of their beginnings.
ENTRIES = {
    "backward-twice": "Trying to backward through the graph a second time",
    "modified-in-place": "one of the variables needed for gradient computation",
    "scalar-output": r"grad can be implicitly created only for",
    "no-graph": "element 0 of tensors does not require grad",
    "not-in-graph": "The differentiated Tensor at index",
    "shape-mismatch": (
        r"The size of tensor a|mat1 and mat2 shapes|Expected size for first two dimensions of batch2|size mismatch|"
        r"Sizes of tensors must match|Tensors must have same number of dimensions|stack expects each tensor|"
        r"The expanded size of the tensor|Expected input batch_size|inconsistent tensor size|"
        r"Given groups=|Given normalized_shape=|running_mean should contain|Given input size: |"
        r"Mismatch in shape: grad_output|Using a target size|"
        r"Expected .*[234]D .* input to |permute\(.*\): number of dimensions"
    ),
    "dtype-mismatch": (
        r"mat1 and mat2 must have the same dtype|expected m1 and m2 to have the same dtype|Input type \(|"
        r"expected target dtype|mean\(\): could not infer output dtype|\"\w+\" not implemented for '|"
        r"Expected tensor for argument #1 'indices'|gather\(\): Expected dtype|"
        r"one_hot is only applicable|result type \w+ can't be cast"
    ),
    "out-of-range": "Target |index |Dimension out of range|all elements of input should be between",
    "view-size": "view size is not compatible",
    "not-a-tensor": r"\w+\(\): argument '\w+' \(position \d+\) must be Tensor, not ",
    "batch-of-one": "Expected more than 1 value per channel",
}
_BEGINNINGS = {entry: re.compile(pattern) for entry, pattern in ENTRIES.items()}

F = TypeVar("F", bound=Callable[..., Any])


def lead(error: Exception) -> None:
    """Adds a note to one of PyTorch's errors that names its entry on the page of errors, if it has one."""
    text = str(error)
    entry = next((entry for entry, pattern in _BEGINNINGS.items() if pattern.match(text)), None)
    if entry is not None and not hasattr(error, "__notes__"):
        explained(error, entry)


def leading(function: F) -> F:
    """The function, with ``lead`` applied to the errors that it raises."""

    @functools.wraps(function)
    def led(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            lead(error)
            raise

    return cast(F, led)


def cpp_name(d: Dtype) -> str:
    """The C++ name of a dtype in PyTorch's messages: ``long int`` for ``torch.int64``."""
    name = repr(d).removeprefix("torch.")
    return CPP_NAMES.get(name, name)


#: The dtypes whose tensors have a legacy type name in messages.
_OLD = frozenset(["Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"])


def type_text(d: Dtype) -> str:
    """The type name of a tensor in messages: ``torch.FloatTensor``, and ``CPUBoolType`` of the newer ones.

    Example:
        >>> import compat as torch
        >>> type_text(torch.float32), type_text(torch.bfloat16)
        ('torch.FloatTensor', 'CPUBFloat16Type')
    """
    return f"torch.{d.scalar_name}Tensor" if d.scalar_name in _OLD else f"CPU{d.scalar_name}Type"


def lacks(kernel: str, d: Dtype) -> NotImplementedError:
    """The error for a dtype without an implementation.

    Example:
        >>> import compat as torch
        >>> print(lacks("avg_pool2d", torch.int32))
        "avg_pool2d" not implemented for 'Int'
    """
    return NotImplementedError(f"\"{kernel}\" not implemented for '{d.scalar_name}'")


_NOT_FOR_BACKEND = (
    "Could not run '{0}' with arguments from the '{1}' backend. This could be because the operator doesn't exist for "
    "this backend, or was omitted during the selective/custom build process (if using custom build). If you are a "
    "Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for possible resolutions."
)


def refusal(name: str, backend: str = "SparseCPU") -> NotImplementedError:
    """The error for an operation without a kernel for sparse tensors, or for dense ones.

    Args:
        name: ``aten::exp``.
        backend: ``CPU`` for dense tensors.
    """
    return NotImplementedError(_NOT_FOR_BACKEND.format(name, backend))


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension, counted from the left.

    Raises:
        IndexError: if it is out of range; a zero-dimensional tensor accepts 0 and -1.
    """
    limit = max(ndim, 1)
    if -limit <= dim < limit:
        return dim + limit if dim < 0 else dim
    raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")


def wrap_dims(dims: Iterable[int], ndim: int) -> tuple[int, ...]:
    """Dimensions, counted from the left.

    Raises:
        IndexError: if one is out of range.
        RuntimeError: for duplicates.
    """
    result: list[int] = []
    for dim in dims:
        wrapped = wrap_dim(dim, ndim)
        if wrapped in result:
            raise RuntimeError(f"dim {wrapped} appears multiple times in the list of dims")
        result.append(wrapped)
    return tuple(result)


def no_attribute(module: str, name: str) -> AttributeError:
    """``module 'torch.nn' has no attribute 'Liner'``, with PyTorch's name of a module of compat."""
    found = absent("torch" + module.removeprefix("compat").removeprefix("torch"), name)
    found.obj = sys.modules.get(module)
    return found


def type_name(x: object) -> str:
    """PyTorch's name of the type of an argument."""
    name = type(x).__name__
    if type(x).__module__.partition(".")[0] == "funcgrad":
        return f"{name} (torch.as_tensor makes a tensor of it)"
    return f"{type(x).__module__}.{name}" if type(x).__module__ == "numpy" else name


def recorded_out(name: str) -> RuntimeError:
    """The error for a call with ``out`` whose derivative would be lost."""
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad."
    )


def dual_out(name: str) -> NotImplementedError:
    """The same in forward mode."""
    return NotImplementedError(
        f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
    )


OTHER_KIND = "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."


def wrong_argument(function: str, name: str, position: int | None, wanted: str, got: object) -> TypeError:
    """``add(): argument 'other' (position 2) must be Tensor, not str``."""
    where = f" (position {position})" if position is not None else ""
    return TypeError(f"{function}(): argument '{name}'{where} must be {wanted}, not {type_name(got)}")


def wrong_combination(function: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> TypeError:
    """``linspace() received an invalid combination of arguments - got (int, int, float)``."""
    got = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in (kwargs or {}).items()]
    return TypeError(f"{function}() received an invalid combination of arguments - got ({', '.join(got)})")


def size_text(size: Sequence[Any]) -> str:
    """A size as messages write it: ``[2, 3]``."""
    return f"[{', '.join(map(str, size))}]"


def check_grad_fits(grad: Any, t: Any, dtype: Dtype) -> None:
    """Checks that a tensor can be the gradient of another one.

    Args:
        dtype: the dtype of the other's gradients.

    Raises:
        RuntimeError: for another device, dtype or size.
    """
    if grad.device != t.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device}' to a tensor with device type "
            f"'{t.device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if grad.dtype is not dtype or grad.shape != t.shape:
        raise unfit_grad(grad.dtype, grad.shape, dtype, t.shape)


def unfit_grad(dtype: Dtype, size: Sequence[int], wanted: Dtype, wanted_size: Sequence[int]) -> RuntimeError:
    """The error for a gradient of another dtype or size than its tensor's."""
    if dtype is not wanted:
        return RuntimeError(
            f"attempting to assign a gradient with dtype '{cpp_name(dtype)}' to a tensor with grad_dtype "
            f"'{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
            "Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    return RuntimeError(
        f"attempting to assign a gradient of size '{list(size)}' to a tensor of size '{list(wanted_size)}'. "
        "Please ensure that the gradient and the tensor are the same size"
    )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Gives a warning that names the line of the innermost frame outside compat."""
    level, frame = 2, sys._getframe(1)
    while _inside(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def user_frame() -> FrameType | None:
    """The innermost frame of the program outside compat."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _inside(frame):
        frame = frame.f_back
    return frame


class Once:
    """Warnings that are given once per process, unless ``torch.set_warn_always`` is set.

    Attributes:
        said: the keys of the warnings given so far.
        always: whether each warning is given every time.
    """

    said: ClassVar[set[str]] = set()
    always: ClassVar[bool] = False

    @classmethod
    def warn(cls, message: str, category: type[Warning] = UserWarning, key: str | None = None) -> None:
        """Gives a warning that names the user's line, the first time.

        Args:
            key: identifies the warning; by default its message.
        """
        key = key or message
        if cls.always or key not in cls.said:
            cls.said.add(key)
            warn(message, category)


_FOLDER = os.path.join(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")), "")


def _inside(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith(_FOLDER):  # the filename of generated functions has no folder
        return True
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("compat", "torch")
