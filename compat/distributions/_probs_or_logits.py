"""Distributions that take either probabilities or logits."""

from __future__ import annotations

from typing import Any

from compat.distributions.utils import broadcast_all, formula, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits"]


class ProbsOrLogits:
    """One of the attributes ``probs`` and ``logits`` is given, the other is derived.

    Attributes:
        _binary: whether each is the probability of a separate event.
        _given: the name of the given one.
    """

    _binary_ = True
    _given: str

    def _choose_(self, probs: Any, logits: Any) -> Any:
        """The given one.

        Raises:
            ValueError: if both or none is given.
        """
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "probs" if logits is None else "logits"
        return probs if logits is None else logits

    def _take_either_(self, probs: Any, logits: Any) -> Any:
        """Sets the given one as an attribute; returns its size."""
        (value,) = broadcast_all(self._choose_(probs, logits))
        setattr(self, self._given, value)
        return value.shape

    def _take_counted_(self, total_count: Any, probs: Any, logits: Any) -> Any:
        """The same with a count for each."""
        count, value = broadcast_all(total_count, self._choose_(probs, logits))
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
