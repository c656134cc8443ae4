"""Libraries written to the array API standard work with funcgrad's arrays, outside and inside of traces."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import jax
import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.tolerances import FEW32

# SciPy reads the environment variable once.
SCRIPT = """
import warnings

import numpy as np
import scipy
import scipy.cluster.vq as vq
import scipy.special as special
import scipy.stats as stats

import funcgrad as fg
import funcgrad.numpy as fnp

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x, points = rng.uniform(0.1, 0.9, 6), rng.normal(size=(6, 3))
given = fnp.asarray(x)

plain = {
    "erf": (special.erf, x),
    "kurtosis": (stats.kurtosis, x),
    "vq": (lambda p: vq.vq(p, p[:3])[1], points),
}
for name, (f, value) in plain.items():
    found = f(fnp.asarray(value))
    assert hasattr(found, "sharding"), name
    np.testing.assert_allclose(found, f(value), rtol=1e-9, err_msg=name)

# From 1.18 on the functions of statistics ask in Python whether there are NaNs, unless the arrays are JAX's.
looks_for_nans = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18)
traced = {
    "betainc": lambda x: special.betainc(x + 1, x + 2, x),
    "logsumexp": special.logsumexp,  # these three write to copies of what they made
    "pearsonr": lambda x: stats.pearsonr(x, x**2).statistic,
    "skew": stats.skew,
    "variation": stats.variation,
    "zscore": stats.zscore,
}
# Differences of fourth order: off by the fifth derivative, some 1e3 here, times step**4 / 30, which is 3e-14 of it, and
# by the rounding of a sum of some ten, 1e-15, over the step.
step = 1e-3 * np.cos(np.arange(6))
for name, f in traced.items():
    total = lambda x: np.sum(f(x))
    near, far = (total(x + k * step) - total(x - k * step) for k in (1, 2))
    found = fg.grad(lambda x: fnp.sum(f(x)))(given) @ step
    np.testing.assert_allclose(found, (8 * near - far) / 12, rtol=1e-9, atol=1e-13, err_msg=name)
    if name in ("betainc", "logsumexp") or not looks_for_nans:
        np.testing.assert_allclose(fg.jit(f)(given), f(x), rtol=1e-9, err_msg=name)

# Writing to an immutable array raises.
try:
    stats.false_discovery_control(given)
except TypeError as error:
    assert "inplace=False" in str(error)
else:
    raise AssertionError("the array was not changed, and nobody was told")
"""


def test_scipy_with_namespaces() -> None:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", SCRIPT]
    ran = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


def test_arrays_report_that_they_are_not_writeable() -> None:
    def is_writeable_array(x: Any) -> bool:
        """The methods that libraries look for, by this name, in arrays of unknown types."""
        return hasattr(x, "__array_namespace__")

    def seen(x: Any) -> Any:
        assert x.__array_namespace__() is fnp and hasattr(x, "__array_namespace__")
        assert not is_writeable_array(x)
        copy = fnp.asarray(x, copy=True)
        assert is_writeable_array(copy) and copy.__array_namespace__() is fnp
        copy[0] = 5.0
        return fnp.sum(x * copy)

    x = fnp.asarray([1.0, 2.0])
    np.testing.assert_array_equal(fg.grad(seen)(x), [5.0, 4.0])
    np.testing.assert_array_equal(fg.jit(seen)(x), 9.0)


def test_capabilities_of_data_dependent_shapes() -> None:
    def told() -> tuple[bool, bool]:
        capabilities = fnp.__array_namespace_info__().capabilities()
        return capabilities["boolean indexing"], capabilities["data-dependent shapes"]

    seen = []
    fg.grad(lambda x: (seen.append(told()), x)[1])(1.0)
    fg.jit(lambda x: (seen.append(told()), x)[1])(1.0)
    assert seen == [(False, False)] * 2
    assert told() == (True, True)


def test_plain_arrays_are_updated_with_traced_values() -> None:
    x = fnp.zeros(3)
    assert x.at[1].set(2.0).tolist() == [0, 2, 0]
    assert x.at[5].add(1.0, mode="drop").tolist() == [0, 0, 0]
    assert x.at[0].get() == 0
    assert fg.grad(lambda v: fnp.sum(x.at[1].set(v) ** 2))(3.0) == 6
    assert fg.grad(lambda v: fnp.sum(x.at[1:].add(v) ** 2))(3.0) == 12
    assert fg.jit(lambda i, v: x.at[i].set(v))(2, 4.0).tolist() == [0, 0, 4]


def test_new_arrays_under_jit_are_traced_by_us() -> None:
    kinds: list[Any] = []

    def f(x: Any) -> Any:
        made = [fnp.asarray(0.5), fnp.asarray([1, 2]), fnp.asarray(np.ones(2), copy=True), fnp.array([3, 4])]
        kinds.extend(v.__array_namespace__() for v in made)
        # Division of integers gives float32 here, and float64 in JAX.
        return made[1] / made[3] + x

    result = fg.jit(f)(np.float32(1))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [4 / 3, 1.5], rtol=FEW32)
    assert all(kind is fnp for kind in kinds)
    assert fg.grad(fg.jit(lambda x: fnp.sum(fnp.asarray([1.0, 2.0]) * x)))(2.0) == 3
    assert jax.jit(lambda y: fnp.asarray(y) * fnp.asarray(2.0))(3.0) == 6
