"""``torch.utils.flop_counter``: counts the floating-point operations of matrix products and convolutions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import Any

from compat._core.dispatch.overloads import OpOverloadPacket, aten
from compat._core.tensor.tensor import Tensor
from compat.utils._python_dispatch import TorchDispatchMode
from compat.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

#: The flops of an operation, from its arguments and its result.
flop_registry: dict[Any, Callable[..., int]] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator that registers the flop formula of an operation.

    Args:
        targets: an operation of ``torch.ops``, or several.
        get_raw: whether the function takes tensors, rather than their shapes.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def _shape(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.shape
    return type(x)(map(_shape, x)) if type(x) in (tuple, list) else x


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    def raw(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return formula(*map(_shape, args), out_shape=_shape(out_val), **{k: _shape(v) for k, v in kwargs.items()})

    return raw


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The flops of a product of two matrices."""
    return int(2 * prod(a_shape) * b_shape[-1])


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The flops of a product of two matrices, without the addition."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The flops of products of pairs of matrices."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The flops of products of pairs of matrices, without the addition."""
    return mm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """The flops of a convolution: each position of the smaller tensor is multiplied with each weight of its group."""
    places = (x_shape if transposed else out_shape)[2:]
    return int(2 * x_shape[0] * prod(places) * prod(w_shape))


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Any, w_shape: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """The flops of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _gradients(out: Any, like: Tensor) -> list[Tensor]:
    """The requested gradients of the two factors, without that of the addend, which comes first."""
    found = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]
    return [t for t in found if t.dim() == like.dim()][-2:]


@register_flop_formula(aten.packet("convolution_backward"), get_raw=True)
def conv_backward_flop(grad: Tensor, x: Any, w: Any, *args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """The flops of the requested gradients of a convolution, each with as many as the convolution."""
    return len(_gradients(out_val, grad)) * conv_flop_count(x.shape, w.shape, grad.shape)


def product_backward_flop(grad: Tensor, *args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """The flops of the gradients of matrix products: products of the incoming gradient with the other operand."""
    made = _gradients(out_val, grad)
    of_first = [t.shape[-2] == grad.shape[-2] for t in made] if len(made) == 1 else [True, False]
    return sum(2 * t.numel() * int(grad.shape[-1 if first else -2]) for t, first in zip(made, of_first))


#: The backward of a product is one operation, which is counted as the products that it computes.
_MADE_OF = {
    aten.packet(f"{name}_backward"): made_of
    for name, made_of in (("mm", aten.mm), ("addmm", aten.mm), ("bmm", aten.bmm), ("baddbmm", aten.bmm))
}
register_flop_formula([*_MADE_OF], get_raw=True)(product_backward_flop)


class FlopCounterMode(TorchDispatchMode):
    """Counts the flops of matrix products and convolutions in a ``with`` block, by module.

    Args:
        mods: ignored; all called modules are counted.
        depth: the number of levels of modules in the table.
        display: whether the table is printed at the end of the block.
        custom_mapping: flop formulas of other operations, of the shapes of their arguments and of ``out_shape``.

    Example:
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ):  # fmt: skip
        super().__init__()
        self.depth = depth
        self.display = display
        own = {f: _of_shapes(formula) for f, formula in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **own}
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._modules = ModuleTracker()

    def get_total_flops(self) -> int:
        """The total flops."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The flops of each operation, for each module by its dotted name, and ``"Global"`` for all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table: a line for each module, followed by its operations."""
        depth = self.depth if depth is None else depth
        total = max(1, self.get_total_flops())
        names = [n for n in sorted(self.flop_counts) if n != "Global" and n.count(".") < depth] or ["Global"]
        rows = []
        for name in names:
            counts = self.flop_counts[name]
            rows.append((name, sum(counts.values())))
            rows += [(f"- {operation}", count) for operation, count in counts.items()]
        width = max([len("Module"), *(len(name) for name, _ in rows)])
        lines = [f"{'Module':<{width}}  {'FLOP':>9}  % Total", f"{'-' * width}  {'-' * 9}  -------"]
        return "\n".join(lines + [f"{name:<{width}}  {_short(n):>9}  {n / total:7.2%}" for name, n in rows])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> Any:
        left = super().__exit__(*args)
        self._modules.__exit__()
        if self.display:
            print(self.get_table(self.depth))
        return left

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet: OpOverloadPacket = func.overloadpacket
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for name in self._modules.parents:
                self.flop_counts[name][_MADE_OF.get(packet, packet)] += count
        return out


def _short(count: int) -> str:
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= size:
            return f"{count / size:.3f}{unit}"
    return str(count)
