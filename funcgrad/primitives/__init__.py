"""The primitives by family; each row or definition has all rules of a primitive."""
