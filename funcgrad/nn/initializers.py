"""Initializers: each returns a function of a key, a shape and a dtype.

The variance is chosen so that a layer's inputs and outputs have about the same variance. A weight's last two axes are
inputs and outputs, and the axes before them positions, which multiply both fans.

Sources: Y. LeCun et al., "Efficient BackProp" (1998); X. Glorot, Y. Bengio, "Understanding the difficulty of training
deep feedforward neural networks" (2010); K. He et al., "Delving deep into rectifiers" (2015); A. Saxe et al., "Exact
solutions to the nonlinear dynamics of learning in deep linear neural networks" (2014).

Example:
    >>> import funcgrad as fg
    >>> fg.initializers.he_normal()(fg.random.key(0), (784, 512)).shape
    (784, 512)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation import arrays as creation
from funcgrad.numpy.padding import pad
from funcgrad.numpy.shape import matrix_transpose, moveaxis, reshape

__all__ = [
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Initializer = Callable[..., Any]
Axes = int | Sequence[int]

#: The standard deviation of a normal variable truncated at two standard deviations.
_CUT = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))


def zeros(key: Any, shape: Sequence[int], dtype: Any = np.float32) -> Any:
    """Zeros; the key is ignored.

    Args:
        key: anything.
        shape: a sequence of ints.
        dtype: any.

    Returns:
        An array of ``shape`` and ``dtype``.

    Raises:
        TypeError: for a shape that is not a sequence, or an invalid dtype.
        ValueError: for a negative size.

    Example:
        >>> print(zeros(None, (2,)))
        [0. 0.]
    """
    return creation.zeros(validate.shape("zeros", "shape", shape), dtype)


def ones(key: Any, shape: Sequence[int], dtype: Any = np.float32) -> Any:
    """Ones; the key is ignored.

    Args:
        key: anything.
        shape: a sequence of ints.
        dtype: any.

    Returns:
        An array of ``shape`` and ``dtype``.

    Raises:
        TypeError: for a shape that is not a sequence, or an invalid dtype.
        ValueError: for a negative size.

    Example:
        >>> print(ones(None, (2,)))
        [1. 1.]
    """
    return creation.ones(validate.shape("ones", "shape", shape), dtype)


def constant(value: Any, dtype: Any = np.float32) -> Initializer:
    """An array filled with ``value``, broadcast to the shape.

    Args:
        value: a number, or an array that broadcasts to the shape.
        dtype: any; by default.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for a value that is not an array.
        ValueError: when called, for a value that does not broadcast to the shape, or a negative size.

    Example:
        >>> print(constant(3.0)(None, (2,)))
        [3. 3.]
    """
    return lambda key, shape, dtype=dtype: creation.full(validate.shape("constant", "shape", shape), value, dtype=dtype)


def uniform(scale: float = 1e-2, dtype: Any = np.float32) -> Initializer:
    """Uniformly distributed between 0 and ``scale``.

    Args:
        scale: a positive number.
        dtype: the default dtype, floating-point.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or a dtype that is not floating.
        ValueError: when called, for a negative size.

    Example:
        >>> bool((uniform(0.5)(random.key(0), (9,)) < 0.5).all())
        True
    """
    return lambda key, shape, dtype=dtype: random.uniform(key, shape, dtype, 0.0, scale)


def normal(stddev: float = 1e-2, dtype: Any = np.float32) -> Initializer:
    """Normally distributed around 0.

    Args:
        stddev: the standard deviation, a number.
        dtype: floating or complex; by default.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or a dtype that is not floating or complex.
        ValueError: when called, for a negative size.

    Example:
        >>> normal()(random.key(0), (9,)).shape
        (9,)
    """
    return lambda key, shape, dtype=dtype: e.multiply(random.normal(key, shape, dtype), stddev)


def truncated_normal(
    stddev: float = 1e-2, dtype: Any = np.float32, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Normally distributed around 0, truncated.

    Args:
        stddev: the standard deviation before truncation.
        dtype: the default dtype, floating-point.
        lower, upper: the bounds in standard deviations.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or a dtype that is not floating.
        ValueError: when called, for a negative size.

    Example:
        >>> bool((abs(truncated_normal(1.0)(random.key(0), (99,))) <= 2).all())
        True
    """
    return lambda key, shape, dtype=dtype: e.multiply(random.truncated_normal(key, lower, upper, shape, dtype), stddev)


def _weight(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = validate.shape(name, "shape", shape)
    if len(sizes) < 2:
        raise ValueError(f"{name}: a weight has at least two axes, got shape {sizes}")
    return sizes


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """The fan-in and the fan-out: inputs of each output, and outputs of each input."""
    named = {"in_axis": in_axis, "out_axis": out_axis, "batch_axis": batch_axis}
    sides = [
        validate.axes("variance_scaling", validate.integers("variance_scaling", n, axes), len(shape), n)
        for n, axes in named.items()
    ]
    ins, outs, batch = (math.prod(shape[a] for a in side) for side in sides)
    field = math.prod(shape) / max(ins * outs * batch, 1)
    return ins * field, outs * field


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = np.float32,
) -> Initializer:
    """Random values with variance ``scale / n``.

    Args:
        scale: see above; positive.
        mode: selects ``n``: ``"fan_in"``, the number of inputs; ``"fan_out"``, that of outputs; ``"fan_avg"``, their
            mean.
        distribution: ``"normal"``, ``"uniform"``, or ``"truncated_normal"``, truncated at two standard deviations.
        in_axis, out_axis: the axes of inputs and of outputs, each an int or several.
        batch_axis: axes of independent weights.
        dtype: floating, for ``"normal"`` complex too; by default.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or another dtype.
        ValueError: for another mode or distribution; when called, for a shape of one axis or a negative size, and for
            axes out of range.

    Example:
        >>> w = variance_scaling(1.0, "fan_in", "normal")(random.key(0), (400, 100))
        >>> print(round(float(w.std() * 20), 1))
        1.0
    """
    validate.one_of("variance_scaling", "mode", mode, ("fan_in", "fan_out", "fan_avg"))
    validate.one_of("variance_scaling", "distribution", distribution, ("normal", "uniform", "truncated_normal"))
    scale = validate.number("variance_scaling", "scale", scale)

    def draw(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        shape = _weight("variance_scaling", shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        deviation = math.sqrt(scale / max(n, 1.0))
        if distribution == "normal":
            return e.multiply(random.normal(key, shape, dtype), deviation)
        if distribution == "uniform":
            return e.multiply(random.uniform(key, shape, dtype, -1.0), math.sqrt(3) * deviation)
        return e.multiply(random.truncated_normal(key, -2, 2, shape, dtype), deviation / _CUT)

    return draw


def _named(name: str, scale: float, mode: str, distribution: str, of: str) -> Callable[..., Initializer]:
    def initializer(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = np.float32
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    initializer.__name__ = initializer.__qualname__ = name
    words = distribution.replace("_", " ")
    initializer.__doc__ = f"""{of}: ``variance_scaling`` by {scale} and ``"{mode}"``, from a {words} distribution.

    Args:
        in_axis, out_axis: the axes of the inputs and the outputs, each an int or several.
        batch_axis: axes of independent weights.
        dtype: the default dtype, floating-point.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or another dtype.
        ValueError: when called, for a shape of one axis or a negative size, and for axes out of range.

    Example:
        >>> {name}()(random.key(0), (3, 4)).shape
        (3, 4)
    """
    return initializer


glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", "Glorot's")
glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot's")
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", "He's, for rectifiers")
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", "He's, for rectifiers")
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun's")
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun's")
#: The same initializers by their authors' first names.
xavier_normal, xavier_uniform, kaiming_normal, kaiming_uniform = glorot_normal, glorot_uniform, he_normal, he_uniform


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = np.float32) -> Initializer:
    """Matrices with orthonormal columns, or rows if these are fewer.

    Args:
        scale: the factor.
        column_axis: the axis of the columns; all others are rows.
        dtype: float32, float64, complex64 or complex128; by default.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or another dtype.
        ValueError: when called, for a shape of one axis or a negative size, or a ``column_axis`` that is not there.

    Example:
        >>> q = orthogonal()(random.key(0), (3, 2))
        >>> print(abs((q.T @ q).round(5)))
        [[1. 0.]
         [0. 1.]]
    """

    def draw(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        shape = _weight("orthogonal", shape)
        at = validate.axis("orthogonal", column_axis, len(shape), "column_axis")
        columns, rows = shape[at], math.prod((*shape[:at], *shape[at + 1 :]))
        n, m = max(rows, columns), min(rows, columns)
        q = random.orthogonal(key, n, (), dtypes.canonical(dtype), m=m)
        q = matrix_transpose(q) if rows < columns else q
        whole = reshape(q, (*shape[:at], *shape[at + 1 :], columns))
        return e.multiply(moveaxis(whole, -1, at), scale)

    return draw


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = np.float32) -> Initializer:
    """Norm-preserving convolution kernels: an orthogonal matrix at the centre, zeros elsewhere.

    Source: L. Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018).

    Args:
        scale: the factor.
        column_axis: the axis of the matrix's columns, -1 or -2.
        dtype: float32, float64, complex64 or complex128; by default.

    Returns:
        A function ``f(key, shape, dtype=dtype)`` that returns an array of that shape and dtype.

    Raises:
        TypeError: when called, for an argument that is not a key, or another dtype.
        ValueError: when called, for a shape without one to three spatial axes, or with fewer outputs (the last axis)
            than inputs.

    Example:
        >>> kernel = delta_orthogonal()(random.key(0), (3, 3, 2, 4))
        >>> print(abs((kernel[1, 1] @ kernel[1, 1].T).round(5)))
        [[1. 0.]
         [0. 1.]]
        >>> print((kernel != 0).any((2, 3)))
        [[False False False]
         [False  True False]
         [False False False]]
    """

    def draw(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        shape = validate.shape("delta_orthogonal", "shape", shape)
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise ValueError(
                "delta_orthogonal: a kernel has one to three axes of places, then inputs and at least as many outputs, "
                f"got shape {shape}"
            )
        middle = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        around = [((n - 1) // 2, n // 2) for n in shape[:-2]]
        return pad(reshape(middle, (*[1] * len(around), *shape[-2:])), [*around, (0, 0), (0, 0)])

    return draw
