"""What operations do to tangents beside what their formulas say.

The programs of operations move tangents by themselves. Two things PyTorch adds: the result of an operation with a
formula has a tangent wherever an operand has one, be it zero all over, as that of ``sign``; and an operation that has
no formula forwards complains, though its program could be pushed through.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from compat._core.operators.op_node import Underivable
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from funcgrad.core.dtypes import is_inexact
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import at_axis
from funcgrad.interpreters.forward import Forward, ForwardTracer
from funcgrad.primitives.shape import zeros

#: Operations without formulas forwards that PyTorch knows of, by their kernels' names, and what it calls them.
_UNPUSHED = {
    "_ctc_loss": "_ctc_loss",
    "_unique2": "_unique2",
    "_gamma_drawn": "_standard_gamma",
    "acosh_": "acosh_",
    "asinh_": "asinh_",
    "atanh_": "atanh_",
    "cholesky": "cholesky",
    "cdist": "_cdist_forward",
    "geqrf": "geqrf",
    "igamma": "igamma",
    "igamma_": "igamma_",
    "igammac": "igammac",
    "igammac_": "igammac_",
    "multi_margin_loss": "multi_margin_loss",
    "multilabel_margin_loss": "multilabel_margin_loss_forward",
    "ormqr": "ormqr",
    "index_reduce": "index_reduce",
    "index_reduce_": "index_reduce_",
    "embedding_bag": "_embedding_bag",
    "grid_sampler_2d": "grid_sampler_2d",
    "grid_sampler_3d": "grid_sampler_3d",
    "pdist": "_pdist_forward",
    "special_zeta": "special_zeta",
}

_UNKNOWN = (
    "Trying to use forward AD with {0} that does not support it because it has not been implemented yet.\nPlease file "
    "an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can "
    "prioritize its implementation{1}"
)
_OFFER = " or submit a PR adding the implementation to derivatives.yaml"
_UNDERIVABLE = "Trying to use forward AD with aten::{0} that does not support it."


def _still_batch(size: int, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    return still(at_axis(operands[0], dims[0], 0, size), operands[1]), 0


#: The first value, which has a tangent where the second has one: zero, if it has none of its own.
still: Primitive = Primitive(
    "still",
    infer=lambda x, by: x,
    lower=lambda x, by: x,
    batch=_still_batch,
    jvp=lambda primals, tangents: (
        still(*primals),
        zeros(type_of(primals[0]).strong()) if tangents[0] is None else tangents[0],
    ),
    vjp=lambda primals, needs, params: ([still(*primals)], lambda cotangents: [cotangents[0], None]),
)


class Tangents:
    """What one kernel does to tangents.

    Args:
        name: the kernel's.
        node: the class of its nodes; None for what has no derivative at all, which gives no tangents either.
        constant: numbers of its results without a derivative.
        inplace: whether it writes into an operand.

    Attributes:
        refusal: what is said where an operand has a tangent; None if it has a formula.
    """

    __slots__ = ("moving", "constant", "refusal")

    def __init__(self, name: str, node: type | None, constant: Collection[int], inplace: bool):
        name = f"{name}_" if inplace else name
        self.moving = node is not None
        self.constant = constant
        self.refusal: str | None = None
        if name in _UNPUSHED:
            self.refusal = _UNKNOWN.format(_UNPUSHED[name], "." if inplace else _OFFER)
        elif node is Underivable:
            self.refusal = _UNDERIVABLE.format(name)

    def check(self, operands: Sequence[Any]) -> None:
        """Whether tangents may come in.

        Raises:
            NotImplementedError: if they do, and there is no formula for them.
        """
        if self.refusal is not None and mode.forward and any(map(pushing, operands)):
            raise NotImplementedError(self.refusal)

    def complete(self, operands: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        """The results, with tangents of zero where operands have some and they have none."""
        if not self.moving or not mode.forward:
            return results
        movers = {interpreter: x for x in operands for interpreter in pushing(x)}
        if not movers:
            return results
        return [x if i in self.constant else _complete(x, movers) for i, x in enumerate(results)]


def _complete(x: Any, movers: dict[Forward, Any]) -> Any:
    if not is_inexact(type_of(x).dtype):
        return x
    own = pushing(x)
    for interpreter, by in movers.items():
        if interpreter not in own:
            x = still(x, by)
    return x


def pushing(x: Any) -> list[Forward]:
    """The transforms and forward-mode levels that give a value tangents, innermost first."""
    found: list[Forward] = []
    while isinstance(x, vmap_checks.TRACED):
        if isinstance(x, ForwardTracer):
            assert isinstance(x.interpreter, Forward)
            # After its exit a forward-mode level passes primals on.
            found += [x.interpreter] if getattr(x.interpreter, "open", True) else []
        x = vmap_checks.wrapped(x)
    return found
