"""Custom functions for random programs, made with either library. See ``programs.py``."""

from __future__ import annotations

from typing import Any


def functions(torch: Any) -> dict[str, Any]:
    """Functions of each kind: saving operands or results, returning views, writing in place, with several results."""
    found = (*_plain(torch), *_marking(torch), *_several(torch), _forward(torch))
    return {function.__name__: function for function in found}


def _forward(torch: Any) -> Any:
    """Forward differentiation of a function that may use other tensors, and write into its results."""
    duals = torch.autograd.forward_ad

    def tangent(f: Any, x: Any, direction: Any) -> Any:
        with duals.dual_level():
            found = duals.unpack_dual(f(duals.make_dual(x, direction)))
            return torch.zeros_like(found.primal.detach()) if found.tangent is None else found.tangent.detach()

    return tangent


def _plain(torch: Any) -> tuple[Any, ...]:
    Function = torch.autograd.Function

    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    class Identity(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    class Slice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[0]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.stack([g, g])

    return Twice, Square, Identity, Slice


def _marking(torch: Any) -> tuple[Any, ...]:
    """Functions that record what they did, or did not do."""
    Function = torch.autograd.Function

    class Grow(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Count(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            count = (x > 0).sum().to(x.dtype)
            ctx.mark_non_differentiable(count)
            return count

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    class Nothing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    class Weighed(Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, _ = ctx.saved_tensors
            return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None

    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x.sin(), x.cos()

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return second if first is None else first

    return Grow, Count, Nothing, Weighed, Once, Both


def _several(torch: Any) -> tuple[Any, ...]:
    """Functions with several arguments or results, or that call others."""
    Function = torch.autograd.Function

    class Swap(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return y, x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return second * 2, first * 3

    class Halves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x[:1], x[1:] * 2

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            (x,) = ctx.saved_tensors
            return torch.cat([first, second * 2]) + x * 0

    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any) -> Any:
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None

    class Grown(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            ctx.mark_dirty(x)
            return x.mul_(y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * y, None

    class Apart(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 4

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return Scaled.apply(g, 2.0) * x.cos()

    return Swap, Halves, Scaled, Grown, Apart, Nested
