"""Test rows of ``funcgrad.numpy``: functions of a namespace and of arrays, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
A = RNG.uniform(0.2, 0.9, (2, 3))
B = RNG.uniform(1.1, 2.5, (2, 3))
V = RNG.uniform(-1.0, 1.0, 3)
SQUARE = RNG.normal(size=(3, 3))
CUBE = RNG.normal(size=(2, 3, 4))
SORTED, WANTED = np.array([0.0, 1.0, 1.0, 2.0, np.nan]), np.array([[-1.0, 1.0, 1.5], [5.0, np.nan, 0.0]])
MASK = np.array([[True, False, True], [True, True, False]])
HOLED = np.where(MASK, A, np.nan)
WHOLE = np.array([[3, 1, 2], [0, 5, 3]])
LONG = RNG.normal(size=9)
PLACES = np.array([0.0, 0.5, 2.0, 2.5])
POINTS = np.array([0.31, 0.12, 0.77, 0.52, 0.05])


def doubled(xp: Any) -> Callable[..., Any]:
    """A mode of ``pad``: at each end, twice the adjacent element."""

    def fill(row: Any, widths: Any, axis: int, kwargs: Any) -> Any:
        whole = xp.concatenate([row[1:2] * 2, row[1:-1], row[-2:-1] * 2])
        if xp is np:
            row[:] = whole
        return whole

    return fill


def changing(name: str, *arguments: Any) -> Callable[..., Any]:
    """A function that modifies NumPy's array in place."""

    def change(xp: Any, x: Any, v: Any) -> Any:
        if xp is not np:
            return getattr(xp, name)(x, *arguments[:1], v, *arguments[1:], inplace=False)
        x = x.copy()
        getattr(np, name)(x, *arguments[:1], v, *arguments[1:])
        return x

    return change


# Each row is a function of `xp`, which is NumPy or funcgrad.numpy, and of arrays; the floating ones are differentiated.
# A row is named after its function, followed by the tested property.
ROWS: dict[str, tuple[Callable[..., Any], tuple]] = {
    "sum": (lambda xp, x: xp.sum(x), (A,)),
    "sum of axes": (lambda xp, x: xp.sum(x, axis=(0, -1), keepdims=True), (CUBE,)),
    "sum where": (lambda xp, x: xp.sum(x, axis=1, where=MASK, initial=2.0), (A,)),
    "prod": (lambda xp, x: xp.prod(x, axis=1), (A - 0.5,)),
    "prod with zeros": (lambda xp, x: xp.prod(x, axis=0), (np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 4.0]]),)),
    "prod where": (lambda xp, x: xp.prod(x, where=MASK, initial=2.0), (A,)),
    "max": (lambda xp, x: xp.max(x, axis=-1), (CUBE,)),
    "max initial": (lambda xp, x: xp.max(x, axis=1, initial=0.5, where=MASK), (A,)),
    "min": (lambda xp, x: xp.amin(x, axis=0, keepdims=True), (CUBE,)),
    "ptp": (lambda xp, x: xp.ptp(x, axis=1), (CUBE,)),
    "mean": (lambda xp, x: xp.mean(x, axis=1), (A,)),
    "mean where": (lambda xp, x: xp.mean(x, axis=0, where=MASK), (A,)),
    "var": (lambda xp, x: xp.var(x, axis=1, ddof=1), (A,)),
    "var where": (lambda xp, x: xp.var(x, where=MASK), (A,)),
    "std": (lambda xp, x: xp.std(x), (A,)),
    "average": (lambda xp, x, w: xp.average(x, axis=0, weights=w), (A, B)),
    "average of a vector's weights": (lambda xp, x, w: xp.average(x, axis=1, weights=w), (A, B[0])),
    "cumsum": (lambda xp, x: xp.cumsum(x, axis=1), (A,)),
    "cumsum of all": (lambda xp, x: xp.cumsum(x), (A,)),
    "cumprod": (lambda xp, x: xp.cumprod(x, axis=0), (A,)),
    "cumulative_sum": (lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True), (A,)),
    "cumulative_prod": (lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True), (A,)),
    "median": (lambda xp, x: xp.median(x, axis=-1), (CUBE,)),
    "quantile": (lambda xp, x: xp.quantile(x, np.array([0.0, 0.3, 1.0]), axis=1, keepdims=True), (CUBE,)),
    "quantile of all": (lambda xp, x: xp.quantile(x, 0.4), (CUBE,)),
    "percentile": (lambda xp, x: xp.percentile(x, 30.0, axis=(0, 2), method="midpoint"), (CUBE,)),
    "argmax": (lambda xp, x: xp.argmax(x, axis=1), (CUBE,)),
    "argmin of all": (lambda xp, x: xp.argmin(x), (CUBE,)),
    "count_nonzero": (lambda xp, x: xp.count_nonzero(x > 0.5, axis=0), (A,)),
    "all and any": (lambda xp, x: xp.stack([xp.all(x > 0.5, axis=0), xp.any(x > 0.5, axis=0)]), (A,)),
    "sort": (lambda xp, x: xp.sort(x, axis=1), (CUBE,)),
    "sort of all": (lambda xp, x: xp.sort(x, axis=None), (CUBE,)),
    "argsort": (lambda xp, x: xp.argsort(x, axis=0), (CUBE,)),
    "searchsorted": (lambda xp, x, v: xp.searchsorted(x, v), (SORTED, WANTED)),
    "searchsorted right": (lambda xp, x, v: xp.searchsorted(x, v, side="right"), (SORTED, WANTED)),
    "searchsorted sorter": (lambda xp, v: xp.searchsorted([5, 9, 1], v, sorter=[2, 0, 1]), (np.array([5, 6]),)),
    "digitize": (lambda xp, x: xp.digitize(x, np.array([0.3, 0.5, 0.7])), (A,)),
    "reshape": (lambda xp, x: xp.reshape(x, (3, -1)), (A,)),
    "ravel": (lambda xp, x: xp.ravel(x), (A,)),
    "transpose": (lambda xp, x: xp.transpose(x, (1, 2, 0)), (CUBE,)),
    "transpose of all": (lambda xp, x: xp.transpose(x), (CUBE,)),
    "swapaxes": (lambda xp, x: xp.swapaxes(x, 0, -1), (CUBE,)),
    "moveaxis": (lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)), (CUBE,)),
    "matrix_transpose": (lambda xp, x: xp.matrix_transpose(x), (CUBE,)),
    "expand_dims": (lambda xp, x: xp.expand_dims(x, (0, -1)), (A,)),
    "squeeze": (lambda xp, x: xp.squeeze(x, axis=0), (A[:1],)),
    "broadcast_to": (lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), (A,)),
    "broadcast_arrays": (lambda xp, x, y: xp.broadcast_arrays(x, y)[1], (CUBE, V[:, None])),
    "atleast of several": (lambda xp, x: xp.concatenate(xp.atleast_2d(x, np.ones((2, 3)))), (V,)),
    "atleast": (lambda xp, x: xp.atleast_3d(x) + xp.atleast_2d(x)[0, 0] + xp.atleast_1d(x)[0], (V,)),
    "concatenate": (lambda xp, x, y: xp.concatenate([x, y, x], axis=1), (A, B)),
    "concatenate of all": (lambda xp, x, y: xp.concatenate([x, y], axis=None), (A, V)),
    "r_": (lambda xp, x, y: xp.r_[x, 1:3, 0.5, y], (V, A[0])),
    "r_ of rows": (lambda xp, x, y: xp.r_["1,2", x, y], (V, A[0])),
    "r_ of columns": (lambda xp, x: xp.r_["0,3,1", x, x], (A,)),
    "c_": (lambda xp, x, y: xp.c_[x, y, 0:1:3j], (V, SQUARE)),
    "stack": (lambda xp, x, y: xp.stack([x, y], axis=-1), (A, B)),
    "hstack": (lambda xp, x, y: xp.hstack([x, y]), (A, B)),
    "vstack": (lambda xp, x, y: xp.vstack([x, y]), (A, V)),
    "dstack": (lambda xp, x, y: xp.dstack([x, y]), (A, B)),
    "column_stack": (lambda xp, x, y: xp.column_stack([x, y]), (V, SQUARE)),
    "append": (lambda xp, x, y: xp.append(x, y), (A, V)),
    "split": (lambda xp, x: xp.split(x, 2, axis=2)[1], (CUBE,)),
    "split before": (lambda xp, x: xp.split(x, [1, 1, 3], axis=-1)[2], (CUBE,)),
    "array_split": (lambda xp, x: xp.array_split(x, 2)[1], (V,)),
    "hsplit and vsplit": (lambda xp, x: xp.vsplit(xp.hsplit(x, 3)[1], 2)[0], (A,)),
    "unstack": (lambda xp, x: xp.unstack(x, axis=1)[2], (CUBE,)),
    "flip": (lambda xp, x: xp.flip(x, axis=(0, 2)), (CUBE,)),
    "flips": (lambda xp, x: xp.fliplr(xp.flipud(x)), (CUBE,)),
    "rot90": (lambda xp, x: xp.rot90(x), (A,)),
    "rot90 back": (lambda xp, x: xp.rot90(x, -1, axes=(1, 2)), (CUBE,)),
    "rot90 twice": (lambda xp, x: xp.rot90(x, 2), (A,)),
    "roll": (lambda xp, x: xp.roll(x, (1, -5), axis=(0, 2)), (CUBE,)),
    "roll of all": (lambda xp, x: xp.roll(x, 2), (A,)),
    "repeat": (lambda xp, x: xp.repeat(x, 2, axis=0), (A,)),
    "tile": (lambda xp, x: xp.tile(x, (2, 1, 3)), (A,)),
    "pad": (lambda xp, x: xp.pad(x, ((1, 0), (0, 2)), constant_values=3.0), (A,)),
    "pad edge": (lambda xp, x: xp.pad(x, 2, mode="edge"), (A,)),
    "pad reflect": (lambda xp, x: xp.pad(x, ((1, 1), (2, 1)), mode="reflect"), (A,)),
    "pad symmetric": (lambda xp, x: xp.pad(x, ((2, 1), (0, 3)), mode="symmetric"), (A,)),
    "pad wrap": (lambda xp, x: xp.pad(x, ((0, 1), (3, 2)), mode="wrap"), (A,)),
    "tril": (lambda xp, x: xp.tril(x, 1), (CUBE,)),
    "triu": (lambda xp, x: xp.triu(x, -1), (CUBE,)),
    "tri": (lambda xp: xp.tri(3, 4, 1, dtype="int32"), ()),
    "eye": (lambda xp: xp.eye(3, 4, -1, dtype="float64"), ()),
    "diag": (lambda xp, x: xp.diag(x, -1), (V,)),
    "diag of a matrix": (lambda xp, x: xp.diag(x, 1), (A,)),
    "diagonal": (lambda xp, x: xp.diagonal(x, -1, 2, 0), (CUBE,)),
    "diagonal outside": (lambda xp, x: xp.diagonal(x, 7), (A,)),
    "trace": (lambda xp, x: xp.trace(x, 1, 1, 2), (CUBE,)),
    "meshgrid": (lambda xp, x, y: xp.stack(xp.meshgrid(x, y)), (V, A[0, :2])),
    "meshgrid ij": (lambda xp, x, y: xp.stack(xp.meshgrid(x, y, indexing="ij")), (V, A[0, :2])),
    "arange": (lambda xp: xp.arange(7, -2, -3), ()),
    "arange of floats": (lambda xp: xp.arange(0.5, 2.0, 0.25, dtype="float64"), ()),
    "linspace": (lambda xp, x, y: xp.linspace(x, y, 5), (A, B)),
    "linspace open": (lambda xp, x: xp.linspace(0.0, x, 4, endpoint=False), (np.float64(2),)),
    "full": (lambda xp, x: xp.full((2, 3), x), (V,)),
    "where": (lambda xp, x, y: xp.where(MASK, x, y), (A, V)),
    "clip": (lambda xp, x: xp.clip(x, 0.3, 0.6), (A,)),
    "clip above": (lambda xp, x: xp.clip(x, None, 0.6), (A,)),
    "select": (lambda xp, x: xp.select([x < 0.4, x < 0.6], [x * 2, x**2], 7.0), (A,)),
    "take": (lambda xp, x: xp.take(x, np.array([[2, 0], [1, -1]]), axis=1), (CUBE,)),
    "take of all": (lambda xp, x: xp.take(x, np.array([5, -1, 0])), (A,)),
    "take clip": (lambda xp, x: xp.take(x, np.array([9, -9]), axis=1, mode="clip"), (A,)),
    "take wrap": (lambda xp, x: xp.take(x, np.array([7, -4]), axis=1, mode="wrap"), (A,)),
    "take_along_axis": (lambda xp, x: xp.take_along_axis(x, np.array([[2, 0], [1, -1]]), axis=1), (A,)),
    "take_along_axis broadcast": (lambda xp, x: xp.take_along_axis(x, np.array([[[1, 0, 2]]]), axis=2), (CUBE,)),
    "dot": (lambda xp, x, y: xp.dot(x, y), (A, SQUARE)),
    "dot of more axes": (lambda xp, x, y: xp.dot(x, y), (A, CUBE)),
    "dot of vectors": (lambda xp, x, y: xp.dot(x, y), (V, A[0])),
    "dot of scalars": (lambda xp, x, y: xp.dot(x, y), (np.float64(2), A)),
    "matmul": (lambda xp, x, y: xp.matmul(x, y), (A, CUBE)),
    "matmul of stacks": (lambda xp, x, y: xp.matmul(x, y), (CUBE, RNG.normal(size=(5, 1, 4, 2)))),
    "matmul of a row": (lambda xp, x, y: xp.matmul(x, y), (V, CUBE)),
    "matmul of a column": (lambda xp, x, y: xp.matmul(x, y), (np.swapaxes(CUBE, 1, 2), V)),
    "inner": (lambda xp, x, y: xp.inner(x, y), (A, B)),
    "outer": (lambda xp, x, y: xp.outer(x, y), (A, V)),
    "vdot": (lambda xp, x, y: xp.vdot(x, y), (A + 1j, B + 2j)),
    "vecdot": (lambda xp, x, y: xp.vecdot(x, y), (CUBE, CUBE[:1] + 1)),
    "tensordot": (lambda xp, x, y: xp.tensordot(x, y, axes=([1, 0], [0, 1])), (A, np.swapaxes(CUBE, 0, 1))),
    "kron": (lambda xp, x, y: xp.kron(x, y), (A, V)),
    "cross": (lambda xp, x, y: xp.cross(x, y), (A, V)),
    "cross of columns": (lambda xp, x, y: xp.cross(x, y, axis=0), (SQUARE, SQUARE[::-1])),
    "einsum": (lambda xp, x, y, z: xp.einsum("ij,ijk,k->ji", x, y, z), (A, CUBE, RNG.normal(size=4))),
    "einsum diagonal": (lambda xp, x: xp.einsum("ii->i", x), (SQUARE,)),
    "einsum ellipsis": (lambda xp, x, y: xp.einsum("...ij,...j", x, y), (CUBE, RNG.normal(size=(5, 1, 4)))),
    "einsum implicit": (lambda xp, x, y: xp.einsum("ba,ac", x, y), (A, SQUARE)),
    "einsum lists": (lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2], [2, 0]), (A, SQUARE)),
    "einsum of many": (lambda xp, x, y, z, v: xp.einsum("ij,jk,kl,l->i", x, y, z, v), (A, SQUARE, SQUARE, V)),
    "diff": (lambda xp, x: xp.diff(x, n=2, axis=1), (CUBE,)),
    "diff of ends": (lambda xp, x: xp.diff(x, prepend=0.0, append=x[:, :1]), (A,)),
    "diff of bools": (lambda xp: xp.diff(MASK), ()),
    "trapezoid": (lambda xp, y, x: xp.trapezoid(y, x), (A, np.array([0.0, 0.5, 2.0]))),
    "interp": (lambda xp, x, f: xp.interp(x, np.array([0.3, 0.5, 0.8]), f), (A, V)),
    "interp outside": (lambda xp, x, f: xp.interp(x, np.array([0.3, 0.5, 0.8]), f, left=-1.0, right=9.0), (A, V)),
    "polyval": (lambda xp, p, x: xp.polyval(p, x), (V, A)),
    "convolve": (lambda xp, x, y: xp.convolve(x, y), (V, CUBE[0, 0])),
    "convolve same": (lambda xp, x, y: xp.convolve(x, y, "same"), (CUBE[0, 0], V)),
    "convolve valid": (lambda xp, x, y: xp.convolve(x, y, "valid"), (CUBE[0, 0], V[:2])),
    "isclose": (lambda xp, x: xp.isclose(x, x + 1e-9), (A,)),
    "allclose": (lambda xp, x: xp.allclose(x, x + 1e-3), (A,)),
    "array_equal": (lambda xp, x: xp.array_equal(x, x), (A,)),
    "arctan2": (lambda xp, x, y: xp.arctan2(x, y), (A, V)),
    "hypot": (lambda xp, x, y: xp.hypot(x, y), (A, V)),
    "logaddexp": (lambda xp, x, y: xp.logaddexp(x, y), (A, V)),
    "logaddexp2": (lambda xp, x, y: xp.logaddexp2(x, y), (A, V)),
    "power": (lambda xp, x, y: xp.power(x, y), (A, V)),
    "integer powers": (lambda xp, x: x**3 + x**2 + x**-1 + x**0 + x**1, (A,)),
    "float powers": (lambda xp, x: x**2.5 + 2.0**x + xp.float_power(x, 2), (A,)),
    "remainder": (lambda xp, x, y: xp.remainder(x * 5, y), (A, B)),
    "fmod": (lambda xp, x, y: xp.fmod(x * -5, y), (A, B)),
    "fmax": (lambda xp, x, y: xp.fmax(x, y) + xp.fmin(x, 0.5), (A, V)),
    "copysign": (lambda xp, x, y: xp.copysign(x, y), (A, V)),
    "modf": (lambda xp, x: xp.modf(x * 3)[0], (A,)),
    "sinc": (lambda xp, x: xp.sinc(x - x[0, 0]), (A,)),
    "real and imaginary": (lambda xp, z: xp.real(z) * xp.imag(z) + xp.abs(z) + xp.angle(z), (A + 1j * B,)),
    "round": (lambda xp, x: xp.round(x, 1), (A,)),
    "nan_to_num": (lambda xp, x: xp.nan_to_num(x), (np.array([1.0, -2.0]),)),
    "append along": (lambda xp, x, y: xp.append(x, y, axis=0), (A, B)),
    "apply_along_axis": (lambda xp, x: xp.apply_along_axis(lambda v: v[:2] * v[-1], 1, x), (CUBE,)),
    "apply_over_axes": (lambda xp, x: xp.apply_over_axes(xp.sum, x, [0, 2]), (CUBE,)),
    "argpartition": (lambda xp, x: xp.take_along_axis(x, xp.argpartition(x, 1, axis=1), 1)[:, 1], (A,)),
    "argwhere": (lambda xp, x: xp.argwhere(x > 0), (CUBE,)),
    "array": (lambda xp, x: xp.array(x, ndmin=3), (A,)),
    "array of rows": (lambda xp, x: xp.stack([x[0], x[1]]) if xp is np else xp.array([x[0], x[1]]), (A,)),
    "array_equiv": (lambda xp, x: xp.stack([xp.array_equiv(x, x[:1]), xp.array_equiv(x[:1], x[0])]), (A,)),
    "asarray": (lambda xp, x: xp.asarray(x) * 2, (A,)),
    "astype bool": (lambda xp: xp.astype(np.array([2j, 0.0]), np.bool_), ()),
    "astype": (lambda xp, x: xp.astype(x, xp.complex128), (A,)),
    "average with more weights": (lambda xp, x, w: xp.average(x, axis=(1, 2), weights=w), (CUBE, abs(CUBE[0]))),
    "average returned": (lambda xp, x: xp.average(x, axis=0, weights=[1.0, 3.0], returned=True)[1], (A,)),
    "bincount": (lambda xp, w: xp.bincount(np.array([3, 1, 3]), weights=w, minlength=5), (V,)),
    "bincount of numbers": (lambda xp: xp.bincount(np.array([3, 1, 3])), ()),
    "bitwise_count": (lambda xp: xp.bitwise_count(WHOLE - 2), ()),
    "block": (lambda xp, x, y: xp.block([[x, x * 2], [y, y]]), (A, V)),
    "block of cubes": (lambda xp, x: xp.block([x, x + 1]), (CUBE,)),
    "broadcast_shapes": (lambda xp: xp.ones(xp.broadcast_shapes((2, 1), (3,)), "float64"), ()),
    "choose": (lambda xp, x, y: xp.choose(np.array([0, 1, 1]), [x, y]), (A, B)),
    "choose wrap": (lambda xp, x, y: xp.choose(np.array([0, -1, 4]), [x, y], mode="wrap"), (A, B)),
    "choose clip": (lambda xp, x, y: xp.choose(np.array([0, -1, 4]), [x, y], mode="clip"), (A, B)),
    "compress": (lambda xp, x: xp.compress([True, False, True], x, axis=1), (CUBE,)),
    "concat": (lambda xp, x, y: xp.concat([x, y]), (A, B)),
    "copy": (lambda xp, x: xp.copy(x), (A,)),
    "corrcoef": (lambda xp, x: xp.corrcoef(x), (CUBE[0],)),
    "corrcoef of two": (lambda xp, x, y: xp.corrcoef(x, y), (CUBE[0, 0], CUBE[1, 0])),
    "correlate": (lambda xp, x, y: xp.correlate(x, y), (LONG, V)),
    "correlate full": (lambda xp, x, y: xp.correlate(x, y, "full"), (V, LONG)),
    "correlate same": (lambda xp, x, y: xp.correlate(x, y, "same"), (V[:2], LONG)),
    "correlate complex": (lambda xp, x, y: xp.correlate(x, y), (LONG + 1j, V - 2j)),
    "cov": (lambda xp, x: xp.cov(x), (CUBE[0],)),
    "cov of two": (lambda xp, x, y: xp.cov(x, y, bias=True), (A, V)),
    "cov of columns": (lambda xp, x: xp.cov(x, rowvar=False, ddof=0), (CUBE[0],)),
    "cov of a vector": (lambda xp, x: xp.cov(x), (V,)),
    "cov weighted": (
        lambda xp, x, w: xp.cov(x, fweights=np.array([1, 2, 3, 1]), aweights=w), (CUBE[0], np.array([0.5, 1, 2, 1])),
    ),
    "cov complex": (lambda xp, x: xp.cov(x), (CUBE[0] + 1j * CUBE[1],)),
    "cross of two and three": (lambda xp, x, y: xp.cross(x, y), (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))),
    "cumulative_sum of nothing": (lambda xp: xp.cumulative_sum(np.ones(0), include_initial=True), ()),
    "delete": (lambda xp, x: xp.delete(x, [0, -1], axis=2), (CUBE,)),
    "delete a mask": (lambda xp, x: xp.delete(x, np.array([True, False, True]), axis=1), (A,)),
    "delete of all": (lambda xp, x: xp.delete(x, slice(1, 4)), (A,)),
    "diag_indices": (lambda xp, x: x[xp.diag_indices(3)], (SQUARE,)),
    "diag_indices_from": (lambda xp, x: x[xp.diag_indices_from(x)], (SQUARE,)),
    "diagflat": (lambda xp, x: xp.diagflat(x, 1), (A,)),
    "digitize right": (lambda xp, x: xp.digitize(x, np.array([0.3, 0.5]), right=True), (A,)),
    "digitize decreasing": (lambda xp, x: xp.digitize(x, np.array([0.7, 0.5, 0.3])), (A,)),
    "divmod": (lambda xp, x, y: xp.divmod(x * 9, y)[1] + xp.divmod(x * 9, y)[0], (A, B)),
    "dsplit": (lambda xp, x: xp.dsplit(x, 2)[1], (CUBE,)),
    "ediff1d": (lambda xp, x: xp.ediff1d(x, to_begin=0.0, to_end=[1.0, 2.0]), (A,)),
    "empty": (lambda xp, x: xp.empty((0, 2)) if xp is np else xp.empty((0, 2), "float64"), (A,)),
    "empty_like": (lambda xp, x: xp.empty_like(x, shape=(0, 3)), (A,)),
    "extract": (lambda xp, x: xp.extract(MASK, x), (A,)),
    "fill_diagonal": (changing("fill_diagonal"), (A, V[:2])),
    "flatnonzero": (lambda xp: xp.flatnonzero(MASK), ()),
    "frexp": (lambda xp: xp.frexp(np.array([0.0, -3.0, 1e-300, 1e300, np.inf, np.nan, 0.75]))[0], ()),
    "frexp exponent": (lambda xp: xp.frexp(np.array([0.0, -3.0, 1e-300, 1e300, 0.75]))[1], ()),
    "from_dlpack": (lambda xp: xp.from_dlpack(np.arange(3.0)), ()),
    "fromfunction": (lambda xp: xp.fromfunction(lambda i, j: i - 2 * j, (2, 3), dtype="float64"), ()),
    "fromiter": (lambda xp: xp.fromiter((i * i for i in range(5)), "int64", count=3), ()),
    "full_like": (lambda xp, x, v: xp.full_like(x, v), (A, V)),
    "gcd": (lambda xp: xp.gcd(WHOLE * 4, np.array([6, -10, 0])), ()),
    "geomspace of arrays": (lambda xp, x, y: xp.geomspace(x, y, 3, axis=1), (A, B)),
    "geomspace": (lambda xp: xp.geomspace(2.0, 54.0, 4, dtype="float64"), ()),
    "gradient": (lambda xp, x: xp.gradient(x, axis=2), (CUBE,)),
    "gradient of all": (lambda xp, x: xp.gradient(x, 0.5)[1], (CUBE,)),
    "gradient of places": (lambda xp, x: xp.gradient(x, PLACES, axis=-1, edge_order=2), (CUBE,)),
    "histogram": (lambda xp, w: xp.histogram(POINTS, 4, weights=w)[0], (LONG[:5],)),
    "histogram of counts": (lambda xp: xp.histogram(POINTS, [0.0, 0.3, 0.52, 0.77])[0], ()),
    "histogram density": (lambda xp, w: xp.histogram(POINTS, 3, (0.0, 1.0), True, w)[0], (abs(LONG[:5]),)),
    "histogram2d": (lambda xp, w: xp.histogram2d(POINTS, POINTS**2, [2, 3], weights=w)[0], (LONG[:5],)),
    "histogram_bin_edges": (lambda xp, x: xp.histogram_bin_edges(x, 3), (A,)),
    "histogram_bin_edges by a rule": (lambda xp: xp.histogram_bin_edges(LONG, "sturges"), ()),
    "histogramdd": (
        lambda xp: xp.histogramdd(np.stack([POINTS, 1 - POINTS, POINTS], 1), 2, density=True)[0].astype("float32"), (),
    ),
    "i0": (lambda xp, x: xp.i0(x), (CUBE,)),
    "identity": (lambda xp: xp.identity(3, "float64"), ()),
    "indices": (lambda xp: xp.indices((2, 3)), ()),
    "insert": (lambda xp, x, v: xp.insert(x, 1, v, axis=1), (A, V[:2])),
    "insert several": (lambda xp, x: xp.insert(x, [2, 0, 2], [7.0, 8.0, 9.0], axis=1), (A,)),
    "insert of all": (lambda xp, x, v: xp.insert(x, slice(1, 4), v), (A, V)),
    "insert at one place": (lambda xp, x, v: xp.insert(x, -1, v), (A, V)),
    "interp periodic": (lambda xp, x, f: xp.interp(x * 5, np.array([0.3, 1.5, 0.8]), f, period=1.7), (A, V)),
    "interp complex": (lambda xp, x, f: xp.interp(x, np.array([0.3, 0.5, 0.8]), f), (A, V + 1j)),
    "intersect1d": (lambda xp: xp.intersect1d(WHOLE, [5, 3, 9, 0]), ()),
    "intersect1d indices": (lambda xp: xp.stack(xp.intersect1d(WHOLE, [5, 3, 9, 0], return_indices=True)), ()),
    "iscomplex": (lambda xp: xp.iscomplex(np.array([1j, 2 + 0j])), ()),
    "isreal": (lambda xp: xp.isreal(np.array([1j, 2 + 0j])), ()),
    "isin": (lambda xp: xp.isin(WHOLE, [3, 1, 7]), ()),
    "isin floats": (lambda xp: xp.isin(SORTED, [1.0, np.nan], invert=True), ()),
    "issubdtype": (lambda xp: xp.asarray([xp.issubdtype("int8", np.integer), xp.issubdtype("int8", np.floating)]), ()),
    "ix_": (lambda xp, x: x[xp.ix_([1, 0], np.array([True, False, True]))], (A,)),
    "kaiser": (lambda xp: (xp.kaiser(7, 8.0) * 1000).astype("int32"), ()),
    "lcm": (lambda xp: xp.lcm(WHOLE * 4, np.array([6, -10, 0])), ()),
    "ldexp": (lambda xp, x: xp.ldexp(x, np.array([3, -2, 0])), (A,)),
    "lexsort": (lambda xp: xp.lexsort((np.array([1, 0, 1, 0]), np.array([2, 1, 1, 1]))), ()),
    "logspace": (lambda xp, x: xp.logspace(x, 2.0, 4), (A,)),
    "logspace along": (lambda xp, x: xp.logspace(x, 2.0, 4, axis=-1), (A,)),
    "linspace along": (lambda xp, x, y: xp.linspace(x, y, 5, axis=1), (A, B)),
    "mask_indices": (lambda xp, x: x[xp.mask_indices(3, xp.triu, 1)], (SQUARE,)),
    "matvec": (lambda xp, x, y: xp.matvec(x, y), (CUBE, CUBE[0, 0])),
    "mgrid": (lambda xp: xp.mgrid[0:2, 1:7:3], ()),
    "mgrid of reals": (lambda xp: xp.mgrid[0:1:3j].astype("float32"), ()),
    "nanargmax": (lambda xp, x: xp.nanargmax(x, axis=1), (HOLED,)),
    "nanargmin": (lambda xp, x: xp.nanargmin(x), (HOLED,)),
    "nancumprod": (lambda xp, x: xp.nancumprod(xp.where(MASK, x, np.nan), axis=1), (A,)),
    "nancumsum": (lambda xp, x: xp.nancumsum(xp.where(MASK, x, np.nan)), (A,)),
    "nanmax": (lambda xp, x: xp.nanmax(xp.where(MASK, x, np.nan), axis=1), (A,)),
    "nanmean": (lambda xp, x: xp.nanmean(xp.where(MASK, x, np.nan), axis=0), (A,)),
    "nanmedian": (lambda xp, x: xp.nanmedian(xp.where(MASK, x, np.nan), axis=1), (A,)),
    "nanmin": (lambda xp, x: xp.nanmin(xp.where(MASK, x, np.nan), axis=1, keepdims=True), (A,)),
    "nanpercentile": (lambda xp, x: xp.nanpercentile(xp.where(MASK, x, np.nan), [20.0, 70.0], axis=1), (A,)),
    "nanprod": (lambda xp, x: xp.nanprod(xp.where(MASK, x, np.nan)), (A,)),
    "nanquantile": (lambda xp, x: xp.nanquantile(xp.where(MASK, x, np.nan), 0.3, method="hazen"), (A,)),
    "nanstd": (lambda xp, x: xp.nanstd(xp.where(MASK, x, np.nan), axis=1), (A,)),
    "nansum": (lambda xp, x: xp.nansum(xp.where(MASK, x, np.nan), axis=0), (A,)),
    "nanvar": (lambda xp, x: xp.nanvar(xp.where(MASK, x, np.nan), ddof=1), (A,)),
    "nonzero": (lambda xp: xp.stack(xp.nonzero(WHOLE > 2)), ()),
    "nextafter": (lambda xp: xp.nextafter(V, 2.0), ()),
    "ogrid": (lambda xp: xp.ogrid[0:2, 1:7:3][1], ()),
    "ones": (lambda xp: xp.ones((2, 0), "int8"), ()),
    "ones_like": (lambda xp, x: xp.ones_like(x, dtype="float32"), (A,)),
    "packbits": (lambda xp: xp.packbits(np.arange(22).reshape(2, 11) % 3, axis=1), ()),
    "packbits little": (lambda xp: xp.packbits(MASK, bitorder="little"), ()),
    "pad wide": (lambda xp, x: xp.pad(x, ((5, 4), (3, 7)), mode="reflect"), (A,)),
    "pad odd": (lambda xp, x: xp.pad(x, ((3, 4), (6, 7)), mode="reflect", reflect_type="odd"), (A,)),
    "pad symmetric odd": (lambda xp, x: xp.pad(x, ((3, 0), (6, 7)), mode="symmetric", reflect_type="odd"), (A,)),
    "pad values": (lambda xp, x: xp.pad(x, ((1, 2), (2, 1)), constant_values=((1.0, 2.0), (3.0, 4.0))), (A,)),
    "pad ramp": (lambda xp, x: xp.pad(x, ((2, 1), (0, 3)), mode="linear_ramp", end_values=(5.0, -4.0)), (A,)),
    "pad ramp of ints": (lambda xp: xp.pad(WHOLE, ((0, 0), (4, 2)), mode="linear_ramp", end_values=-3), ()),
    "pad maximum": (lambda xp, x: xp.pad(x, ((0, 0), (2, 2)), mode="maximum", stat_length=2), (A,)),
    "pad minimum": (lambda xp, x: xp.pad(x, (1, 2), mode="minimum"), (A,)),
    "pad mean": (lambda xp, x: xp.pad(x, ((0, 0), (2, 2)), mode="mean", stat_length=((1, 1), (2, 3))), (A,)),
    "pad mean of ints": (lambda xp: xp.pad(WHOLE, 1, mode="mean"), ()),
    "pad median": (lambda xp, x: xp.pad(x, ((0, 0), (2, 2)), mode="median"), (CUBE[0],)),
    "pad function": (lambda xp, x: xp.pad(x, 1, doubled(xp)), (A,)),
    "pad dict": (lambda xp, x: xp.pad(x, {-1: (1, 2)}, mode="edge"), (A,)),
    "partition": (lambda xp, x: xp.partition(x, 1, axis=1)[:, 1], (CUBE,)),
    "permute_dims": (lambda xp, x: xp.permute_dims(x, (2, 0, 1)), (CUBE,)),
    "piecewise": (lambda xp, x: xp.piecewise(x, [x < 0.4, x > 0.6], [lambda v: v * v, 2.0, xp.sin]), (A,)),
    "piecewise of one": (lambda xp, x: xp.piecewise(x, x < 0.4, [lambda v, c: v * c], 3.0), (V,)),
    "poly": (lambda xp, x: xp.poly(x), (V,)),
    "poly of conjugates": (lambda xp: xp.poly(np.array([1 + 1j, 1 - 1j])), ()),
    "poly of a matrix": (lambda xp, x: xp.poly(x), (SQUARE,)),
    "polyadd": (lambda xp, x, y: xp.polyadd(x, y), (V, LONG)),
    "polyder": (lambda xp, x: xp.polyder(x, 2), (LONG,)),
    "polydiv": (lambda xp, x, y: xp.polydiv(x, y)[0], (LONG, V)),
    "polydiv rest": (lambda xp, x, y: xp.polydiv(x, y)[1], (LONG, V)),
    "polyfit": (lambda xp, x, y: xp.polyfit(x, y, 2), (POINTS, LONG[:5])),
    "polyfit weighted": (lambda xp, y, w: xp.polyfit(POINTS, y, 1, w=w), (LONG[:5], POINTS + 1)),
    "polyfit of columns": (lambda xp, y: xp.polyfit(POINTS, y, 2), (RNG.normal(size=(5, 2)),)),
    "polyfit cov": (lambda xp, y: xp.polyfit(POINTS, y, 1, cov=True)[1], (LONG[:5],)),
    "polyfit full": (lambda xp, y: xp.polyfit(POINTS, y, 1, full=True)[1], (LONG[:5],)),
    "polyint": (lambda xp, x, k: xp.polyint(x, 2, k), (V, V[:2])),
    "polymul": (lambda xp, x, y: xp.polymul(x, y), (V, LONG)),
    "polysub": (lambda xp, x, y: xp.polysub(x, y), (LONG, V)),
    "pow": (lambda xp, x, y: xp.pow(x, y), (A, V)),
    "put": (changing("put", [4, 0, -1, 2]), (A, V)),
    "put_along_axis": (changing("put_along_axis", np.array([[2], [0]]), 1), (A, V[:2, None])),
    "ravel in columns": (lambda xp, x: xp.ravel(x, order="F"), (CUBE,)),
    "ravel_multi_index": (lambda xp: xp.ravel_multi_index((WHOLE % 2, WHOLE % 3), (2, 3)), ()),
    "ravel_multi_index wrap": (
        lambda xp: xp.ravel_multi_index((WHOLE, WHOLE - 4), (2, 3), mode=("clip", "wrap"), order="F"), (),
    ),
    "real_if_close": (lambda xp: xp.real_if_close(np.array([1 + 1e-15j])), ()),
    "repeat each": (lambda xp, x: xp.repeat(x, [2, 0, 1], axis=1), (A,)),
    "reshape in columns": (lambda xp, x: xp.reshape(x, (3, -1), order="F"), (CUBE,)),
    "resize": (lambda xp, x: xp.resize(x, (3, 5)), (A,)),
    "rollaxis": (lambda xp, x: xp.rollaxis(x, 2, 1), (CUBE,)),
    "roll along": (lambda xp, x: xp.roll(x, (1, 2), axis=1), (A,)),
    "roots": (lambda xp, x: xp.sort_complex(xp.roots(x)), (np.array([1.0, -6.0, 11.0, -6.0]),)),
    "roots at zero": (lambda xp: xp.sort_complex(xp.roots([0.0, 2.0, -3.0, 0.0]).astype("complex64")), ()),
    "round of ints": (lambda xp: xp.round(WHOLE * 25, -1), ()),
    "setdiff1d": (lambda xp: xp.setdiff1d(WHOLE, [3, 7]), ()),
    "setxor1d": (lambda xp: xp.setxor1d(WHOLE, [3, 7]), ()),
    "shape": (lambda xp, x: x * (xp.shape(x)[0] + xp.ndim(x) + xp.size(x)), (A,)),
    "sort_complex": (lambda xp, x: xp.sort_complex(x), (V + 1j * A[0],)),
    "spacing": (lambda xp: xp.spacing(np.array([1.0, -3.0, 0.0, 1e300])), ()),
    "std corrected": (lambda xp, x: xp.std(x, axis=0, correction=1), (CUBE,)),
    "tril_indices": (lambda xp, x: x[xp.tril_indices(2, 1, 3)], (A,)),
    "tril_indices_from": (lambda xp, x: x[xp.tril_indices_from(x, -1)], (SQUARE,)),
    "trim_zeros": (lambda xp: xp.trim_zeros(np.array([0, 0, 1, 0, 2, 0])), ()),
    "triu_indices": (lambda xp, x: x[xp.triu_indices(2, 1, 3)], (A,)),
    "triu_indices_from": (lambda xp, x: x[xp.triu_indices_from(x, -1)], (SQUARE,)),
    "union1d": (lambda xp: xp.union1d(WHOLE, [3, 7]), ()),
    "unique": (lambda xp, x: xp.unique(x), (V,)),
    "unique along": (lambda xp: xp.unique(WHOLE.T % 3, axis=1), ()),
    "unique counts": (lambda xp: xp.stack(xp.unique(WHOLE, return_index=True, return_counts=True)), ()),
    "unique_all": (lambda xp: xp.stack(xp.unique_all(WHOLE)[:2]), ()),
    "unique_counts": (lambda xp: xp.unique_counts(WHOLE).counts, ()),
    "unique_inverse": (lambda xp: xp.unique_inverse(WHOLE).inverse_indices, ()),
    "unique_values": (lambda xp: xp.sort(xp.unique_values(WHOLE)), ()),
    "unpackbits": (lambda xp: xp.unpackbits(WHOLE.astype("uint8"), axis=1, count=11), ()),
    "unpackbits little": (lambda xp: xp.unpackbits(WHOLE.astype("uint8"), count=-3, bitorder="little"), ()),
    "unravel_index": (lambda xp: xp.stack(xp.unravel_index(WHOLE, (2, 5))), ()),
    "unravel_index in columns": (lambda xp: xp.stack(xp.unravel_index(WHOLE, (2, 5), order="F")), ()),
    "unwrap": (lambda xp, x: xp.unwrap(x * 9, axis=1), (CUBE,)),
    "unwrap of ints": (lambda xp: xp.unwrap(WHOLE, period=4), ()),
    "vander": (lambda xp, x: xp.vander(x, 4), (V,)),
    "vander increasing": (lambda xp, x: xp.vander(x, increasing=True), (V,)),
    "vecmat": (lambda xp, x, y: xp.vecmat(x, y), (V + 1j, CUBE)),
    "vectorize": (lambda xp, x, y: xp.vectorize(lambda a, b: a * b + 1)(x, y), (A, V)),
    "vectorize rows": (
        lambda xp, x, y: xp.vectorize(lambda v, s: v[:2] * s, signature="(n),()->(m)")(x, y), (A, V[:2]),
    ),
    "where alone": (lambda xp: xp.where(MASK)[1], ()),
    "zeros": (lambda xp: xp.zeros(3, "int16"), ()),
    "zeros_like": (lambda xp, x: xp.zeros_like(x), (A,)),
}  # fmt: skip


METHODS = """
lower higher nearest midpoint inverted_cdf averaged_inverted_cdf closest_observation
interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased
"""
for _method in METHODS.split():
    ROWS[f"quantile {_method}"] = (
        lambda xp, x, m=_method: xp.quantile(x, np.array([0.0, 0.21, 0.5, 0.77, 1.0]), axis=1, method=m),
        (CUBE,),
    )  # fmt: skip
ROWS["quantile weighted"] = (
    lambda xp, x: xp.quantile(x, [0.3, 0.8], axis=2, method="inverted_cdf", weights=np.array([1.0, 0.5, 2.0, 0.0])),
    (CUBE,),
)  # fmt: skip

# Unary and binary functions, at points where they are smooth.
ONE = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh around asin asinh atan atanh cbrt ceil conj
conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs fix floor imag isfinite isinf isnan isneginf isposinf log log10
log1p log2 logical_not negative positive rad2deg radians real reciprocal rint sign signbit sin sinh sqrt square tan tanh
trunc amax amin argsort cumprod max min
"""
TWO = """
add arctan2 atan2 divide equal floor_divide fmin float_power greater greater_equal heaviside less less_equal
logical_and logical_or logical_xor maximum minimum mod multiply not_equal subtract true_divide
"""
INTEGER_ONE = "bitwise_invert bitwise_not invert"
INTEGER_TWO = "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor left_shift right_shift"


def of_one(name: str) -> Callable[..., Any]:
    return lambda xp, x: getattr(xp, name)(x)


def of_two(name: str) -> Callable[..., Any]:
    return lambda xp, x, y: getattr(xp, name)(x, y)


ROWS |= {name: (of_one(name), (B if name in ("acosh", "arccosh") else A,)) for name in ONE.split()}
ROWS |= {name: (of_two(name), (A, B)) for name in TWO.split()}
ROWS |= {name: (of_one(name), (WHOLE,)) for name in INTEGER_ONE.split()}
ROWS |= {name: (of_two(name), (WHOLE, WHOLE[::-1])) for name in INTEGER_TWO.split()}

#: Functions that read values, so that they cannot be under ``jit``.
BY_VALUE = {
    "argwhere", "bincount of numbers", "compress", "extract", "fill_diagonal", "flatnonzero",
    "histogram_bin_edges by a rule", "intersect1d", "intersect1d indices", "ix_", "nonzero", "poly of conjugates",
    "real_if_close", "roots", "roots at zero", "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique",
    "unique along", "unique counts", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "where alone", "from_dlpack", "mask_indices",
}  # fmt: skip
