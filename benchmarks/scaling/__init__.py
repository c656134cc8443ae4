"""Speedup and communication of several processes and devices."""
