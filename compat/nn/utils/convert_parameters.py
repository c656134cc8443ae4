"""Conversion of parameters to and from one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """The elements of all parameters in one vector.

    Example:
        >>> parameters_to_vector(torch.nn.Linear(3, 2).parameters()).shape
        torch.Size([8])
    """
    return names_of("torch")["cat"]([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Makes the parameters views of consecutive parts of a vector.

    Raises:
        TypeError: if ``vec`` is not a tensor.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> torch.nn.utils.vector_to_parameters(torch.arange(3.0), layer.parameters())
        >>> layer.weight.detach(), layer.bias.detach()
        (tensor([[0., 1.]]), tensor([2.]))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(
            f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__name__}".replace("builtins.", "")
        )
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
