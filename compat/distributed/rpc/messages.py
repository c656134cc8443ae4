"""Objects as bytes, with their tensors separate, so that autograd can record that these are sent."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor

#: The reducers of types that can be pickled only in messages; ``compat.distributed.rpc.rref`` registers its own.
REDUCERS: dict[type, Callable[[Any], tuple]] = {}
_NOT_FOUND = (
    ". Functions are sent by name, without their code: they must be defined in a module that both workers can import."
)


class _Pickler(pickle.Pickler):
    """Pickles an object without its tensors.

    Attributes:
        tensors: its tensors, each once; parameters and other subclasses of ``Tensor`` are pickled as usual.
    """

    dispatch_table = REDUCERS

    def __init__(self, file: io.BytesIO):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Tensor] = []
        self._places: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is not Tensor:
            return None
        place = self._places.get(id(obj))
        if place is None:
            place = self._places[id(obj)] = len(self.tensors)
            self.tensors.append(obj)
        return place


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, tensors: Sequence[Tensor]):
        super().__init__(io.BytesIO(data))
        self._tensors = tensors

    def persistent_load(self, place: int) -> Tensor:
        return self._tensors[place]


def pack(obj: Any) -> tuple[bytes, list[Tensor]]:
    """An object as bytes, and its tensors."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(obj)
    return file.getvalue(), pickler.tensors


def unpack(data: bytes, tensors: Sequence[Tensor]) -> Any:
    """The object of some bytes and tensors.

    Raises:
        AttributeError: for a function or a class that this process does not have.
    """
    try:
        return _Unpickler(data, tensors).load()
    except AttributeError as error:
        raise AttributeError(f"{error}{_NOT_FOUND}") from error


def values(t: Tensor) -> Tensor:
    """The tensor to send for a tensor: detached, and without the unused part of its storage.

    Raises:
        RuntimeError: for a tensor that is not on the CPU.
    """
    if t.device.type != "cpu":
        raise RuntimeError(
            "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before "
            f"sending them over RPC; got a tensor on {t.device}"
        )
    plain = t.detach()
    return plain.clone() if 2 * t.numel() * t.element_size() < t.untyped_storage().nbytes() else plain
