"""The device ``meta``: tensors that have a shape, a dtype and strides, but no values.

The buffer of such a tensor is an ``Unknown``, a tracer with a type only. Plans are made from types, so on the meta
device a plan returns the types of its results and runs nothing. Everything that depends on types alone works there,
whatever the sizes: errors of shapes and dtypes, strides, views and writes through them, the graph and its backward,
optimizers. Reading a value raises PyTorch's error.

Example:
    >>> import compat as torch
    >>> x = torch.empty(1 << 20, 1 << 20, device="meta", requires_grad=True)
    >>> y = (x @ x.T).softmax(-1)
    >>> y
    tensor(..., device='meta', size=(1048576, 1048576), grad_fn=<SoftmaxBackward0>)
    >>> y.sum().backward()
    >>> x.grad.shape
    torch.Size([1048576, 1048576])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from compat._core.memory.strides import Base, Layout
from compat._core.types.device import CPU, META, device
from funcgrad.core.errors import ConcretizationError
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Interpreter, Tracer, type_of

NO_DATA = "Cannot copy out of meta tensor; no data!"
#: The error for reading a storage's values.
NO_VALUES = "Not available for 'meta' device type"
_NO_ITEM = "Tensor.item() cannot be called on meta tensors"
NO_KERNEL = (
    "{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. You "
    "may have run into this message while using an operator with PT2 compilation APIs (torch.compile/torch.export); in "
    "order to use this operator with those APIs you'll need to add a fake impl. Please see the following for next "
    "steps:  https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)
_NO_COUNT = (
    "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent "
    "implementation does not exist. This implementation returns a fake value, assuming all elements of the tensor are "
    "non-zero. To enable this registration, please set 'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' "
    "to True."
)


class _Types(Interpreter):
    """An interpreter that infers the result types of each primitive."""

    __slots__ = ()
    description = "the meta device"

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        found = [Unknown(t) for t in primitive.output_types([type_of(x) for x in operands], params)]
        return found if primitive.multiple else found[0]


_types = _Types()
#: Between the interpreter of arrays and all transforms.
_types.level = 0.25  # type: ignore[assignment]


class NoData(ConcretizationError, NotImplementedError):
    """Raised for reading a value on the meta device."""


class Unknown(Tracer):
    """An array with a type but no values."""

    __slots__ = ()

    def __init__(self, type: ArrayType):
        self.interpreter = _types
        self.type = type

    def underlying(self) -> NoReturn:
        raise NoData(NO_DATA)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise NotImplementedError(NO_DATA)


def refused(asked: str) -> Exception:
    """The error for reading a value of a meta tensor.

    Args:
        asked: the operation that needs the value, as for ``vmap_checks.concrete``.
    """
    return NotImplementedError(NO_DATA) if asked == "its values" else RuntimeError(_NO_ITEM)


def unknown(base: Base) -> Unknown:
    """The memory of a new meta tensor."""
    assert base.dtype.numpy is not None
    return Unknown(ArrayType(base.shape, base.dtype.numpy))


def results_of(program: Program) -> list[Unknown]:
    """The results of a program on the meta device."""
    return [Unknown(t) for t in program.output_types]


def in_transform(x: Any) -> bool:
    """Whether a buffer is traced by a transform."""
    return isinstance(x, Tracer) and x.interpreter.level > _types.level


def on_meta(t: Any) -> bool:
    """Whether a tensor is on the meta device."""
    return t._layout_.base.device is META


def check_values(name: str, *tensors: Any) -> None:
    """Checks the operands of an operation whose result's shape depends on values.

    Args:
        name: the name of the operation.

    Raises:
        NotImplementedError: if one of the tensors has no values.
    """
    if any(on_meta(t) and not t._overrides_operators_ for t in tensors):  # such a type is asked for the result
        raise NotImplementedError(_NO_COUNT if name in ("nonzero", "index") else NO_KERNEL.format(f"aten::{name}"))


def common_device(layouts: Sequence[Any], strict: bool) -> device | None:
    """The device of an operation's results.

    A zero-dimensional tensor on the CPU may be among tensors of another device. Unless ``strict``, the first tensor
    determines the device, and others, such as an index, may be on the CPU.

    Args:
        layouts: the layouts of the operands; items of other types, for other arguments, are ignored.

    Raises:
        RuntimeError: for operands on several devices.
    """
    found: device | None = None
    first: device | None = None
    for kind in layouts:
        if isinstance(kind, Layout):
            here = kind.base.device
            first = first or here
            if here is CPU and (kind.base.traced or not kind.ndim):  # a tracer is on the device of its program
                continue
            if found is None:
                found = here
            elif here is not found and (strict or here is not CPU):
                raise _several(here, found)
    return found or first


def _several(here: device, found: device) -> RuntimeError:
    if META in (here, found):
        return RuntimeError(f"Tensor on device {here} is not on the expected device {found}!")
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {found} and {here}!"
    )
