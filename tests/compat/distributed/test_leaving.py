"""What a process that leaves tells the others."""

from __future__ import annotations

import socket

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
