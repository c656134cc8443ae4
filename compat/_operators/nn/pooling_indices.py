"""Max pooling with the indices of the maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.tensor import Tensor


def _publish(pool: Callable[..., Any], with_indices: Callable[..., tuple[Tensor, Tensor]]) -> None:
    name = pool.__name__
    with_indices.__doc__ = f"The maxima of windows and their indices: ``{name}`` with ``return_indices``."
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    publish(with_indices, f"F.{name}_with_indices")
    if name == "max_pool1d":
        composite(
            f"{name}_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
            "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
            names=f"torch.{name}_with_indices",
        )(with_indices)


def _publish_max(pool: Callable[..., Any]) -> None:
    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)
        return found

    _publish(pool, with_indices)


def _publish_adaptive(pool: Callable[..., Any]) -> None:
    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = pool(input, output_size, True)
        return found

    _publish(pool, with_indices)


for _n in (1, 2, 3):
    _publish_max(names_of("F")[f"max_pool{_n}d"])
    _publish_adaptive(names_of("F")[f"adaptive_max_pool{_n}d"])


@composite(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    names="torch.adaptive_max_pool1d",
)
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of ``output_size`` windows over the last dimension, and their indices.

    Example:
        >>> torch.adaptive_max_pool1d(torch.arange(4.0).view(1, 4), 2)
        (tensor([[1., 3.]]), tensor([[1, 3]]))
    """
    found: tuple[Tensor, Tensor] = names_of("F")["adaptive_max_pool1d"](input, output_size, True)
    return found
