"""Benchmarks: training programs on compat beside PyTorch and JAX, and the cost of funcgrad, as ratios from one run.

``python -m benchmarks`` runs all, ``python -m benchmarks mlp jit_call --sizes small`` some, ``--quick`` a few in two
minutes. docs/benchmarks.md explains what is measured and how, and how to read the results.
"""
