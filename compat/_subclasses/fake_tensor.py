"""Fake tensors: a shape, a dtype, strides and the device that they claim, without values.

The memory of a ``FakeTensor`` is that of a meta tensor. ``FakeTensorMode`` and the class intercept operations as other
modes and types do; an operation runs on the device ``meta``, and its results claim the common device of its operands.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import NoDispatch, class_overrides_operators, state
from compat._core.memory.meta import on_meta
from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_map
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import disabled
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.device import CPU, META, available, claiming
from compat._core.types.device import device as Device
from compat._core.types.dtype import bool_, uint8
from compat._operators.tensor.conversion import text
from compat._subclasses._conversion import FakeTensorConverter
from compat._subclasses._errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
)
from compat.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter",
    "FakeTensorDeviceMismatchError", "FakeTensorMode", "MetadataMismatchError", "UnsupportedFakeTensorException",
    "UnsupportedMutationAliasingException", "UnsupportedOperatorException", "is_fake", "maybe_get_fake_mode",
    "unset_fake_temporarily",
]  # fmt: skip

#: Only constants of so many elements are kept.
CONSTANT_NUMEL_LIMIT = 1
#: Operations whose result has a size that depends on values.
_OF_VALUES = frozenset(
    ["nonzero", "masked_select", "bincount", "_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"]
)
#: Operations whose operands may be on several devices.
_BETWEEN_DEVICES = frozenset(["copy_", "_to_copy", "index", "index_put_", "index_put", "set_"])
#: Operations that change a tensor's metadata only.
_INPLACE_VIEWS = frozenset((
    "t_", "transpose_", "squeeze_", "unsqueeze_", "as_strided_", "resize_", "set_", "swapdims_", "swapaxes_", "detach_",
))  # fmt: skip
#: Operations that draw random numbers, which are not evaluated for constants either.
_RANDOM = ("rand", "bernoulli", "normal", "uniform", "multinomial", "poisson", "exponential", "dropout")


class FakeTensor(Tensor):
    """A tensor without values, which claims to be on a device.

    Args:
        fake_mode: the mode that it belongs to.
        elem: a tensor on the device ``meta``, whose memory it shares.
        device: the device that it claims.
        constant: a tensor with its value, if that is known.

    Attributes:
        fake_mode, fake_device, constant: these arguments.
    """

    __slots__ = ()
    __torch_function__ = disabled
    fake_mode: FakeTensorMode
    _is_param: bool
    fake_device: Device
    constant: Tensor | None

    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Tensor | None = None) -> Any:
        if not isinstance(elem, Tensor) or not on_meta(elem):
            raise AssertionError(f"elem must be on meta device, got {getattr(elem, 'device', type(elem))}")
        made: Any = elem._of_class_(cls)
        made.fake_mode, made.constant = fake_mode, constant
        with claiming():
            made.fake_device = available(device)
        return made

    def __init__(self, *args: Any, **named: Any):
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        mode = next(t.fake_mode for t in tree_leaves([args, kwargs]) if isinstance(t, FakeTensor))
        return NotImplemented if _others(types) else mode.dispatch(func, types, args, kwargs)

    @property
    def device(self) -> Device:
        """The device that it claims; ``meta`` where an operation on it runs."""
        return self._layout_.base.device if state.below else self.fake_device

    @device.setter
    def device(self, value: Any) -> None:
        raise AttributeError("attribute 'device' of 'torch._C.TensorBase' objects is not writable")

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """``fake_mode.from_tensor(t)``."""
        return fake_mode.from_tensor(t)

    def tolist(self) -> Any:
        """The values as nested lists, if they are known.

        Raises:
            DataDependentOutputException: if they are not.
        """
        return self.item() if self.dim() == 0 else [self[i].tolist() for i in range(len(self))]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return str(text(self, tensor_contents="..." if tensor_contents is None else tensor_contents))

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            with no_grad():
                made: Any = self.detach().clone()
            made.__dict__.update(self.__dict__)
            memo[id(self)] = made.requires_grad_(self.requires_grad)
            if self.is_leaf and self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]


def _others(types: Sequence[type]) -> bool:
    """Whether there are types that override operators among some, besides fake tensors."""
    return any(not issubclass(t, FakeTensor) and class_overrides_operators(t) for t in types)


class FakeTensorMode(TorchDispatchMode):
    """Context in which operations compute shapes, dtypes, strides and devices, and no values.

    Factories and modules make fake tensors, which take no memory, on any device, whether it exists or not. What needs
    a value raises an error.

    Args:
        allow_fallback_kernels: ignored; operations have no kernels of their own for it.
        allow_non_fake_inputs: whether tensors with values may be operands; they are converted.
        shape_env: a ``ShapeEnv``, which is kept; all sizes are numbers here, also with it.
        static_shapes: kept; by default whether there is no ``shape_env``.
        export: ignored.

    Example:
        >>> from compat._subclasses import FakeTensorMode
        >>> with FakeTensorMode() as mode:
        ...     net = torch.nn.Linear(1 << 20, 1 << 20, device="cuda")
        ...     net(torch.ones(2, 1 << 20, device="cuda"))
        FakeTensor(..., device='cuda:0', size=(2, 1048576), grad_fn=<AddmmBackward0>)
        >>> mode.from_tensor(torch.ones(2, 3)).T
        FakeTensor(..., size=(3, 2))
    """

    #: While it is active, files are read without the contents of storages.
    fakes_storages = True

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ):
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self.fake_tensor_converter = FakeTensorConverter(export=export)
        self._contexts: list[ExitStack] = []

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is internal to the library: other modes are asked before it."""
        return True

    def __enter__(self) -> FakeTensorMode:
        contexts = ExitStack()
        contexts.enter_context(unset_fake_temporarily())
        contexts.enter_context(claiming())
        self._contexts.append(contexts)
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self._contexts.pop().close()

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """The fake tensor of a tensor, the same one at each call; views of one tensor share memory.

        Args:
            tensor: the tensor; a fake tensor of this mode is returned as it is.
            static_shapes, source, symbolic_context, trace: ignored.

        Raises:
            AssertionError: for a fake tensor of another mode.
            UnsupportedFakeTensorException: for a layout that fake tensors do not have.
        """
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def made(self, t: Tensor, where: Device) -> FakeTensor:
        """The fake tensor over the memory of a meta tensor.

        Args:
            where: the device that it claims.
        """
        found: FakeTensor = FakeTensor(self, t, where)
        return found

    def is_our_fake(self, t: object) -> bool:
        """Whether a value is a fake tensor of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    # ---------------------------------------------------------------- operations

    def __torch_dispatch__(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented if _others(types) else self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        """The result of an operation.

        Args:
            func: the intercepted overload.
            types: ignored.
            args, kwargs: its arguments.
        """
        name = func.overloadpacket.__name__
        if name == "lift_fresh":
            return self._lifted(args[0])
        args, kwargs = self._converted(func, name, args, kwargs or {})
        tensors = [t for t in tree_leaves([args, kwargs]) if isinstance(t, FakeTensor)]
        known = self._of_constants(func, name, args, kwargs, tensors)
        if known is not None and not name.endswith("_"):
            return known[0]
        _check_known(func, name, args, kwargs)
        where = self._device(name, args, kwargs, tensors)
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": META}
        with NoDispatch(), nullcontext() if tensors else META:  # the device of tensors made of nothing
            found = func(*args, **kwargs)
        if name.endswith("_") and known is None and tensors:
            tensors[0].constant = None
        return tree_map(lambda t: self._wrapped(t, where), found)

    def _wrapped(self, t: Any, where: Device) -> Any:
        if not isinstance(t, Tensor) or isinstance(t, FakeTensor):
            return t
        return self.made(t, where) if on_meta(t) else self.from_tensor(t)

    def _lifted(self, t: Tensor) -> Any:
        """The fake tensor of a tensor of data, with a constant."""
        if isinstance(t, FakeTensor):
            return t
        made = self.from_tensor(t)
        made.constant = t if t.numel() <= CONSTANT_NUMEL_LIMIT and not on_meta(t) else None
        return made

    def _converted(self, func: Any, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with fake tensors only."""

        def convert(t: Any) -> Any:
            if not isinstance(t, Tensor) or self.is_our_fake(t):
                return t
            if isinstance(t, FakeTensor):
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode} vs self={self}")
            if name in _INPLACE_VIEWS:
                raise AssertionError(
                    f"Can't call metadata mutating ops on non-Fake Tensor inputs. Found in {_call(func, args, kwargs)}"
                )
            if not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                    f"'allow_non_fake_inputs'. Found in {_call(func, args, kwargs)}"
                )
            return self.from_tensor(t)

        return tree_map(convert, tuple(args)), tree_map(convert, kwargs)

    def _of_constants(self, func: Any, name: str, args: Any, kwargs: Any, tensors: list[FakeTensor]) -> tuple | None:
        """The result of an operation on constants, computed; None if there is an operand that is not."""
        if not tensors or any(t.constant is None for t in tensors) or name.startswith(_RANDOM):
            return None
        with NoDispatch():
            real = lambda t: t.constant if isinstance(t, FakeTensor) else t
            found = func(*tree_map(real, args), **tree_map(real, kwargs))
        if any(isinstance(t, Tensor) and t.numel() > CONSTANT_NUMEL_LIMIT for t in tree_leaves(found)):
            return None
        return (tree_map(lambda t: self._lifted(t) if isinstance(t, Tensor) else t, found),)

    def _device(self, name: str, args: Any, kwargs: Any, tensors: list[FakeTensor]) -> Device:
        """The device that results claim.

        Raises:
            FakeTensorDeviceMismatchError: for operands on several devices.
        """
        given = kwargs.get("device")
        if given is not None or not tensors:
            return available(CPU if given is None else given)
        if name in _BETWEEN_DEVICES:
            return tensors[0].fake_device
        found: FakeTensor = tensors[0]
        for t in tensors[1:]:
            scalars = [found.fake_device is CPU and not found.dim(), t.fake_device is CPU and not t.dim()]
            if t.fake_device is found.fake_device or scalars[1]:
                continue
            if not scalars[0]:
                raise FakeTensorDeviceMismatchError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{found.fake_device} and {t.fake_device}!"
                )
            found = t
        return found.fake_device


def _check_known(func: Any, name: str, args: Any, kwargs: Any) -> None:
    """Checks that the result of an operation does not depend on values.

    Raises:
        DataDependentOutputException: if it is a number that does.
        DynamicOutputShapeException: if its size does.
    """
    if name in ("_local_scalar_dense", "equal", "allclose"):
        raise DataDependentOutputException(func)
    if name in _OF_VALUES and kwargs.get("output_size") is None and not kwargs.get("minlength"):
        raise DynamicOutputShapeException(func)
    if name in ("index", "index_put_", "index_put") and len(args) > 1:
        masks = [t for t in tree_flatten(args[1])[0] if isinstance(t, Tensor) and t.dtype in (bool_, uint8)]
        if masks and name == "index":
            raise DynamicOutputShapeException(aten.packet("nonzero").overload("default"))


def _call(func: Any, args: Any, kwargs: Any) -> str:
    """A call as text, without values of tensors."""

    def shown(x: Any) -> str:
        if isinstance(x, Tensor) and not isinstance(x, FakeTensor):
            return f"tensor([...], size={tuple(x.shape)})"
        if isinstance(x, (list, tuple)):
            return "[" + ", ".join(map(shown, x)) + "]"
        return repr(x)

    return f"{func}({', '.join([*map(shown, args), *[f'{k}={shown(v)}' for k, v in kwargs.items()]])})"


# ---------------------------------------------------------------- the active mode


def _active() -> FakeTensorMode | None:
    """The entered mode; None if there is none."""
    return next((m for m in state.modes if isinstance(m, FakeTensorMode)), None)


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Context in which no ``FakeTensorMode`` is active; gives the one that was."""
    before = _active()
    if before is not None:
        state.modes.remove(before)
    try:
        yield before
    finally:
        if before is not None:
            state.modes.insert(0, before)


def is_fake(x: object) -> bool:
    """Whether a value is a fake tensor, or a wrapper of some."""
    if isinstance(x, FakeTensor):
        return True
    if isinstance(x, Tensor) and hasattr(type(x), "__tensor_flatten__"):
        names, _ = x.__tensor_flatten__()
        return bool(names) and all(is_fake(getattr(x, n)) for n in names)
    return False


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a fake tensor, or of a wrapper of some; None for others."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if isinstance(t, Tensor) and hasattr(type(t), "__tensor_flatten__"):
        names, _ = t.__tensor_flatten__()
        modes = [maybe_get_fake_mode(getattr(t, n)) for n in names]
        return modes[0] if modes and all(m is modes[0] for m in modes) else None
    return None
