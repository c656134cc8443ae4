"""One program in two libraries: transforms, loops and arrays of funcgrad, and those of JAX under the same names."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close

_TRANSFORMS = (
    "grad value_and_grad vjp jvp linearize linear_transpose jacfwd jacrev hessian vmap jit checkpoint custom_jvp "
    "custom_vjp"
)
_LOOPS = "stop_gradient scan fori_loop while_loop cond switch map associative_scan"
_COLLECTIVES = "psum pmean pmax pmin all_gather psum_scatter ppermute pshuffle all_to_all axis_index"

OURS: Any = SimpleNamespace(**{n: getattr(fg, n) for n in f"{_TRANSFORMS} {_LOOPS} {_COLLECTIVES}".split()})
THEIRS: Any = SimpleNamespace(
    **{n: getattr(jax, n) for n in _TRANSFORMS.split()},
    **{n: getattr(jax.lax, n) for n in f"{_LOOPS} {_COLLECTIVES}".split()},
)
for language, xp, name, policies in (
    (OURS, fnp, fg.checkpoint_name, fg.checkpoint_policies),
    (THEIRS, jnp, checkpoint_name, jax.checkpoint_policies),
):
    language.np, language.checkpoint_name, language.checkpoint_policies = xp, name, policies


def compare(program: Callable[[Any], Any], label: str, tolerance: float | None = None) -> None:
    """Runs ``program`` with both libraries; it returns a pytree of arrays."""
    compare_trees(program(OURS), program(THEIRS), label, tolerance)


def compare_trees(got: Any, wanted: Any, label: str, tolerance: float | None = None) -> None:
    ours, theirs = jax.tree_util.tree_flatten(got), jax.tree_util.tree_flatten(wanted)
    assert ours[1] == theirs[1], f"{label}: structure {ours[1]}, wanted {theirs[1]}"
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert_close(a, b, label, tolerance)
