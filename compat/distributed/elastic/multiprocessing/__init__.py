"""Where programs find how errors of processes are told."""
