"""Assertions: ``torch._check`` and its variants, ``torch._assert_async``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import handle_torch_function, has_torch_function
from compat._core.tensor.tracing import elements, tensor_of
from compat._core.transforms import vmap_checks
from compat._core.types import dtype
from compat._core.types.errors import warn
from compat._operators.arguments import tensor_argument

_DEFAULT_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)
Message = Callable[[], Any] | None


def _fail(error: type[Exception], message: Message) -> None:
    if message is None:
        raise error(_DEFAULT_MESSAGE)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


@function("torch._check_with")
def check_with(error_type: type[Exception], cond: bool, message: Message = None) -> None:
    """Raises an error of a type unless a condition holds.

    Args:
        error_type: the type of the error.
        cond: True or False.
        message: a function that returns the error message.

    Raises:
        TypeError: for a condition that is not a bool, and a message that is not callable.

    Example:
        >>> torch._check_with(ValueError, 1 > 2, lambda: "one is not more than two")
        Traceback (most recent call last):
        ValueError: one is not more than two
    """
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
            "that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _fail(error_type, message)


@function("torch._check_tensor_all_with")
def check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Message = None) -> None:
    """Raises an error of a type unless all elements of a bool tensor are true; arguments as for ``check_with``.

    Example:
        >>> torch._check_tensor_all_with(ValueError, torch.tensor([True, True]))
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtype.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond.all().item():
        _fail(error_type, message)


def _publish_check(name: str, error: type[Exception], every: bool = False) -> None:
    run: Callable[..., None] = check_tensor_all_with if every else check_with

    def check(cond: Any, message: Message = None) -> None:
        run(error, cond, message)

    check.__name__ = check.__qualname__ = name
    condition = "all elements of a bool tensor are true" if every else "a condition holds"
    check.__doc__ = f"Raises ``{error.__name__}`` unless {condition}; ``message`` is a function that returns its text."
    publish(check, f"torch.{name}")


_publish_check("_check", RuntimeError)
_publish_check("_check_index", IndexError)
_publish_check("_check_value", ValueError)
_publish_check("_check_type", TypeError)
_publish_check("_check_not_implemented", NotImplementedError)
_publish_check("_check_tensor_all", RuntimeError, every=True)


@function("torch._check_is_size")
def check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raises ``RuntimeError`` unless a number is non-negative and at most ``max``."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use "
        "_check(i >= 0) instead.",
        FutureWarning,
    )
    check_with(RuntimeError, i >= 0, message)
    if max is not None:
        check_with(RuntimeError, i <= max, message)


def _all_batch_elements(name: str, input: Any) -> Tensor:
    """A tensor of booleans; under ``vmap`` with the values of all batch elements."""
    t = tensor_argument(name, "input", 1, input)
    if t.dtype is not dtype.bool_:
        raise RuntimeError(f"{name}(): expected a tensor of booleans, got one of {t.dtype}")
    x = elements(t) if t._storage_.base.traced else None
    return tensor_of(vmap_checks.inmost(x)) if vmap_checks.maps(x) else t


@composite("_is_all_true(Tensor self) -> Tensor", names="torch._is_all_true")
def is_all_true(input: Tensor) -> Tensor:
    """Whether all elements of a bool tensor are true; under ``vmap``, one answer for all batch elements.

    Example:
        >>> torch._is_all_true(torch.tensor([True, False]))
        tensor(False)
    """
    return _all_batch_elements("_is_all_true", input).all()


@composite("_is_any_true(Tensor self) -> Tensor", names="torch._is_any_true")
def is_any_true(input: Tensor) -> Tensor:
    """Whether any element of a bool tensor is true; under ``vmap``, one answer for all batch elements.

    Example:
        >>> torch.vmap(torch._is_any_true, out_dims=None)(torch.tensor([[True], [False]]))
        tensor(True)
    """
    return _all_batch_elements("_is_any_true", input).any()


@composite(
    "_assert_async(Tensor self) -> ()",
    "_assert_async.msg(Tensor self, str assert_msg) -> ()",
    names="torch._assert_async",
)
def assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raises ``RuntimeError`` unless a one-element tensor is nonzero.

    Example:
        >>> torch._assert_async(torch.tensor(1.0))
    """
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@function("torch._assert")
def assert_(condition: Any, message: str) -> Any:
    """Python's ``assert`` as a function that ``__torch_function__`` can override, as ``fx`` proxies do."""
    if type(condition) is not Tensor and has_torch_function((condition,)):
        return handle_torch_function(assert_, (condition,), condition, message)
    assert condition, message
    return None
