"""``torch.device``, the default device, and the accelerators of this process."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from funcgrad import runtime
from funcgrad.core.errors import explained

_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """The device of a tensor: a type and an optional index.

    Args:
        type: ``"cpu"``, ``"cuda:1"``, another device, or a type whose ``index`` follows.
        index: the number among the devices of that type.

    Raises:
        RuntimeError: for a string that is not the name of a device.

    Example:
        >>> import compat as torch
        >>> torch.device("cuda", 1), torch.device("cuda:1").index
        (device(type='cuda', index=1), 1)
        >>> with torch.device("cpu"):
        ...     torch.ones(1).device
        device(type='cpu')
    """

    __slots__ = ("type", "index", "_name")
    type: str
    index: int | None
    #: Its text, a fast key of dictionaries.
    _name: str

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            self.type, self.index, self._name = type.type, type.index, type._name
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = accelerator_type(), type
        if not isinstance(type, str):
            name = type.__class__.__name__
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({name}), but expected one of:\n"
                " * (torch.device device)\n      didn't match because some of the arguments have invalid types: "
                f"(!{name}!)\n"
                " * (str type, int index = -1)\n"
            )
        self.type, self.index = _parse(type)
        if index is not None:
            if self.index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not isinstance(index, int):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            self.index = int(index)
        self._name = self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return _restored, (self._name,)

    def __enter__(self) -> device:
        # The default device inside the context.
        _entered.devices.append(available(self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.devices.pop()


def _restored(text: str) -> device:
    """The device of a pickle; devices of tensors are unique objects."""
    return _known.get(text) or device(text)


device.__module__ = "torch"  # shown in its name; pickles use the defining module


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    if not re.fullmatch(r"[a-zA-Z_]+(:(0|[1-9]\d*))?", text):
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, colon, index = text.partition(":")
    if kind not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}")
    return kind, int(index) if colon else None


CPU = device("cpu")
META = device("meta")


class _Entered(threading.local):
    """The device contexts of a thread, the innermost last, and the default device outside them."""

    def __init__(self) -> None:
        self.devices: list[device] = []
        self.default = CPU
        #: The number of contexts in which tensors only claim a device, which need not exist.
        self.claiming = 0


_entered = _Entered()


def default_device() -> device:
    """The device of new tensors."""
    return _entered.devices[-1] if _entered.devices else _entered.default


def set_default(where: device) -> None:
    """Sets the default device, outside of all device contexts."""
    _entered.default = where


def place(where: Any) -> device:
    """The device of a new tensor: the given one, or the default device for None.

    Raises:
        AssertionError, RuntimeError: as ``available``.
    """
    if where is not None:
        return available(where)
    return _entered.devices[-1] if _entered.devices else _entered.default


# ---------------------------------------------------------------- accelerators


class _Current(threading.local):
    """The current accelerator of each type in a thread, for devices without an index."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}


_current = _Current()
#: The devices of tensors, by name; each is a unique object.
_known: dict[str, device] = {"cpu": CPU, "meta": META}
#: The devices that fake tensors claim and that this process does not have.
_claimed: dict[str, device] = {}


@contextmanager
def claiming() -> Iterator[None]:
    """Context of fake tensors, in which every device is available."""
    _entered.claiming += 1
    try:
        yield
    finally:
        _entered.claiming -= 1


def accelerators(kind: str) -> list[Any]:
    """The JAX devices of a type: its GPUs for ``"cuda"``, its accelerators of any kind for ``"xla"``."""
    return runtime.accelerators(kind) if kind in ("cuda", "xla") else []


def accelerator_type() -> str:
    """The type of the accelerators of this process.

    Raises:
        RuntimeError: if there is no accelerator.
    """
    if accelerators("cuda"):
        return "cuda"
    if (runtime.expected() or runtime.simulated()) and accelerators("xla"):
        return "xla"
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_index(kind: str) -> int:
    """The index of the current accelerator of a type."""
    return _current.index.get(kind, 0)


def set_current(kind: str, index: int) -> None:
    """Sets the current accelerator of a type in this thread."""
    _current.index[kind] = index


def jax_device(where: device) -> Any:
    """The JAX device of a device; None for the CPU, to which arrays are not committed."""
    return None if where is CPU or where is META else accelerators(where.type)[where.index or 0]


def on(where: device, buffer: Any) -> Any:
    """A new buffer, put on a device."""
    return buffer if where is CPU else runtime.put_on(buffer, jax_device(where))


def device_of(x: Any) -> device:
    """The device of a JAX array: the accelerator that it is committed to, or the CPU."""
    places = runtime.committed_to(x)
    if places is None or len(places) > 1:
        return CPU
    (place,) = places
    for kind in ("cuda", "xla") if place.platform != "cpu" else ("xla",):
        found = accelerators(kind)
        if place in found:
            return available(device(kind, found.index(place)))
    return CPU


_INSTALL = {
    "cuda": 'JAX reaches NVIDIA GPUs by a plugin: pip install "jax[cuda13]" (or "jax[cuda12]", by the driver). ',
    "xla": 'JAX reaches accelerators by plugins: pip install "jax[tpu]" for TPUs, "jax[cuda13]" for NVIDIA GPUs. ',
}


def _hint(kind: str) -> str:
    """A hint for a missing accelerator: the plugin to install, or, if one is installed, how to check it."""
    if runtime.expected():
        missing = f"A plugin of JAX's is installed, but it has found no {'GPU' if kind == 'cuda' else 'accelerator'}: "
        why = missing + "see what `python -c 'import jax; print(jax.devices())'` says. "
    else:
        why = _INSTALL[kind]
    asked = "torch.cuda.is_available()" if kind == "cuda" else "torch.accelerator.is_available()"
    return why + f"Without one, leave the device out, or name it only if {asked}."


def no_cuda() -> AssertionError:
    """The error for a missing GPU: that of a PyTorch build without CUDA, with a hint."""
    return explained(AssertionError("Torch not compiled with CUDA enabled"), "cuda", _hint("cuda"))


def available(where: Any) -> device:
    """The unique object of a device that tensors can be on: ``CPU``, ``META``, an accelerator.

    Raises:
        AssertionError: for a GPU, if there is none.
        RuntimeError: for another device that does not exist.
    """
    found = where if isinstance(where, device) else device(where)
    known = _known.get(found._name)
    if known is not None:
        return known
    if found.type in ("cpu", "meta"):
        return CPU if found.type == "cpu" else META
    if _entered.claiming:
        name = f"{found.type}:{found.index or 0}"
        return _known.get(name) or _claimed.setdefault(name, device(name))
    if found.type not in ("cuda", "xla"):
        error = RuntimeError(f"tensors can be made on 'cpu', 'cuda', 'xla' and 'meta', got device '{found}'")
        raise explained(error, "cuda")
    count = len(accelerators(found.type))
    if not count:
        raise (
            no_cuda()
            if found.type == "cuda"
            else explained(RuntimeError("XLA has no device here but the CPU"), "cuda", _hint("xla"))
        )
    index = current_index(found.type) if found.index is None else found.index
    if index >= count:
        if found.type == "cuda":
            raise ValueError(f"CUDA error: invalid device ordinal: got '{found}', but there are {count} GPUs")
        raise RuntimeError(f"there is no device '{found}': the devices of type 'xla' are xla:0 to xla:{count - 1}")
    name = f"{found.type}:{index}"
    if name not in _known:
        _known[name] = device(found.type, index)
    return _known[name]
