"""How errors of processes are told."""
