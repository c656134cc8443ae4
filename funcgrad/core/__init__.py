"""Programs, primitives and tracing, on which all other modules build."""
