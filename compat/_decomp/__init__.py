"""``torch._decomp``: operators written in terms of others, for ``ExportedProgram.run_decompositions`` and ``make_fx``.

Example:
    >>> from compat._decomp import get_decompositions
    >>> from compat.fx.experimental.proxy_tensor import make_fx
    >>> table = get_decompositions([torch.ops.aten.silu])
    >>> print(make_fx(torch.nn.functional.silu, table)(torch.ones(2)).code.strip())
    def forward(self, arg0_1):
        sigmoid = torch.ops.aten.sigmoid.default(arg0_1)
        mul = torch.ops.aten.mul.Tensor(arg0_1, sigmoid);  arg0_1 = sigmoid = None
        return mul
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat._core.tensor.namespace import torch
from compat._decomp._formulas import FORMULAS

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions", "register_decomposition",
    "remove_decompositions",
]  # fmt: skip


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


#: The functions that compute operators with others, by overload.
decomposition_table: dict[Any, Callable[..., Any]] = {_overload(f.name): f.function for f in FORMULAS}
#: The overloads among them that PyTorch does not count as core operators.
_not_core = [_overload(f.name) for f in FORMULAS if not f.core]


def _overloads(operators: Iterable[Any]) -> Iterable[Any]:
    for operator in operators:
        if isinstance(operator, OpOverload):
            yield operator
        else:
            yield from (getattr(operator, name) for name in operator.overloads())


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """The decompositions of operators; those without one are left out.

    Args:
        aten_ops: operators (``torch.ops.aten.gelu``) or overloads (``torch.ops.aten.gelu.default``).
        type: ignored; there is one table.
    """
    return {o: decomposition_table[o] for o in _overloads(aten_ops) if o in decomposition_table}


def core_aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions of the operators that are not core operators, as a new dictionary.

    Example:
        >>> from compat._decomp import core_aten_decompositions
        >>> table = core_aten_decompositions()
        >>> torch.ops.aten.silu.default in table, torch.ops.aten.gelu.default in table
        (True, False)
    """
    return {o: decomposition_table[o] for o in _not_core}


def register_decomposition(
    aten_op: Any, registry: dict[Any, Callable[..., Any]] | None = None, *, type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Decorator that enters a function as the decomposition of operators.

    Args:
        aten_op: an operator, an overload, or a sequence of them.
        registry: the table; by default ``decomposition_table``.
        type, unsafe: ignored.

    Raises:
        RuntimeError: if an overload has one already.
    """
    table = decomposition_table if registry is None else registry

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in _overloads(aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]):
            if overload in table:
                raise RuntimeError(f"duplicate registrations for {overload}")
            table[overload] = function
        return function

    return enter


def remove_decompositions(decompositions: dict[Any, Callable[..., Any]], aten_ops: Sequence[Any]) -> None:
    """Removes the decompositions of operators from a table."""
    for overload in _overloads(aten_ops):
        decompositions.pop(overload, None)
