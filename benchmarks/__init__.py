"""Benchmarks: training programs on compat beside PyTorch and JAX, and what funcgrad costs, as ratios from one run.

``python -m benchmarks`` runs all, ``python -m benchmarks mlp jit_call --sizes small`` some, ``--quick`` a little in two
minutes. docs/benchmarks.md says what is measured and how, and how to read it.
"""
