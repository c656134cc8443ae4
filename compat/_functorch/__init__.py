"""``torch._functorch``: those of its names that packages use."""
