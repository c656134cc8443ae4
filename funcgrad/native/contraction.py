"""The contraction by the native kernel: axes of operands and result are labelled, as in ``einsum``."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.native.library import SUFFIXES

Labels = tuple[int, ...]

#: Smaller products are as fast in XLA, which fuses some of them with other operations.
_LEAST_WORK, _LEAST_ROWS, _LEAST_DEPTH = 1 << 15, 4, 8
#: Larger ``x @ y`` and ``x @ y.T`` without batches are as fast in XLA, which starts other operations while they run.
_MOST_PLAIN, _MOST_TRANSPOSED = 1 << 24, 1 << 27
#: The kernel uses 32-bit offsets.
MOST_ELEMENTS = 2**31 - 1


def labels_of(x: ArrayType, y: ArrayType, contract: tuple, batch: tuple) -> tuple[Labels, Labels, Labels]:
    """The labels of the operands' and the result's axes in a ``dot``."""
    (cx, cy), (bx, by) = contract, batch
    labels_x = list(range(x.ndim))
    labels_y = list(range(x.ndim, x.ndim + y.ndim))
    for a, b in zip((*cx, *bx), (*cy, *by), strict=True):
        labels_y[b] = labels_x[a]
    out = [*[labels_x[d] for d in bx]]
    out += [labels_x[d] for d in range(x.ndim) if d not in (*cx, *bx)]
    out += [labels_y[d] for d in range(y.ndim) if d not in (*cy, *by)]
    return tuple(labels_x), tuple(labels_y), tuple(out)


def pays(x: ArrayType, y: ArrayType, contract: tuple, batch: tuple) -> bool:
    """Whether the kernel is faster than XLA; depends only on sizes and dtype."""
    (cx, _), (bx, _) = contract, batch
    if x.dtype not in SUFFIXES:
        return False
    depth, batches = math.prod(x.shape[d] for d in cx), math.prod(x.shape[d] for d in bx)
    if not depth or not batches:
        return False
    elements = math.prod(x.shape), math.prod(y.shape)
    rows, columns = (n // depth // batches for n in elements)
    if max(*elements, batches * rows * columns) > MOST_ELEMENTS or min(rows, columns) < _LEAST_ROWS:
        return False
    return depth >= _LEAST_DEPTH and rows * columns * depth * batches >= _LEAST_WORK


def left_to_xla(x: ArrayType, y: ArrayType, x_labels: Labels, y_labels: Labels, out_labels: Labels) -> bool:
    """Whether it is a large ``x @ y`` or ``x @ y.T`` without batches."""
    work = math.prod(_sizes(x, y, x_labels, y_labels).values())
    most = _MOST_TRANSPOSED if y_labels[-1] in x_labels else _MOST_PLAIN
    return work > most and _plain(x_labels, y_labels, out_labels)


def _sizes(x: Any, y: Any, x_labels: Labels, y_labels: Labels) -> dict[int, int]:
    return {**dict(zip(x_labels, x.shape, strict=True)), **dict(zip(y_labels, y.shape, strict=True))}


def _depth(x: Labels, y: Labels) -> Labels:
    return tuple(label for label in x if label in y)


def _plain(x: Labels, y: Labels, out: Labels) -> bool:
    depth = _depth(x, y)
    rows, columns = (tuple(label for label in labels if label not in depth) for labels in (x, y))
    return x == (*rows, *depth) and y in ((*depth, *columns), (*columns, *depth)) and out == (*rows, *columns)


def _infer(x: ArrayType, y: ArrayType, *, x_labels: Labels, y_labels: Labels, out_labels: Labels) -> ArrayType:
    sizes = _sizes(x, y, x_labels, y_labels)
    return ArrayType(tuple(sizes[label] for label in out_labels), x.dtype, x.weak and y.weak)


def _lower(x: Any, y: Any, *, x_labels: Labels, y_labels: Labels, out_labels: Labels) -> Any:
    sizes = _sizes(x, y, x_labels, y_labels)
    result = jax.ShapeDtypeStruct(tuple(sizes[label] for label in out_labels), x.dtype)
    call = jax.ffi.ffi_call(f"funcgrad_dot_{SUFFIXES[np.dtype(x.dtype)]}", result)
    attributes = {"x": x_labels, "y": y_labels, "out": out_labels}
    return call(x, y, **{name: np.array(value, np.int64) for name, value in attributes.items()})


native_dot = Primitive("native_dot", infer=_infer, lower=_lower)
