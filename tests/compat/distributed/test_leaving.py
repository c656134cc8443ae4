"""What a process that leaves tells the others."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import compat.distributed as dist
from compat._distributed.transport.errors import DistBackendError
from compat._distributed.transport.mesh import LEAVING, Key, Mesh, _ended, _Peer


def test_a_process_that_leaves_after_another_s_end_tells_it() -> None:
    here, there = socket.socketpair()
    with here, there:
        peer = _Peer(1, here, {"pid": 7, "name": "host"})
        Mesh._control(None, peer, LEAVING, Key(0, 0, 1), b"rank 2 has ended")  # type: ignore[arg-type]
        assert peer.left
        assert _ended(peer, None) == "rank 1 (process 7 on host) has left the process group after rank 2 has ended"
        Mesh._control(None, peer, LEAVING, Key(0, 0, 0), b"KeyError: 1")  # type: ignore[arg-type]
        assert not peer.left and _ended(peer, None).endswith("has ended with KeyError: 1")


def test_sending_to_a_process_that_has_left_waits_for_its_last_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.HashStore()
    with ThreadPoolExecutor() as pool:
        joined = [pool.submit(Mesh, store, rank, 2, 60.0, dict) for rank in range(2)]
        mesh, other = (future.result() for future in joined)
    control = mesh._control

    def late(*message: Any) -> None:
        time.sleep(0.3)
        control(*message)

    monkeypatch.setattr(mesh, "_control", late)
    other.abort([0, 1], 5, 1, "the cause")
    other.close()
    try:
        with pytest.raises(DistBackendError, match=r"rank 1 .* has left the process group"):
            for _ in range(100):  # the operating system takes some
                mesh.send(1, Key(5, 1, 0), bytes(1 << 16), 10.0)
        assert "the cause" in str(mesh.aborted(5, 1))
    finally:
        mesh.close()
