"""Nodes, saved variables, the backward engine, forward-mode levels."""
