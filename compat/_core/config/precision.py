"""The precision of float32 products and convolutions on accelerators: PyTorch's settings, old and new.

The new ones name a backend and an operation; a setting that is ``"none"`` takes the value of its backend, and that the
one of all backends. The old ones are ``set_float32_matmul_precision`` and ``allow_tf32``. On the CPU all is float32.
"""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import function
from compat._core.types.errors import warn
from funcgrad import runtime
from funcgrad.core.precision import set_precision

_PRECISIONS = ("none", "ieee", "tf32", "bf16")
_ALL = ("generic", "all")
_TF32_NOTES = "https://pytorch.org/docs/main/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"


class _State:
    """The settings of the process: the old one, and the new ones that were set, by backend and operation."""

    def __init__(self) -> None:
        self.matmul = "highest"
        self.own: dict[tuple[str, str], str] = {}


_state = _State()
#: The values of operations that were not set, where none of their backend is either.
_UNSET = {("cuda", "conv"): "tf32", ("cuda", "rnn"): "tf32"}


def precision_of(backend: str, operation: str) -> str:
    """The precision in force.

    Args:
        backend: ``"generic"``, ``"cuda"`` or ``"mkldnn"``.
        operation: ``"all"``, ``"matmul"``, ``"conv"`` or ``"rnn"``.
    """
    place = (backend, operation)
    found = next((p for at in (place, (backend, "all"), _ALL) if (p := _state.own.get(at, "none")) != "none"), None)
    if found is None:
        return "none" if place in _state.own else _UNSET.get(place, "none")
    return "none" if backend == "cuda" and found == "bf16" else found


def set_precision_of(backend: str, operation: str, precision: str) -> None:
    """Sets the precision of an operation, of a backend or of all.

    Raises:
        TypeError: for a precision that is not a string.
        RuntimeError: for an unknown one, or one that the backend lacks.
    """
    if not isinstance(precision, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. The following argument types are supported:"
            "\n    1. (arg0: str, arg1: str, arg2: str) -> str\n\n"
            f"Invoked with: {backend!r}, {operation!r}, {precision!r}"
        )
    if precision not in _PRECISIONS:
        raise RuntimeError(f"Unknown precision: {precision}")
    if backend == "cuda" and precision == "bf16":
        raise RuntimeError("backend 'cuda' does not support precision 'bf16'")
    _state.own[backend, operation] = precision
    apply()


def apply() -> None:
    """Passes the precision on to the programs of accelerators, if there are any."""
    if runtime.expected():
        faster = "default" if _state.matmul == "medium" else "high"
        products, convolutions = (precision_of("cuda", operation) == "tf32" for operation in ("matmul", "conv"))
        set_precision(products=faster if products else None, convolutions="high" if convolutions else None)


# ---------------------------------------------------------------- the old settings


@function("torch.set_float32_matmul_precision")
def set_float32_matmul_precision(precision: str, /) -> None:
    """Sets the precision of products of float32 matrices on accelerators; on the CPU it is always float32.

    Args:
        precision: ``"highest"``, ``"high"`` (TF32 on a GPU, three bfloat16 products on a TPU) or ``"medium"`` (TF32,
            one bfloat16 product); another name gives a warning and is ignored.

    Raises:
        RuntimeError: if it is not a string.
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect."
        )
        return
    _state.matmul = precision
    _state.own["cuda", "matmul"] = "ieee" if precision == "highest" else "tf32"
    _state.own["mkldnn", "matmul"] = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision]
    apply()


@function("torch.get_float32_matmul_precision")
def get_float32_matmul_precision() -> str:
    """The precision set by ``set_float32_matmul_precision``.

    Raises:
        RuntimeError: if the new settings contradict it.
    """
    faster = precision_of("mkldnn", "matmul") in ("tf32", "bf16")
    if _contradicted() or (faster and _state.matmul == "highest"):
        raise RuntimeError(
            "PyTorch is checking the matmul precision without a specific backend name,Current status indicate that you "
            "have used mix of the legacy and new APIs to set the matmul precision. We suggest only using the new API "
            f"for matmul precision. See also: {_TF32_NOTES}"
        )
    return _state.matmul


def _contradicted() -> bool:
    return (precision_of("cuda", "matmul") == "tf32") != (_state.matmul != "highest")


def products_allow_tf32() -> bool:
    """``torch.backends.cuda.matmul.allow_tf32``.

    Raises:
        RuntimeError: if the new settings contradict the old ones.
    """
    if _contradicted():
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32_new is enabled for cuBlas matmul,Current status indicate that you "
            "have used mix of the legacy and new APIs to set the TF32 status for cublas matmul. We suggest only using "
            f"the new API to set the TF32 flag. See also: {_TF32_NOTES}"
        )
    return _state.matmul != "highest"


def allow_products_tf32(allow: bool) -> None:
    """Sets ``torch.backends.cuda.matmul.allow_tf32``.

    Raises:
        RuntimeError: for an argument that is not a bool.
    """
    _state.matmul = "high" if _checked(allow) else "highest"
    set_precision_of("cuda", "matmul", "tf32" if allow else "ieee")


def convolutions_allow_tf32() -> bool:
    """``torch.backends.cudnn.allow_tf32``.

    Raises:
        RuntimeError: if those of convolutions and of recurrent layers differ.
    """
    conv, rnn = (precision_of("cuda", operation) == "tf32" for operation in ("conv", "rnn"))
    if conv != rnn:
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32 is enabled for cuDNN without a specific operator name,but the "
            "current flag(s) indicate that cuDNN conv and cuDNN RNN have different TF32 flags.This combination "
            "indicates that you have used a mix of the legacy and new APIs to set the TF32 flags. We suggest only "
            f"using the new API to set the TF32 flag(s). See also: {_TF32_NOTES}"
        )
    return conv


def allow_convolutions_tf32(allow: bool) -> None:
    """Sets ``torch.backends.cudnn.allow_tf32``.

    Raises:
        RuntimeError: for an argument that is not a bool.
    """
    own = "tf32" if _checked(allow) else "none"
    set_precision_of("cuda", "conv", own)
    set_precision_of("cuda", "rnn", own)


def _checked(allow: Any) -> bool:
    if not isinstance(allow, bool):
        raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(allow).__name__}")
    return allow


apply()
