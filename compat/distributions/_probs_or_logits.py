"""Distributions that take either probabilities or logits."""

from __future__ import annotations

from typing import Any

from compat.distributions.utils import broadcast_all, formula, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits"]


class ProbsOrLogits:
    """The attributes ``probs`` and ``logits``, of which one is given and the other is computed.

    Attributes:
        _binary_: whether each is the probability of a separate event.
        _given: the name of the given attribute.
    """

    _binary_ = True
    _given: str

    def _given_param_(self, probs: Any, logits: Any) -> Any:
        """The argument that is not None.

        Raises:
            ValueError: if both or none are given.
        """
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "probs" if logits is None else "logits"
        return probs if logits is None else logits

    def _set_param_(self, probs: Any, logits: Any) -> Any:
        """Sets the given argument as an attribute; returns its size."""
        (value,) = broadcast_all(self._given_param_(probs, logits))
        setattr(self, self._given, value)
        return value.shape

    def _set_count_and_param_(self, total_count: Any, probs: Any, logits: Any) -> Any:
        """Sets the given argument and ``total_count``, broadcast, as attributes; returns their size."""
        count, value = broadcast_all(total_count, self._given_param_(probs, logits))
        self.total_count = count.type_as(value)
        setattr(self, self._given, value)
        return value.shape

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=self._binary_)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=self._binary_)

    _param = formula(lambda self: getattr(self, self._given))

    @property
    def param_shape(self) -> Any:
        """The size of ``probs`` and ``logits``."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)
