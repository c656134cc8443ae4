"""The primitives, by family; each row or definition holds all of a primitive's rules."""
