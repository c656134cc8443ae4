"""Random numbers from explicit keys: the same key gives the same numbers, so split it before every use.

A key is a ``uint32`` array of shape ``(2,)``. There is no hidden state, so everything here works under every transform;
samples are differentiable in their real parameters (of gamma, beta and Dirichlet variables implicitly: along the
derivative a sample's probability to be smaller stays). Source of that: Figurnov, Mohamed, Mnih, "Implicit
reparameterization gradients", NeurIPS 2018.

``key`` is one such key. ``shape`` is that of the sample, by default that of the parameters broadcast together;
``dtype`` is its dtype, float32 or int64 where none is given.

The bits are those of a counter through the Threefry cipher (``funcgrad.primitives.random``), and they are turned into
samples as ``jax.random`` does: the same key gives the numbers that it gives there.

Example:
    >>> from funcgrad import random
    >>> k1, k2 = random.split(random.key(0))
    >>> random.normal(k1, (2, 3)).shape, random.randint(k2, (), 0, 10).dtype
    ((2, 3), dtype('int64'))
"""

from funcgrad.random.basic import *
from funcgrad.random.continuous import *
from funcgrad.random.discrete import *
from funcgrad.random.gammas import *
from funcgrad.random.vectors import *
