"""Programs, primitives, tracing: what everything else is made of."""
