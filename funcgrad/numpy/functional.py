"""Functions applied to parts of arrays, and selection between values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.promotion import asoperand, astype
from funcgrad.numpy.shape import broadcast_arrays, broadcast_to, expand_dims, moveaxis, ravel, reshape, stack


def apply_along_axis(func1d: Callable[..., Any], axis: int, x: Any, *args: Any, **kwargs: Any) -> Any:
    """``func1d`` of each vector along an axis; the axes of its results replace that axis.

    Args:
        func1d: a function of a vector and the other arguments; called once per vector, so it may read values.
        axis: the axis of the vectors.
        x: an array of at least one axis.
        args, kwargs: further arguments of ``func1d``.

    Returns:
        An array of the dtype that ``func1d`` returns, and of the shape of ``x`` with ``axis`` replaced by the axes of
        its results.

    Raises:
        TypeError: for operands that are not arrays, ``x`` or a result.
        ValueError: if there are no vectors; NumPy's ``AxisError`` for an axis out of range.

    Example:
        >>> print(apply_along_axis(lambda v: v[0] + v[-1], 1, np.array([[1, 2, 3], [4, 5, 6]])))
        [ 4 10]
    """
    x = asoperand(x, "apply_along_axis")
    axis = validate.axis("apply_along_axis", axis, type_of(x).ndim)
    rows = moveaxis(x, axis, -1)
    shape = type_of(rows).shape
    validate.function("apply_along_axis", func1d)
    if not type_of(x).size:
        raise ValueError(f"apply_along_axis: there are no vectors in {type_of(x)}")
    flat = reshape(rows, (-1, shape[-1]))
    results = [asarray(func1d(getitem(flat, i), *args, **kwargs)) for i in range(type_of(flat).shape[0])]
    own = type_of(results[0]).shape
    whole = reshape(stack(results), (*shape[:-1], *own))
    lead = len(shape) - 1
    return moveaxis(whole, tuple(range(lead, lead + len(own))), tuple(range(axis, axis + len(own))))


def apply_over_axes(func: Callable[[Any, int], Any], x: Any, axes: Any) -> Any:
    """Applies ``func(x, axis)`` for each axis in turn; a removed axis is restored with size one.

    Args:
        func: a function of an array and an axis.
        x: an array.
        axes: an int, or a sequence of them.

    Returns:
        The result of the last call, with as many axes as ``x``.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not ints.
        ValueError: NumPy's ``AxisError`` for an axis out of range.

    Example:
        >>> from funcgrad.numpy import sum
        >>> print(apply_over_axes(sum, np.ones((2, 3)), [0, 1]))
        [[6.]]
    """
    x = asoperand(x, "apply_over_axes")
    validate.function("apply_over_axes", func)
    for given in validate.integers("apply_over_axes", "axes", axes):
        axis = validate.axis("apply_over_axes", given, type_of(x).ndim)
        result = func(x, axis)
        x = result if type_of(result).ndim == type_of(x).ndim else expand_dims(result, axis)
    return x


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Elementwise, the first choice whose condition holds, or ``default``.

    Args:
        condlist: arrays of bools; other numbers are true unless zero.
        choicelist: as many arrays or numbers.
        default: an array or number.

    Returns:
        An array of the broadcast shape of all, and the promoted dtype of the choices and the default.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for different numbers of conditions and choices, or none; for shapes that do not broadcast.

    Example:
        >>> x = np.array([-2.0, 0.5, 3.0])
        >>> print(select([x < 0, x > 1], [-x, x * x]))
        [2. 0. 9.]
    """
    condlist = validate.sequence("select", "condlist", condlist)
    choicelist = validate.sequence("select", "choicelist", choicelist)
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices; wanted as many")
    if not condlist:
        raise ValueError("select: wants at least one condition, got none")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = e.where(condition, choice, result)
    return result


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Elementwise, the function whose condition holds; the last one's if several do.

    Args:
        condlist: a condition, or several, of the shape of ``x``.
        funclist: functions of an array and ``args`` and ``kw``, or numbers; an additional one applies where no
            condition holds, by default 0. Each function is called with all of ``x``.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for mismatched numbers of conditions and functions, or incompatible shapes.

    Example:
        >>> x = np.array([-1.0, 2.0])
        >>> print(piecewise(x, [x < 0, x >= 0], [lambda v: -v, 7.0]))
        [1. 7.]
    """
    x = asoperand(x, "piecewise")
    single = not isinstance(condlist, (list, tuple)) and type_of(asoperand(condlist)).ndim <= type_of(x).ndim
    conditions = [condlist] if single or (len(condlist) and np.ndim(condlist[0]) < type_of(x).ndim) else list(condlist)
    functions = list(validate.sequence("piecewise", "funclist", funclist))
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: {len(conditions)} conditions want as many functions or one more, got {len(functions)}"
        )
    default = functions.pop() if len(functions) > len(conditions) else 0

    def value(f: Any) -> Any:
        return astype(asarray(f(x, *args, **kw) if callable(f) else f), type_of(x).dtype)

    result = broadcast_to(value(default), type_of(x).shape)
    for condition, function in zip(conditions, functions, strict=True):
        result = e.where(condition, value(function), result)
    return result


class vectorize:  # NumPy's name
    """A function of scalars as a function of arrays, which broadcast: it is called for each element.

    So it may read values; ``funcgrad.vmap``, which calls it once, is faster.

    Args:
        pyfunc: a function of scalars; or, with a signature, of small arrays.
        otypes: the dtypes of the results; by default those of the first call.
        excluded: positions and names of arguments that are passed unchanged.
        signature: such as ``"(m,n),(n)->(m)"``: the trailing axes of each argument that a call receives.

    Example:
        >>> f = vectorize(lambda a, b: a if a > b else b)
        >>> print(f(np.array([1, 5]), 3))
        [3 5]
        >>> print(vectorize(lambda v: v[0], signature="(n)->()")(np.array([[1, 2], [3, 4]])))
        [1 3]
    """

    def __init__(
        self, pyfunc: Callable[..., Any], otypes: Any = None, doc: str | None = None, excluded: Any = None,
        cache: bool = False, signature: str | None = None,
    ):  # fmt: skip
        self.pyfunc = pyfunc
        self.otypes = list(otypes) if otypes is not None else None
        self.excluded = set(excluded or ())
        self.signature = signature
        self.__doc__ = pyfunc.__doc__ if doc is None else doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names: list[Any] = [i for i in range(len(args)) if i not in self.excluded]
        names += [k for k in kwargs if k not in self.excluded]
        given = [asoperand(args[k] if isinstance(k, int) else kwargs[k], "vectorize") for k in names]
        own = self._own_axes(len(given))
        outer = broadcast_arrays(
            *[asarray(np.empty(type_of(x).shape[: type_of(x).ndim - n])) for x, n in zip(given, own, strict=True)]
        )  # fmt: skip
        shape = type_of(outer[0]).shape if outer else ()
        rows = [_rows(x, shape, n) for x, n in zip(given, own, strict=True)]
        count = int(np.prod(shape, dtype=int))
        if not count:
            raise ValueError("vectorize: there is nothing to call the function with")

        def one(i: int) -> tuple[Any, ...]:
            values = {k: getitem(row, i) for k, row in zip(names, rows, strict=True)}
            result = self.pyfunc(
                *[values.get(j, a) for j, a in enumerate(args)], **{k: values.get(k, v) for k, v in kwargs.items()}
            )
            return result if isinstance(result, tuple) else (result,)

        columns = list(zip(*[one(i) for i in range(count)], strict=True))
        results = [stack([asarray(v) for v in column]) for column in columns]
        results = [reshape(v, (*shape, *type_of(v).shape[1:])) for v in results]
        if self.otypes is not None:
            results = [astype(v, np.dtype(t)) for v, t in zip(results, self.otypes, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def _own_axes(self, count: int) -> list[int]:
        """The number of trailing core axes of each argument."""
        if self.signature is None:
            return [0] * count
        groups = re.findall(r"\(([^()]*)\)", self.signature.partition("->")[0])
        if len(groups) != count:
            raise ValueError(
                f"vectorize: signature {self.signature!r} has {len(groups)} arguments, but {count} were given"
            )
        return [len([name for name in group.split(",") if name.strip()]) for group in groups]


def _rows(x: Any, shape: tuple[int, ...], own: int) -> Any:
    """``x`` broadcast over the calls: one row for each."""
    last = type_of(x).shape[type_of(x).ndim - own :]
    return reshape(broadcast_to(x, (*shape, *last)), (-1, *last)) if last else ravel(broadcast_to(x, shape))


__all__ = ["apply_along_axis", "apply_over_axes", "piecewise", "select", "vectorize"]
