"""``torch._functorch``: what packages touch of it."""
