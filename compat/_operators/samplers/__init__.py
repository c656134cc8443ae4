"""PyTorch's CPU random numbers, equal in all bits, in NumPy.

An :class:`Engine` is a ``torch.Generator()``: it has the same words for a seed, and the same bytes as its state. A
sampler takes an engine, a size and a dtype and returns a NumPy array; the same sequence of samplers gives the numbers
of PyTorch 2.13:

>>> from compat._operators.samplers import Engine, normal, permutation, uniform
>>> engine = Engine(0)                    # torch.manual_seed(0)
>>> uniform(engine, 3)                    # torch.rand(3)
array([0.4962566 , 0.7682218 , 0.08847743], dtype=float32)
>>> permutation(engine, 5)                # torch.randperm(5)
array([0, 4, 2, 1, 3])

The reference is PyTorch for x86-64 on a CPU with AVX2 and fused multiply-add (AVX-512 gives the same numbers), and the
C library that both programs call for float64 ``log``, ``log1p``, ``exp``, ``sin``, ``cos`` and ``tan``. Integers,
permutations, uniform numbers, Bernoulli variables and sixteen or more float32 normals do not need the C library. Two
cases may differ: the order of equal quotients in ``multinomial`` (of 16-bit weights, or weights of zero), and numbers
exactly at the threshold of the acceptance tests of ``poisson``, ``binomial`` and ``truncated_normal``.

Order
-----
PyTorch fills memory in order: a dense tensor with permuted dimensions (transposed, channels-last) gets the numbers in
the order of its memory, and a strided view in the order of decreasing strides. ``torch.bernoulli`` has a contiguous
result. Only ``normal_`` computes other numbers for a tensor that is not contiguous (``contiguous=False``).

Words per number
----------------
====================================================  =======================================================
``rand``, ``uniform_``                                1; float64: 2; complex: those of two numbers
``randn``, ``normal_``, 16 or more, contiguous        1 (float64: 2), and for a size that is not a multiple of 16
                                                      the words of 16 more; 16-bit floats: 16 for each row of 16
``normal_``, fewer than 16 or not contiguous          4 for a pair; the generator keeps the second number of a pair
``log_normal_``                                       4 for a pair
``exponential_``, ``cauchy_``, ``geometric_``         2
``bernoulli_(number)``, dropout                       2
``bernoulli(tensor)``                                 1; float64 probabilities: 2
``random_()``                                         1; int64 and float64: 2
``random_(low, high)``, ``randint``                   1 for a range below 2**28, else 2
``randperm(n)``                                       ``n - 1`` in total; for n of at least 214748364, ``2 * n``
``multinomial``                                       2 for a category; with replacement and several samples, 2 for
                                                      a sample
====================================================  =======================================================

Numbers of layers and functions
-------------------------------
*Layers* draw their parameters in this order, by default by ``uniform_(-bound, bound)``; norms and ``PReLU`` draw none.

- ``Linear``, ``Conv*``: the weight by ``kaiming_uniform_(a=sqrt(5))``, whose bound is
  ``sqrt(3) * (sqrt(2 / (1 + a**2)) / sqrt(fan_in))`` in Python floats (approximately ``1 / sqrt(fan_in)``); then the
  bias, with the bound ``1 / sqrt(fan_in)``. ``fan_in`` is ``weight[0].numel()``, also for transposed convolutions.
- ``Bilinear``: weight and bias, with the bound ``1 / sqrt(in1_features)``.
- ``RNN``, ``LSTM``, ``GRU``: all parameters in the order of ``parameters()``, with the bound ``1 / sqrt(hidden_size)``.
- ``Embedding``: ``normal_()``; the padding row is drawn and then set to zero.
- ``MultiheadAttention``: first ``out_proj`` as a ``Linear`` (its bias is drawn and then set to zero), then
  ``in_proj_weight`` (or the q, k and v weights) by ``xavier_uniform_``. ``TransformerEncoderLayer``: attention,
  ``linear1``, ``linear2``.

*Dropout* in training with ``0 < p < 1`` draws ``bernoulli(1 - p)`` for each element, in the memory order of the input;
the mask is divided by ``1 - p`` in the dtype of the input and multiplied with it. For ``p`` of 0 or 1, in evaluation
mode, and for an empty input it draws none. ``Dropout1d/2d/3d`` and ``FeatureAlphaDropout`` draw one number for each of
``N * C``, ``AlphaDropout`` one for each element, recurrent layers between layers, and ``scaled_dot_product_attention``
for the attention weights.

*Other functions.* ``rrelu`` in training: for each element that is not positive, in logical order, a float64 uniform
times ``upper - lower`` plus ``lower`` (bounds in the precision of the dtype, without fused multiply-add), rounded to
the dtype. ``gumbel_softmax``: ``exponential_()``. ``fractional_max_pool2d``: ``rand(N, C, 2)``. ``torch.normal`` with
tensors: ``normal_(0, 1)`` times ``std`` plus ``mean``; with a number for ``std``: ``normal_(0, std)`` plus ``mean``.
``init.trunc_normal_``: :func:`truncated_normal`. ``init.orthogonal_``: ``normal_()`` of (rows, columns).
``init.sparse_``: ``normal_``, then ``randperm(rows)`` for each column, always from the default generator.

*Data.* ``iter(DataLoader)`` draws :func:`base_seed` (two words), with or without shuffling, from its ``generator`` or
the default one; the seed of worker ``i`` is that number plus ``i``. The sampler draws when the first batch is
requested: without a ``generator``, two words for the seed of a new engine, from which it draws the permutation; with
one, ``randperm(n)`` from that generator, and another ``randperm(n)`` when it is exhausted, which is at the end of the
loop, or with the last batch if that is incomplete. The constructor of ``DataLoader`` draws nothing.
:func:`sampler_permutation` does this for one epoch; :func:`random_indices` is ``RandomSampler`` with its options.
``random_split``: ``randperm`` of the sum of the lengths. ``SubsetRandomSampler``: ``randperm``.
``WeightedRandomSampler``: ``multinomial`` of the float64 weights.
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
