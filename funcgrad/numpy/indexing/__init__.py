"""Indexing: ``x[...]``, ``x.at[...]``, indices and windows, editing, and writable copies."""
