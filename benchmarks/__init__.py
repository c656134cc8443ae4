"""Benchmarks: what funcgrad costs beside other ways to do the same, as ratios from one run.

``python -m benchmarks`` runs all, ``python -m benchmarks jit_call mlp_lowering --json out.json`` some. README.md says
what each measures and how to read the numbers; ``harness.py`` how they are taken.
"""
