"""Arguments of functions and transforms: flattening pytrees, and checks."""
