"""Files whose storages are not written or read: within ``skip_data``, and where tensors are fake."""

from __future__ import annotations

import threading
from typing import Any

from compat._core.dispatch.overrides import state as dispatch

__all__ = ["fake_mode", "skip_data", "skips_data"]


class _State(threading.local):
    skipping = False


_state = _State()


def skips_data() -> bool:
    """Whether ``save`` and ``load`` leave out the contents of storages in this thread."""
    return _state.skipping


def fake_mode() -> Any:
    """The active ``FakeTensorMode``, under which files are read without the contents of storages; None if there is
    none."""
    return next((m for m in dispatch.modes if getattr(m, "fakes_storages", False)), None)


class skip_data:
    """A context in which ``save`` writes zeros for the contents of storages, and ``load`` does not read them.

    The places in the file stay, so that the contents can be written there later
    (``PyTorchFileReader.get_record_offset``).

    Args:
        materialize_fake_tensors: ignored, as a tensor without memory is written in the same way.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(2, 3), file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """

    __module__ = "compat.serialization"

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _state.skipping
        _state.skipping = True

    def __exit__(self, *error: Any) -> None:
        _state.skipping = self._before
