"""Passes over graph modules, their order, and the partition of a graph by what a backend supports."""
