"""Exponential families: entropies derived from the log normalizer."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with density ``exp(t(x) . eta - F(eta) + k(x))``.

    A subclass defines ``_natural_params``, ``eta``; ``_log_normalizer``, ``F``; and ``_mean_carrier_measure``, the mean
    of ``k``. The entropy is a Bregman divergence (F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential
    families", ICIP 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Any:
        found: Any = -self._mean_carrier_measure
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = torch.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        found = found + normalizer
        for parameter, gradient in zip(parameters, gradients):
            found = found - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return found
