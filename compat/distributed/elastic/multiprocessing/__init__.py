"""Error reporting of processes."""
