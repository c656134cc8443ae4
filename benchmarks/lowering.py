"""funcgrad's CPU lowerings of convolutions, pooling, products and functions, beside XLA's and PyTorch's.

Each case is one operation as one program: forward, its gradient by the input, its gradient by the kernel. XLA's default
is one ``convolution``, for max pooling a ``reduce_window`` and a ``select_and_scatter``. PyTorch takes part if it is
installed. Functions of many numbers are compiled for the widest vectors of the machine.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Case, Contestant


class Shape(NamedTuple):
    """A convolution, and the network that it is taken from."""

    why: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    groups: int = 1


SHAPES = (
    Shape("one channel", (64, 1, 28, 28), (32, 1, 3, 3)),
    Shape("no padding", (64, 32, 26, 26), (64, 32, 3, 3)),
    Shape("three channels", (32, 3, 32, 32), (16, 3, 3, 3), padding=1),
    Shape("16 channels", (32, 16, 32, 32), (16, 16, 3, 3), padding=1),
    Shape("32 channels", (32, 32, 16, 16), (32, 32, 3, 3), padding=1),
    Shape("64 channels", (32, 64, 8, 8), (64, 64, 3, 3), padding=1),
    Shape("stride 2", (32, 16, 32, 32), (32, 16, 3, 3), stride=2, padding=1),
    Shape("1x1", (32, 64, 16, 16), (128, 64, 1, 1)),
    Shape("1x1, stride 2", (32, 16, 32, 32), (32, 16, 1, 1), stride=2),
    Shape("5x5", (16, 16, 32, 32), (32, 16, 5, 5), padding=2),
    Shape("7x7, stride 2", (8, 3, 64, 64), (64, 3, 7, 7), stride=2, padding=3),
    Shape("a group for each channel", (16, 32, 32, 32), (32, 1, 3, 3), padding=1, groups=32),
    Shape("one dimension", (16, 64, 128), (64, 64, 3), padding=1),
)
POOLS = (((64, 64, 24, 24), 2, 2), ((32, 16, 32, 32), 3, 2))
ROUNDS = 15


def _normal(shape: Sequence[int]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _jitted(name: str, function: Callable[..., Any], arguments: Sequence[Any], jit: Any = None) -> Contestant:
    import jax

    placed = [jax.device_put(a) for a in arguments]
    return Contestant(name, (jit or jax.jit)(function), lambda: placed, finish=jax.block_until_ready)


# ---------------------------------------------------------------- convolutions


def _products(shape: Shape) -> dict[str, tuple[Any, list[tuple[int, ...]]]]:
    """The convolution and its two gradients: each a config and the shapes of two operands, by name."""
    import funcgrad
    from funcgrad.primitives.convolution import conv, convolve

    def forwards(x: Any, w: Any) -> Any:
        return convolve(x, w, strides=shape.stride, padding=shape.padding, groups=shape.groups)

    x, w = np.zeros(shape.x, np.float32), np.zeros(shape.w, np.float32)
    ct = np.zeros(np.shape(forwards(x, w)), np.float32)
    programs = {
        "forwards": funcgrad.trace(forwards, x, w),
        "by input": funcgrad.trace(lambda ct, w: funcgrad.vjp(lambda x: forwards(x, w), x)[1](ct), ct, w),
        "by kernel": funcgrad.trace(lambda ct, x: funcgrad.vjp(lambda w: forwards(x, w), w)[1](ct), ct, x),
    }
    found = {}
    for name, program in programs.items():
        equation = [e for e in program.equations if e.primitive is conv][-1]
        found[name] = equation.params["config"], [a.type.shape for a in equation.inputs]
    return found


def _torch_convolutions(shape: Shape) -> dict[str, Callable[[], Any]]:
    import torch

    x, w = torch.tensor(_normal(shape.x)), torch.tensor(_normal(shape.w))
    n = len(shape.x) - 2
    each = [[shape.stride] * n, [shape.padding] * n, [1] * n, False, [0] * n, shape.groups]
    ct = torch.ones_like(torch.ops.aten.convolution(x, w, None, *each))

    def backward(mask: list[bool]) -> Callable[[], Any]:
        return lambda: torch.ops.aten.convolution_backward(ct, x, w, None, *each, mask)

    return {
        "forwards": lambda: torch.ops.aten.convolution(x, w, None, *each),
        "by input": backward([True, False, False]),
        "by kernel": backward([False, True, False]),
    }


def _convolution_cases(shape: Shape) -> list[Case]:
    from jax import lax

    from funcgrad.primitives.convolution import conv

    theirs = _torch_convolutions(shape) if importlib.util.find_spec("torch") else {}
    cases = []
    for name, (config, shapes) in _products(shape).items():
        operands = [_normal(s) for s in shapes]

        def default(x: Any, w: Any, config: Any = config) -> Any:
            numbers = lax.ConvDimensionNumbers(*config.layout)
            return lax.conv_general_dilated(
                x, w, *config[:4], numbers, feature_group_count=config.groups, precision=lax.Precision.HIGHEST
            )

        ours = _jitted("ours", lambda x, w, config=config: conv.lower(x, w, config=config), operands)
        others = [_jitted("XLA", default, operands)]
        if theirs:
            others.append(Contestant("torch", theirs[name]))
        cases.append(Case(f"convolution, {shape.why}, {name}", ours, others, ROUNDS))
    return cases


def _loop_case() -> Case:
    """Eight successive convolutions in an XLA loop."""
    from jax import lax

    from funcgrad.primitives.convolution import Config, channels_first, conv

    config = Config((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1, channels_first(2))
    operands = [_normal((16, 32, 16, 16)), _normal((32, 32, 3, 3)) / 17]

    def loop(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda x, w: lax.fori_loop(0, 8, lambda _, x: step(x, w), x)

    ours = _jitted("ours", loop(lambda x, w: conv.lower(x, w, config=config)), operands)
    default = loop(lambda x, w: lax.conv(x, w, (1, 1), "SAME", precision=lax.Precision.HIGHEST))
    return Case("convolutions in a loop", ours, [_jitted("XLA", default, operands)], ROUNDS)


# ---------------------------------------------------------------- pooling


def _pool_case(shape: tuple[int, ...], size: int, stride: int) -> Case:
    """Max pooling and its gradient, in one program as in a training step."""
    import jax
    from jax import lax

    import funcgrad
    from funcgrad import nn

    ends = (size - 1) // 2

    def ours(x: Any) -> Any:
        return nn.max_pool(x, size, stride, ends)

    def default(x: Any) -> Any:
        padding = ((0, 0), (0, 0), (ends, ends), (ends, ends))
        return lax.reduce_window(x, -np.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), padding)

    def both(pool: Callable[[Any], Any], vjp: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        def run(ct: Any, x: Any) -> Any:
            out, back = vjp(pool, x)
            return out, back(ct)

        return run

    x = _normal(shape)
    operands = [np.ones(jax.eval_shape(default, x).shape, np.float32), x]
    others = [_jitted("XLA", both(default, jax.vjp), operands)]
    case = _jitted("ours", both(ours, funcgrad.vjp), operands, funcgrad.jit)
    return Case(f"max pooling and its gradient, {size}x{size}, stride {stride}", case, others, ROUNDS)


# ---------------------------------------------------------------- products

#: Shapes in gradients of weights: steps or batch, outputs, inputs. With batch axes: batch, length, heads' depth.
GRADIENTS = ((960, 512, 128), (128, 512, 64), (512, 256, 16), (2048, 1536, 384))
IN_BATCHES = ((64, 64, 16), (32, 128, 32))


def _product_case(x: tuple[int, ...], y: tuple[int, ...]) -> Case:
    """``x.T @ y``, for each element of the batch."""
    from jax import lax

    from funcgrad.primitives.contraction import dot

    axes = tuple(range(len(x) - 2))
    contract, operands = ((len(axes),), (len(axes),)), [_normal(x), _normal(y)]

    def default(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (contract, (axes, axes)), precision=lax.Precision.HIGHEST)

    ours = _jitted("ours", lambda x, y: dot.lower(x, y, contract=contract, batch=(axes, axes)), operands)
    return Case(f"{x} transposed times {y}", ours, [_jitted("XLA", default, operands)], ROUNDS)


# ---------------------------------------------------------------- vectors


def _vector_case(name: str) -> Case:
    """A function of many numbers, with the widest vectors of the machine, and with XLA's default."""
    import jax

    from funcgrad.runtime.options import compiler_options

    function, operands = getattr(jax.lax, name), [_normal((1_000_000,))]
    whole = partial(jax.jit, compiler_options=compiler_options())
    return Case(f"{name} of a million numbers", _jitted("ours", function, operands, whole),
                [_jitted("XLA", function, operands)], ROUNDS)  # fmt: skip


def cases() -> list[Case]:
    convolutions = [case for shape in SHAPES for case in _convolution_cases(shape)]
    products = [_product_case((k, m), (k, n)) for k, m, n in GRADIENTS]
    products += [_product_case((batch, n, n), (batch, n, depth)) for batch, n, depth in IN_BATCHES]
    vectors = [_vector_case(name) for name in ("tanh", "exp", "erf", "logistic")]
    return [*convolutions, _loop_case(), *[_pool_case(*pool) for pool in POOLS], *products, *vectors]
