"""Functions of pytrees as functions of flat arrays, and checks of transforms' arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.core import dtypes, trees
from funcgrad.core.errors import explained
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import JaxArray, Tracer, is_array, state, type_of, typed
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.shape import zeros
from funcgrad.runtime.deferred import ready
from funcgrad.runtime.eager import as_array

Argnums = int | Sequence[int]


def _refuse_jax(error: TypeError) -> None:
    """Adds advice to JAX's error about a funcgrad tracer; installed once."""
    hint = "A function of JAX was given an array that funcgrad traces: use that of funcgrad.numpy or funcgrad.lax, or "
    error.__notes__ = [n for n in getattr(error, "__notes__", ()) if "JAX_TRACEBACK_FILTERING" not in n]
    if not any(note.startswith(hint) for note in error.__notes__):
        explained(error, "jax-function", f"{hint}wrap the function by funcgrad.interop.from_jax.")


class Flat:
    """A function of pytrees as a function of flat arrays; stores the structure of its last result.

    With ``has_aux``, the arrays of the auxiliary output are flat results too, after the others, so that they leave the
    transform as values, not as its tracers.

    Attributes:
        out_tree: the structure of the last result.
    """

    __slots__ = ("function", "tree", "transform", "has_aux", "out_tree", "_count", "_aux_leaves", "_aux_tree")

    def __init__(self, function: Callable[..., Any], tree: Any, transform: str, has_aux: bool = False):
        if not callable(function):
            raise TypeError(f"{transform}: wants a function, got {kind(function)}")
        self.function = function
        self.tree = tree
        self.transform = transform
        self.has_aux = has_aux

    def __call__(self, *leaves: Any) -> list[Any]:
        try:
            result = self.function(*trees.unflatten(self.tree, leaves))
        except TypeError as error:
            if "is not a valid JAX type" in str(error) and "Tracer'" in str(error):
                _refuse_jax(error)
            raise
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise TypeError(
                    f"{self.transform}: with has_aux=True the function must return (result, aux), got {kind(result)}"
                )
            result, aux = result
            self._aux_leaves, self._aux_tree = trees.flatten(aux)
        outs, self.out_tree = trees.flatten(result)
        self._count = len(outs)
        for path, leaf in trees.tree_flatten_with_path(result)[0] if not all(map(is_array, outs)) else ():
            if not is_array(leaf):
                raise TypeError(
                    f"{self.transform}: the function returned {kind(leaf)} at result{trees.keystr(path)}, wanted arrays"
                )
        return [*outs, *[leaf for leaf in self._aux_leaves if is_array(leaf)]] if self.has_aux else outs

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], Any]:
        """The flat results without those of the auxiliary output, and the auxiliary output."""
        results, finish = self.unfinished(outs)
        return results, finish()

    def unfinished(self, outs: Sequence[Any]) -> tuple[list[Any], Callable[[], Any]]:
        """``split``, with the auxiliary output as a function, so that its values are read only when it is called."""
        if not self.has_aux:
            return list(outs), lambda: None
        tail = list(outs[self._count :])

        def finish() -> Any:
            arrays = iter(tail)
            aux = [leaving(next(arrays)) if is_array(leaf) else leaf for leaf in self._aux_leaves]
            return trees.unflatten(self._aux_tree, aux)

        return list(outs[: self._count]), finish


def leaving(x: Any) -> Any:
    """A value as it leaves a transform: computed if it leaves the outermost one."""
    return x if state.depth else ready(x)


def kind(x: Any) -> str:
    return f"{x!r} of type {type(x).__name__}"


def check_leaves(transform: str, names: Sequence[str], arguments: Sequence[Any]) -> None:
    if all(map(is_array, trees.leaves(arguments))):
        return
    for name, argument in zip(names, arguments, strict=True):
        for path, leaf in trees.tree_flatten_with_path(argument)[0]:
            if not is_array(leaf):
                raise TypeError(f"{transform}: {name}{trees.keystr(path)} is {kind(leaf)}, wanted an array or a number")


def abstract(transform: str, x: Any) -> ArrayType:
    """The type of an argument of which only shape and dtype matter."""
    if isinstance(x, ArrayType):
        return x
    if is_array(x):
        return type_of(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ArrayType(tuple(x.shape), dtypes.canonical(x.dtype))
    raise TypeError(f"{transform}: got {kind(x)}, wanted an array, a number, or something with a shape and a dtype")


def check_inexact(
    transform: str,
    names: Sequence[str],
    arguments: Sequence[Any],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> None:
    """Raises for an argument that has no derivative of the requested kind."""
    check_leaves(transform, names, arguments)
    every = {type_of(leaf).dtype for leaf in trees.leaves(arguments)}
    if not holomorphic and all(map(dtypes.is_floating, every)):
        return
    for name, argument in zip(names, arguments, strict=True):
        for path, leaf in trees.tree_flatten_with_path(argument)[0]:
            dtype = type_of(leaf).dtype
            at = f"{name}{trees.keystr(path)}"
            if not dtypes.is_inexact(dtype):
                if allow_int:
                    continue
                hint = ", or say allow_int=True" if transform in ("grad", "jacrev") else ""
                error = TypeError(
                    f"{transform}: {at} has dtype {dtype}, of which there is no derivative; wanted a floating dtype. "
                    f"Convert it, or leave it out of argnums{hint}."
                )
                raise explained(error, "integer-argument")
            if holomorphic and not dtypes.is_complex(dtype):
                raise TypeError(f"{transform}: with holomorphic=True {at} must be complex, got {dtype}")
            if transform in ("jacfwd", "hessian") and dtypes.is_complex(dtype) and not holomorphic:
                raise TypeError(f"{transform}: {at} has dtype {dtype}; for a holomorphic function say holomorphic=True")


def check_function(transform: str, f: Any) -> None:
    """Checks that the argument of a transform is a function.

    Raises:
        TypeError: otherwise; usually the function was called by mistake.
    """
    if not callable(f):
        message = f"{transform}: wants a function, got {kind(f)}. Write {transform}(f)(x), not {transform}(f(x))"
        raise explained(TypeError(message), "transform-call")


def check_argnums(transform: str, argnums: Any) -> None:
    """Checks that ``argnums`` is an integer or a sequence of integers.

    Raises:
        TypeError: otherwise; usually an argument of the transformed function was passed by mistake.
    """
    several = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    wrong = next((n for n in several if not isinstance(n, int) and not hasattr(type(n), "__index__")), None)
    wrong = argnums if hasattr(argnums, "shape") and hasattr(argnums, "dtype") and argnums.shape else wrong
    if wrong is not None:
        message = f"{transform}(f, x): argnums must be an integer or a tuple of them, got {type(wrong).__name__}"
        raise explained(
            TypeError(f"{message}. {transform}(f) is a function; write {transform}(f)(x)"), "transform-call"
        )


def positions_of(transform: str, argnums: Argnums, count: int) -> tuple[int, ...]:
    if not isinstance(argnums, int):
        check_argnums(transform, argnums)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -count <= n < count:
            message = (
                f"{transform}: argnums={argnums} names argument {n}, but the call has {count} positional arguments"
            )
            raise explained(ValueError(message), "transform-call")
    positions = tuple(n % count for n in numbers)
    if len(set(positions)) != len(positions):
        raise ValueError(f"{transform}: argnums={argnums} names an argument twice")
    return positions


def partial_of(
    f: Callable[..., Any], positions: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """``f`` as a function of only the arguments at ``positions``."""

    def of_chosen(*chosen: Any) -> Any:
        full = list(args)
        for p, x in zip(positions, chosen, strict=True):
            full[p] = x
        return f(*full, **kwargs)

    return of_chosen


def zero_tangent(x: Any) -> Any:
    """The zero tangent of ``x``; of dtype ``float0`` for integers and booleans."""
    return zero_of(type_of(x))


def zero_of(type: ArrayType) -> Any:
    """The zero tangent for an array type."""
    return zeros(type.strong()) if dtypes.is_inexact(type.dtype) else no_tangent(type.shape)


def no_tangent(shape: tuple[int, ...]) -> np.ndarray:
    """The tangent of an array of integers or booleans: of dtype ``float0``, whose elements take no memory."""
    return np.zeros(shape, jax.dtypes.float0)


def is_float0(x: Any) -> bool:
    """Whether ``x`` is a ``float0`` tangent, which has no values and is no operand."""
    return getattr(x, "dtype", None) == jax.dtypes.float0


def match(what: str, value: Any, tree: Any, types: Sequence[ArrayType]) -> list[Any]:
    """The leaves of ``value``, checked against a structure and types; ``None`` where there is no derivative."""
    leaves, found = trees.flatten(value)
    if found != tree and trees.bare(found) != trees.bare(tree):
        raise ValueError(f"{what} has the structure {found}, wanted {tree}")
    matched: list[Any] = []
    for leaf, type in zip(leaves, types, strict=True):
        if is_float0(leaf):
            matched.append(None)
            continue
        mine = type_of(leaf)
        fits = mine.weak and dtypes.promote_weak(mine.dtype, mine.weak, type.dtype, False)[0] == type.dtype
        # The tangent of a Python number may have the other operand's precision.
        fits = fits or (type.weak and mine.dtype.kind == type.dtype.kind)
        if mine.shape != type.shape or (mine.dtype != type.dtype and not fits):
            raise ValueError(f"{what} has a leaf of type {mine}, wanted {type.strong()}")
        if not dtypes.is_inexact(type.dtype):
            matched.append(None)
        elif mine.dtype == type.dtype:
            matched.append(typed(leaf))
        else:
            matched.append(cast(typed(leaf), dtype=type.dtype))
    return matched


def settled(outs: Sequence[Any]) -> list[Any]:
    """Results as they leave a transform: arrays that are not weak, NumPy's or Python numbers."""
    return [_settled(x) for x in outs]


def _settled(x: Any) -> Any:
    x = leaving(x)
    if isinstance(x, (JaxArray, Tracer)):
        type = type_of(x)
        return cast(x, dtype=type.dtype) if type.weak else x
    if is_float0(x):
        return x
    return typed(x) if state.depth else as_array(typed(x))
