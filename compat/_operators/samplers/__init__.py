"""PyTorch's CPU random numbers, bit for bit, in NumPy.

An :class:`Engine` is a ``torch.Generator()``: the same words for a seed, the same bytes for a state. The samplers take
an engine, a size and a dtype and return a NumPy array; a seeded sequence of them gives PyTorch 2.13's numbers:

>>> from compat._operators.samplers import Engine, normal, permutation, uniform
>>> engine = Engine(0)                    # torch.manual_seed(0)
>>> uniform(engine, 3)                    # torch.rand(3)
array([0.4962566 , 0.7682218 , 0.08847743], dtype=float32)
>>> permutation(engine, 5)                # torch.randperm(5)
array([0, 4, 2, 1, 3])

The reference is the x86-64 builds of PyTorch on a CPU with AVX2 and fused multiply-add (any since 2013 or so;
AVX-512 changes nothing), and the C library that both programs call for float64 ``log``, ``log1p``, ``exp``, ``sin``,
``cos`` and ``tan``. Integers, permutations, uniform numbers, coin tosses and sixteen or more float32 normals need no C
library. Not certain in the last bit: which of two equal quotients ``multinomial`` takes first (16-bit weights, or
weights of zero), and the acceptance tests of ``poisson``, ``binomial`` and ``truncated_normal``, should they fall on
the threshold.

Order
-----
PyTorch fills memory in order, so a tensor that is dense but permuted (transposed, channels-last) receives the draws in
the order of its memory, and a strided view in the order of decreasing strides. ``torch.bernoulli`` makes a contiguous
result. ``normal_`` alone also changes its numbers for a tensor that is not contiguous (``contiguous=False``).

Words per number
----------------
====================================================  =======================================================
``rand``, ``uniform_``                                1; float64: 2; complex: those of two numbers
``randn``, ``normal_``, 16 or more, contiguous        1 (float64: 2), and for a size that is no multiple of 16
                                                      the words of 16 more; 16-bit floats: 16 a started row of 16
``normal_``, fewer than 16 or not contiguous          4 a pair; half a pair waits in the generator
``log_normal_``                                       the same, whatever the size
``exponential_``, ``cauchy_``, ``geometric_``         2
``bernoulli_(number)``, dropout                       2
``bernoulli(tensor)``                                 1; float64 probabilities: 2
``random_()``                                         1; int64 and float64: 2
``random_(low, high)``, ``randint``                   1 for a range below 2**28, else 2
``randperm(n)``                                       ``n - 1`` in all; from n = 214748364 on, ``2 * n``
``multinomial``                                       2 a category; with replacement and several samples, 2 a sample
====================================================  =======================================================

Draws of layers and functions
-----------------------------
*Layers*, in this order, each by ``uniform_(-bound, bound)`` by default; norms and ``PReLU`` draw nothing.

- ``Linear``, ``Conv*``: the weight by ``kaiming_uniform_(a=sqrt(5))``, whose bound is
  ``sqrt(3) * (sqrt(2 / (1 + a**2)) / sqrt(fan_in))`` in Python floats (close to, not exactly, ``1 / sqrt(fan_in)``);
  then the bias, bound ``1 / sqrt(fan_in)``. ``fan_in`` is ``weight[0].numel()``, for transposed convolutions too.
- ``Bilinear``: weight, bias, bound ``1 / sqrt(in1_features)``.
- ``RNN``, ``LSTM``, ``GRU``: every parameter in the order of ``parameters()``, bound ``1 / sqrt(hidden_size)``.
- ``Embedding``: ``normal_()``; the padding row is drawn and then zeroed.
- ``MultiheadAttention``: first ``out_proj`` as a ``Linear`` (its bias is drawn, then zeroed), then ``in_proj_weight``
  (or the q, k and v weights) by ``xavier_uniform_``. ``TransformerEncoderLayer``: attention, ``linear1``, ``linear2``.

*Dropout* in training with ``0 < p < 1``: one toss of ``bernoulli(1 - p)`` an element, in the order of the input's
memory; the tosses are divided by ``1 - p`` in the input's dtype and multiplied with it. With ``p`` 0 or 1, in
evaluation, or with no element, nothing is drawn. ``Dropout1d/2d/3d`` and ``FeatureAlphaDropout`` toss once for each of
``N * C``, ``AlphaDropout`` once an element; recurrent layers toss between layers; ``scaled_dot_product_attention``
tosses for the attention weights.

*Others.* ``rrelu`` in training: for each element that is not positive, in logical order, a float64 uniform times
``upper - lower`` plus ``lower`` (bounds at the dtype's precision, no fused rounding), rounded to the dtype.
``gumbel_softmax``: ``exponential_()``. ``fractional_max_pool2d``: ``rand(N, C, 2)``. ``torch.normal`` with tensors:
``normal_(0, 1)`` times ``std`` plus ``mean``; with a number for ``std``: ``normal_(0, std)`` plus ``mean``.
``init.trunc_normal_``: :func:`truncated_normal`. ``init.orthogonal_``: ``normal_()`` of (rows, columns).
``init.sparse_``: ``normal_``, then ``randperm(rows)`` for each column, from the default generator always.

*Data.* ``iter(DataLoader)`` draws :func:`base_seed` (two words) at once, shuffling or not, from its ``generator`` or
the default one; worker ``i`` is seeded with that plus ``i``. The sampler draws when the first batch is requested:
without a ``generator``, two words for the seed of a new engine, which alone is used for the permutation; with one,
``randperm(n)`` from it, and ``randperm(n)`` once more when it runs dry, which is at the end of the loop, or while the
last batch is made if that one is short. Making the ``DataLoader`` draws nothing. :func:`sampler_permutation` does all
this for one epoch, :func:`random_indices` is ``RandomSampler`` with its options. ``random_split``: ``randperm`` of all
lengths together. ``SubsetRandomSampler``: ``randperm``. ``WeightedRandomSampler``: ``multinomial`` of the float64
weights.
"""

from compat._operators.samplers.discrete import binomial, multinomial, poisson, standard_gamma
from compat._operators.samplers.distributions import (
    bernoulli,
    cauchy,
    exponential,
    geometric,
    log_normal,
    normal,
    uniform,
)
from compat._core.random.engine import DEFAULT_SEED, STATE_SIZE, Engine
from compat._operators.samplers.integers import permutation, random
from compat._operators.samplers.python_samplers import base_seed, random_indices, sampler_permutation, truncated_normal

__all__ = [
    "DEFAULT_SEED",
    "STATE_SIZE",
    "Engine",
    "base_seed",
    "bernoulli",
    "binomial",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "random",
    "random_indices",
    "sampler_permutation",
    "standard_gamma",
    "truncated_normal",
    "uniform",
]
