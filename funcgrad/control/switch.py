"""``switch``: one of many functions, chosen by an array; a tree of ``cond``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.control.cond import branch_programs, cond_programs
from funcgrad.core import dtypes, trees
from funcgrad.core.ir import Program
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import lt, number

Branch = Callable[..., Any]


def switch(index: Any, branches: Sequence[Branch], *operands: Any) -> Any:
    """Calls the branch with that index on the operands.

    All are traced, one runs; all run under ``vmap`` of the index. They may close over arrays and tracers.

    Args:
        index: a scalar integer, not a bool; clamped to the range of branches.
        branches: take the operands and return pytrees of one structure, of the same shapes and dtypes.
        operands: pytrees of arrays.

    Returns:
        The chosen function's result, a pytree of arrays.

    Raises:
        TypeError: if the index is not an integer, an operand or a result is not an array, or the results differ in
            structure, shapes or dtypes.
        ValueError: if ``branches`` is empty.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = lambda i, x: fg.switch(i, [fnp.sin, fnp.cos, lambda x: x * x], x)
        >>> print(f(1, 0.0), fg.grad(f, argnums=1)(2, 3.0), fg.vmap(f, (0, None))(fnp.array([0, 2]), 2.0))
        1.0 6.0 [0.9092974 4. ]
    """
    index = trees.array_of(index)
    if not is_array(index) or type_of(index).shape or not dtypes.is_integer(type_of(index).dtype):
        raise TypeError(f"switch: the index must be one integer, got {index!r}")
    branches = validate.sequence("switch", "branches", branches)
    if not branches:
        raise ValueError("switch: there are no branches to choose from")
    labelled = {f"branches[{i}]": branch for i, branch in enumerate(branches)}
    programs, leaves, tree = branch_programs("switch", labelled, operands)
    return trees.unflatten(tree, _between(typed(index), 0, programs, leaves))


def _between(index: Any, first: int, programs: Sequence[Program], operands: Sequence[Any]) -> list[Any]:
    """The choice among programs whose first index is ``first``."""
    if len(programs) == 1:
        return evaluate(programs[0], operands)
    half = len(programs) // 2

    def part(start: int, end: int) -> Program:
        if end - start == 1:
            return programs[start]
        types = [type_of(x) for x in operands]
        return stage(lambda *xs: _between(index, first + start, programs[start:end], xs), types, name="switch")

    return cond_programs(lt(index, number(first + half, index)), (part(0, half), part(half, len(programs))), operands)
