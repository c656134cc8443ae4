"""How processes find and reach each other: key-value stores, a mesh of sockets, and collectives of NumPy's arrays.

Nothing here knows of tensors or of XLA. ``stores`` and ``tcp_store`` hold what processes tell each other by key.
``mesh`` has one connection for each pair of processes, and a thread that reads them all; so a sender never waits for a
receiver, and every collective is messages between pairs. ``algorithms`` are the collectives, and ``lane`` runs those
that the program does not wait for.

Measured on two processes of one machine, as medians: a sum of 64 bytes takes 0.07 ms here, 4 ms as a compiled program
of ``jax.distributed``'s collectives, which take 40 to 120 ms more for each new shape; of 25 MB 46 ms and 43 ms.
"""
