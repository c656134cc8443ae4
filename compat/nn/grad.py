"""``torch.nn.grad``: gradients of convolutions with respect to their input and their weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad
from compat._operators.create.factories import zeros
from compat.autograd import grad
from compat.nn import functional as F

__all__ = [f"conv{n}d_{what}" for n in (1, 2, 3) for what in ("input", "weight")]

_DOC = """The gradient of a loss with respect to the {what} of ``conv{n}d``.

    Args:
        {first}: {first_is}.
        {second}: {second_is}.
        grad_output: the gradient with respect to the convolution's result.
        stride, padding, dilation, groups: those of the convolution.

    Returns:
        A tensor of the size of the {what}.

    Raises:
        RuntimeError: if the size of ``grad_output`` is not that of the convolution's result.

    Example:
        >>> x, w = torch.ones({x}), torch.ones({w}, requires_grad=True)
        >>> loss = torch.nn.functional.conv{n}d(x, w).sum()
        >>> torch.equal(conv{n}d_weight(x, w.shape, torch.ones({out})), torch.autograd.grad(loss, w)[0])
        True
    """


def _vjp(conv: Callable[[Tensor], Tensor], size: Sequence[int], grad_output: Tensor, others: Sequence[Any]) -> Any:
    """The vector-Jacobian product of a linear function of a tensor of a given size, evaluated at zero."""
    with enable_grad():
        at: Any = zeros(tuple(size), dtype=grad_output.dtype, requires_grad=True)
        (found,) = grad(conv(at), at, grad_output, create_graph=True)
    return found if any(t.requires_grad for t in others) else found.detach()


def _declare(n: int) -> None:
    conv = getattr(F, f"conv{n}d")

    def by_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        run = lambda x: conv(x, weight, None, stride, padding, dilation, groups)
        return _vjp(run, input_size, grad_output, (weight, grad_output))

    def by_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        run = lambda w: conv(input, w, None, stride, padding, dilation, groups)
        return _vjp(run, weight_size, grad_output, (input, grad_output))

    sizes = {name: ", ".join(("1", "1", *(side * n))) for name, side in (("x", "4"), ("w", "3"), ("out", "2"))}
    for function, what, rows in (
        (by_input, "input", ("input_size", "its size", "weight", "the convolution's")),
        (by_weight, "weight", ("input", "the convolution's", "weight_size", "its size")),
    ):
        first, first_is, second, second_is = rows
        function.__doc__ = _DOC.format(
            what=what, n=n, first=first, first_is=first_is, second=second, second_is=second_is, **sizes
        )
        function.__name__ = function.__qualname__ = f"conv{n}d_{what}"
        globals()[function.__name__] = function


for _n in (1, 2, 3):
    _declare(_n)
