"""Indexing: ``x[...]``, ``x.at[...]``, positions and windows, editing, and writable copies."""
