"""Functions of functions: derivatives, batches, compilation, programs seen."""
