"""Shardings of ``jit``'s arguments and results: checks, and constraints inside other transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from funcgrad.arguments.flatten import kind
from funcgrad.arguments.prefixes import spread
from funcgrad.core import trees
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.primitives.markers import sharded_p

_WANTED = "a Sharding, a PartitionSpec or None"


def _is_one(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec))


def check_kinds(name: str, shardings: Any) -> None:
    """Raises if a leaf is not a sharding."""
    for path, leaf in trees.flatten_with_path(shardings, is_leaf=_is_one)[0]:
        if not _is_one(leaf):
            raise TypeError(f"jit: {name}{trees.keystr(path)} must be {_WANTED}, got {kind(leaf)}")


def of_arguments(shardings: Any, names: Sequence[str], args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
    """The sharding of each leaf of the arguments, or None if unspecified.

    Args:
        shardings: one for all, or a sequence of one entry per argument: a pytree with the structure of the argument or
            of its upper part.
        names: the names of the arguments.
        args, named: positional and keyword arguments; the latter have no shardings.

    Raises:
        TypeError, ValueError: for an invalid sharding; the message names the argument.
    """
    what = "jit: in_shardings"
    if shardings is None:
        return [None] * len(trees.leaves((args, named)))
    if trees.leaves(named):
        raise ValueError(f"{what} says nothing of keyword arguments: pass {', '.join(named)} by position")
    entries = [shardings] * len(args) if _is_one(shardings) else shardings
    if not isinstance(entries, (tuple, list)):
        raise TypeError(f"{what}: wants {_WANTED}, or a tuple of one entry per argument, got {kind(shardings)}")
    if len(entries) != len(args):
        raise ValueError(f"{what} has {len(entries)} entries, but the call has {len(args)} arguments")
    found = []
    for name, prefix, arg in zip(names, entries, args, strict=True):
        found += _checked(what, prefix, arg, name)
    return found


def of_results(shardings: Any, result: Any) -> list[Any]:
    """As ``of_arguments``, for the leaves of the result."""
    return _checked("jit: out_shardings", shardings, result, "the result")


def _checked(what: str, prefix: Any, value: Any, name: str) -> list[Any]:
    found = []
    for path, sharding, leaf in spread(what, prefix, value, name, _is_one, _WANTED):
        if sharding is not None and is_array(leaf):
            _check(what, path, type_of(leaf).strong(), sharding)
        found.append(sharding)
    return found


def _check(what: str, path: str, type: ArrayType, sharding: Sharding | PartitionSpec) -> None:
    if isinstance(sharding, PartitionSpec):
        spec = sharding
        mesh: Any = jax.sharding.get_abstract_mesh()
        if mesh.empty:
            raise ValueError(f"{what}: {spec} for {path} names axes of a mesh, but there is none; see jax.set_mesh")
    elif isinstance(sharding, NamedSharding):
        spec, mesh = sharding.spec, sharding.mesh
    else:
        return
    if len(spec) > type.ndim:
        raise ValueError(f"{what}: {spec} has {len(spec)} entries, but {path} of type {type} has {type.ndim} axes")
    for axis, (size, entry) in enumerate(zip(type.shape, spec)):
        names = entry if isinstance(entry, tuple) else () if entry in (None, PartitionSpec.UNCONSTRAINED) else (entry,)
        unknown = [n for n in names if n not in mesh.shape]
        if unknown:
            raise ValueError(f"{what}: {spec} for {path} names {unknown[0]!r}, but there are {list(mesh.shape)}")
        parts = math.prod(mesh.shape[n] for n in names)
        if size % parts:
            raise ValueError(
                f"{what}: axis {axis} of {path} of type {type} cannot be divided among {parts} devices, as {spec} says"
            )


def constrained(leaves: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    """The leaves with sharding constraints."""
    return [x if s is None else sharded_p(typed(x), sharding=s) for x, s in zip(leaves, shardings, strict=True)]
