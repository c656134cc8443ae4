"""PyTorch's CPU samplers that draw until a number is accepted: Poisson, binomial and gamma; and multinomial.

The former loop over the elements in Python. Sources: W. Hoermann, "The transformed rejection method
for generating Poisson random variables", Insurance Math. Econom. 12 (1993), and "The generation of binomial random
variates", J. Stat. Comput. Simul. 46 (1993); G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
variables", ACM TOMS 26 (2000).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compat._core.random.engine import Engine
from compat._operators.samplers.distributions import exponential, uniform64
from compat._operators.samplers.dtypes import FLOATS, missing, rounded, torch_name

__all__ = ["binomial", "multinomial", "poisson", "standard_gamma"]

#: The number of uniforms that are drawn together.
_BLOCK = 512


class _Draws:
    """Float64 uniforms and normals, one at a time, which are drawn in blocks.

    The exit of the ``with`` statement restores the engine to the state after the numbers that were used.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._block: list[float] = []
        self._used = 0

    def __enter__(self) -> _Draws:
        return self

    def __exit__(self, *_: object) -> None:
        if self._block:
            kept = self._engine.next_double_normal
            self._engine.set_state(self._start)
            self._engine.random64(self._used)
            self._engine.next_double_normal = kept

    def uniform(self) -> float:
        if self._used == len(self._block):
            self._start = self._engine.get_state()
            self._block = uniform64(self._engine, _BLOCK).tolist()
            self._used = 0
        self._used += 1
        return self._block[self._used - 1]

    def normal(self) -> float:
        kept = self._engine.next_double_normal
        if kept is not None:
            self._engine.next_double_normal = None
            return kept
        u, v = self.uniform(), self.uniform()
        radius, angle = math.sqrt(-2.0 * math.log1p(-v)), 2.0 * math.pi * u
        self._engine.next_double_normal = radius * math.sin(angle)
        return radius * math.cos(angle)


def _drawn(engine: Engine, sample: Callable[..., float], *parameters: np.ndarray) -> np.ndarray:
    """``sample(draws, *values)`` for each element of the parameters, in the dtype of the first parameter."""
    dtype = parameters[0].dtype
    grids = np.broadcast_arrays(*parameters)
    with _Draws(engine) as draws:
        values = [sample(draws, *point) for point in zip(*(grid.ravel() for grid in grids), strict=True)]
    return rounded(np.array(values, np.float64), dtype).reshape(grids[0].shape)


# ---- multinomial


def multinomial(engine: Engine, weights: np.ndarray, n_sample: int, replacement: bool = False) -> np.ndarray:
    """Indices drawn by weight, as ``torch.multinomial``: int64, shape ``(n_sample,)`` or ``(rows, n_sample)``.

    ``weights`` are floating-point, non-negative, of one or two dimensions. With replacement, a float64 uniform is
    searched in the cumulative sum for each index. Without, and for one sample, the indices are those of the largest
    quotients of the weights and exponential numbers, which are all drawn first. Of equal quotients, which zero weights
    and 16-bit weights may have, the lower index comes first; in PyTorch it depends on its selection algorithm.

    Raises RuntimeError for invalid weights and counts.

    >>> multinomial(Engine(4), np.array([1.0, 3.0, 0.0]), 6, replacement=True)
    array([1, 1, 0, 1, 1, 1])
    """
    weights = np.ascontiguousarray(weights)
    _check_multinomial(weights, n_sample, replacement)
    shape = (*weights.shape[:-1], n_sample)
    if 0 in shape:
        return np.empty(shape, np.int64)
    rows = weights.reshape(-1, weights.shape[-1])
    if replacement and n_sample > 1:
        return np.stack([_with_replacement(engine, row, n_sample) for row in rows]).reshape(shape)
    smallest = np.minimum.reduce(weights, None)
    if not (smallest >= 0 and np.maximum.reduce(weights, None) < np.inf):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if smallest == 0 and not rows.any(axis=1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    quotients = rows / exponential(engine, rows.shape, weights.dtype)
    if n_sample == 1:
        return quotients.argmax(axis=1).reshape(shape)
    order = np.argsort(-quotients, axis=1, kind="stable")
    return np.ascontiguousarray(order[:, :n_sample]).reshape(shape)


def _with_replacement(engine: Engine, row: np.ndarray, n_sample: int) -> np.ndarray:
    """Indices for one row, with replacement; the sums are float64 or float32, from left to right."""
    row = row.astype(np.float64 if row.dtype == np.float64 else np.float32, copy=False)
    if not (row >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(row).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    sums = np.cumsum(row, dtype=row.dtype)
    if not sums[-1] > 0:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    sums /= sums[-1]
    sums[-1] = 1
    return np.searchsorted(sums.astype(np.float64), uniform64(engine, n_sample)).astype(np.int64)


def _check_multinomial(weights: np.ndarray, n_sample: int, replacement: bool) -> None:
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype not in FLOATS:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {torch_name(weights.dtype)}"
        )
    if n_sample <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and n_sample > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if weights.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


# ---- Poisson


def poisson(engine: Engine, rates: np.ndarray) -> np.ndarray:
    """Poisson counts of the given rates, as ``torch.poisson``, in the rates' floating dtype and shape.

    Raises RuntimeError for a negative rate, NotImplementedError for an integer dtype.

    >>> poisson(Engine(0), np.array([0.5, 3.0, 40.0]))
    array([ 2.,  4., 41.])
    """
    rates = np.asarray(rates)
    if rates.dtype not in FLOATS:
        raise missing("poisson_cpu", rates.dtype)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return _drawn(engine, _poisson, rates)


def _poisson(draws: _Draws, rate: float) -> int:
    rate = float(rate)
    if rate == 0:
        return 0
    if rate >= 10:
        return _poisson_rejection(draws, rate)
    count, product, end = 0, draws.uniform(), math.exp(-rate)
    while product > end:
        count += 1
        product *= draws.uniform()
    return count


def _poisson_rejection(draws: _Draws, rate: float) -> int:
    """Hoermann's algorithm PTRS, for rates of at least ten."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    box = 0.9277 - 3.6224 / (b - 2)
    log_rate = math.log(rate)
    while True:
        u, v = draws.uniform() - 0.5, draws.uniform()
        margin = 0.5 - abs(u)
        count = math.floor((2 * a / margin + b) * u + rate + 0.43) if margin else -1
        if margin >= 0.07 and v <= box:
            return count
        if count < 0 or (margin < 0.013 and v > margin):
            continue
        log_ratio = _log(v) + log_inverse_alpha - math.log(a / (margin * margin) + b)
        if log_ratio <= -rate + count * log_rate - math.lgamma(count + 1):
            return count


def _log(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


# ---- binomial


def binomial(engine: Engine, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Binomial counts, as ``torch.binomial``, in the floating dtype of ``counts`` (float32 or float64).

    >>> binomial(Engine(0), np.array([10.0, 200.0]), np.array([0.5, 0.25]))
    array([ 7., 51.])
    """
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    if counts.dtype not in (np.float32, np.float64):
        raise missing("binomial_cpu", counts.dtype)
    if probabilities.dtype != counts.dtype:
        raise RuntimeError(f"Found dtype {torch_name(probabilities.dtype)} but expected {torch_name(counts.dtype)}")
    return _drawn(engine, _binomial, counts, probabilities)


def _binomial(draws: _Draws, count: np.floating, p: np.floating) -> float:
    """One binomial number; ``count`` and ``p`` keep their dtype, in which PyTorch multiplies them."""
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return float(count)
    if p <= 0.5:
        return _binomial_small(draws, count, p)
    if p > 0.5:
        return float(count) - _binomial_small(draws, count, type(p)(1.0 - float(p)))
    return math.nan


def _binomial_small(draws: _Draws, count: np.floating, p: np.floating) -> float:
    if count * p >= 10:
        return _binomial_rejection(draws, count, p)
    log_failure = float(np.float64(math.log1p(-float(p))).astype(p.dtype))
    total, successes = 0.0, 0.0
    while True:
        total += math.ceil(_log(draws.uniform()) / log_failure)
        if total > count:
            return successes
        successes += 1


def _binomial_rejection(draws: _Draws, count: np.floating, p: np.floating) -> float:
    """Hoermann's algorithm BTRS, for ``count * p`` of at least ten."""
    one = type(p)(1)
    deviation = float(np.sqrt(count * p * (one - p)))
    odds = float(p / (one - p))
    mode = math.floor((count + one) * p)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * float(p)
    centre = float(count * p) + 0.5
    box = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    n = float(count)
    while True:
        u, v = draws.uniform() - 0.5, draws.uniform()
        margin = 0.5 - abs(u)
        k = math.floor((2 * a / margin + b) * u + centre) if margin else -1
        if k < 0 or k > n:
            continue
        if margin >= 0.07 and v <= box:
            return k
        v = _log(v * alpha / (a / (margin * margin) + b))
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        if v <= bound:
            return k


def _stirling_tail(k: float) -> float:
    """The remainder of Stirling's formula for ``log(k!)``; for ``k`` of at least ten its series."""
    if k < 10:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


# ---- gamma


def standard_gamma(engine: Engine, shapes: np.ndarray) -> np.ndarray:
    """Gamma numbers of given shape parameters and rate one, as ``torch._standard_gamma``; float32 or float64.

    >>> standard_gamma(Engine(0), np.array([0.5, 2.0])).shape
    (2,)
    """
    shapes = np.asarray(shapes)
    if shapes.dtype not in (np.float32, np.float64):
        raise missing("gamma_cpu", shapes.dtype)
    return np.maximum(_drawn(engine, _gamma, shapes), np.finfo(shapes.dtype).tiny)


def _gamma(draws: _Draws, shape: np.floating) -> float:
    one, scale = type(shape)(1), 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        scale = math.pow(1 - draws.uniform(), float(one / shape))
        shape = shape + one
    d = float(shape - type(shape)(np.float32(1) / np.float32(3)))  # the third is a float32 number for each dtype
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = draws.normal()
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - draws.uniform()
        square = x * x
        if u < 1.0 - float(np.float32(0.0331)) * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v
