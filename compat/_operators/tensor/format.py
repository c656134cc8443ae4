"""Tensors as text, digit for digit as PyTorch prints them.

Works on a NumPy array and the tensor's metadata, so that nothing here depends on tensors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compat._core.tensor.registry import function
from compat._core.types import dtype as dtypes
from compat._core.types.device import device as Device


@dataclasses.dataclass
class Options:
    """The options of ``set_printoptions``."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": dict(precision=4, threshold=1000, edgeitems=3, linewidth=80),
    "short": dict(precision=2, threshold=1000, edgeitems=2, linewidth=80),
    "full": dict(precision=4, threshold=math.inf, edgeitems=3, linewidth=80),
}
options = Options()


@function("torch.set_printoptions")
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed.

    Args:
        precision: digits after the point.
        threshold: tensors with more elements than this are summarized.
        edgeitems: how many items a summary keeps at each end of a dimension.
        linewidth: characters a line.
        profile: ``"default"``, ``"short"`` or ``"full"``; the other arguments override it.
        sci_mode: whether to use scientific notation; None lets the values decide.

    Example:
        >>> import compat as torch
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.23456])
        tensor([1.23])
        >>> torch.set_printoptions(profile="default")
    """
    given: dict[str, Any] = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    if profile in _PROFILES:  # as in PyTorch, another name changes nothing: programs pass "long"
        given = _PROFILES[profile] | {k: v for k, v in given.items() if v is not None}
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments of ``set_printoptions``."""
    return dataclasses.asdict(options)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """``set_printoptions`` within a ``with`` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---------------------------------------------------------------- one number

Format = Callable[[Any], str]


def _plain(values: np.ndarray) -> tuple[Format, int]:
    """Integers and bools: as Python writes them."""
    return str, max((len(str(v)) for v in values.tolist()), default=1)


def _floating(values: np.ndarray) -> tuple[Format, int]:
    """One way of writing for all values of a tensor: integers with a point, fixed, or scientific."""
    p = options.precision
    told = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    whole, scientific = True, False
    if told.size:
        size = np.abs(told)
        low, high = size.min(), size.max()
        whole = bool(np.all(told == np.ceil(told)))
        with np.errstate(over="ignore"):
            scientific = bool(high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4))
    if options.sci_mode is not None and told.size:
        scientific = options.sci_mode

    def write(x: float) -> str:
        if scientific:
            return f"{x:.{p}e}"
        if whole:
            return f"{x:.0f}" + ("." if math.isfinite(x) else "")
        return f"{x:.{p}f}"

    # Zeros, infinities and nans do not affect the width.
    return write, max((len(write(x)) for x in told.tolist()), default=1)


class _Formatter:
    """Writes the elements of one tensor, all to the same width."""

    def __init__(self, sample: np.ndarray):
        flat = sample.ravel()
        if np.iscomplexobj(flat):
            real, real_width = _floating(flat.real)
            imag, imag_width = _floating(flat.imag)

            def write(z: complex) -> str:
                second = imag(z.imag) + "j"
                sign = "" if second[0] in "+-" else "+"
                return real(z.real).rjust(real_width) + sign + second

            self.write: Format = write
            self.width, self.line_width = 0, real_width + imag_width + 1
        else:
            self.write, self.width = _floating(flat) if flat.dtype.kind == "f" else _plain(flat)
            self.line_width = self.width

    def __call__(self, x: Any) -> str:
        return self.write(x).rjust(self.width)


# ---------------------------------------------------------------- many numbers


def _edges(n: int, summarize: bool) -> tuple[range, range | None]:
    """Which indices to show: all, or a range at each end."""
    k = options.edgeitems
    if not summarize or n <= 2 * k:
        return range(n), None
    return range(k), range(n - k, n)


def _sample(array: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    for axis, n in enumerate(array.shape):
        head, tail = _edges(n, True)
        if tail is not None:
            array = np.take(array, [*head, *tail], axis=axis)
    return array


def _vector(array: np.ndarray, indent: int, summarize: bool, write: _Formatter) -> str:
    per_line = max(1, (options.linewidth - indent) // (write.line_width + 2))
    head, tail = _edges(len(array), summarize)
    if tail is None:
        words = [write(x) for x in array.tolist()]
    else:
        words = (
            [write(x) for x in array[: head.stop].tolist()]
            + [" ..."]
            + [write(x) for x in array[tail.start :].tolist()]
        )
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: np.ndarray, indent: int, summarize: bool, write: _Formatter) -> str:
    if array.ndim == 0:
        return write(array.item())
    if array.ndim == 1:
        return _vector(array, indent, summarize, write)
    head, tail = _edges(len(array), summarize)
    parts = [_nested(array[i], indent + 1, summarize, write) for i in head]
    if tail is not None:
        parts += ["...", *[_nested(array[i], indent + 1, summarize, write) for i in tail]]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def array_text(array: np.ndarray, indent: int = 0) -> str:
    """The numbers of an array in brackets, as PyTorch writes them after ``tensor(``."""
    if array.dtype.kind in "Vf" and array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    summarize = array.size > options.threshold
    write = _Formatter(_sample(array) if summarize else array)
    return _nested(array, indent, summarize, write)


# ---------------------------------------------------------------- a tensor


def tensor_text(
    array: np.ndarray,
    dtype: dtypes.dtype,
    *,
    device: Device | None = None,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    prefix: str = "tensor(",
    tangent: str | None = None,
) -> str:
    """The ``repr`` of a tensor.

    Args:
        array: its values.
        dtype: its dtype, printed unless the numbers determine it.
        device: shown if given.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
        prefix: the beginning of the text.
        tangent: that of a dual, shown if given.
    """
    indent = len(prefix)
    suffixes = [] if device is None else [f"device='{device}'"]
    default = dtypes.get_default_dtype()
    if array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        told: Sequence[dtypes.dtype] = (default,)
        text = "[]"
    else:
        told = (default, dtypes.int64, dtypes.bool_, default.to_complex())
        text = array_text(array, indent)
    if dtype not in told:
        suffixes.append(f"dtype={dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return with_suffixes(prefix + text, suffixes, indent)


def contents_text(t: Any, contents: str, grad_fn: str | None) -> str:
    """``repr`` of a tensor whose elements cannot be printed, or are not to be.

    Args:
        contents: the text in place of the elements.
        grad_fn: the name of its backward node.
    """
    on_meta = t.device.type == "meta"
    suffixes = [f"device='{t.device}'"] if t.device.type != "cpu" else []
    if on_meta or (t.numel() == 0 and t.ndim != 1):
        suffixes.append(f"size={tuple(t.shape)}")
    default = dtypes.get_default_dtype()
    told = (default,) if on_meta or t.numel() == 0 else (default, dtypes.int64, dtypes.bool_, default.to_complex())
    if t.dtype not in told:
        suffixes.append(f"dtype={t.dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    prefix = f"{type(t)._shown_as_}("
    return with_suffixes(prefix + contents, suffixes, len(prefix))


def with_suffixes(text: str, suffixes: Sequence[str], indent: int, below: bool = False) -> str:
    """The text of the values, with suffixes and the closing bracket."""
    parts = [text]
    used = options.linewidth if below else len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            used = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(parts) + ")"


def sparse_text(
    parts: tuple[np.ndarray, np.ndarray],
    size: tuple[int, ...],
    dtype: dtypes.dtype,
    *,
    requires_grad: bool = False,
    grad_fn: str | None = None,
) -> str:
    """The ``repr`` of a sparse tensor.

    Args:
        parts: its coordinates and its elements.
        size, dtype: its own.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
    """
    shown = _parts_text(["indices", "values"], parts)
    suffixes = [f"size={size}", f"nnz={parts[0].shape[1]}", *_told(dtype, "torch.sparse_coo", requires_grad, grad_fn)]
    return with_suffixes("tensor(" + shown, suffixes, len("tensor("), below=True)


def compressed_text(
    parts: Sequence[np.ndarray],
    size: tuple[int, ...],
    dtype: dtypes.dtype,
    layout: object,
    *,
    by_rows: bool,
    requires_grad: bool = False,
    grad_fn: str | None = None,
) -> str:
    """The ``repr`` of a sparse tensor with compressed rows or columns.

    Args:
        parts: its compressed and plain indices, and its elements.
        size, dtype, layout: its own.
        by_rows: whether rows are compressed.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
    """
    names = ["crow_indices", "col_indices"] if by_rows else ["ccol_indices", "row_indices"]
    shown = _parts_text([*names, "values"], parts)
    suffixes = [f"size={size}", f"nnz={parts[1].shape[-1]}", *_told(dtype, str(layout), requires_grad, grad_fn)]
    return with_suffixes("tensor(" + shown, suffixes, len("tensor("))


def _parts_text(names: Sequence[str], parts: Sequence[np.ndarray]) -> str:
    """The parts of a sparse tensor, one below the other."""
    indent = len("tensor(")
    shown = []
    for name, array in zip(names, parts):
        prefix = f"{name}=tensor("
        text = array_text(array, indent + len(prefix)) if array.size else f"[], size={tuple(array.shape)}"
        shown.append(f"{prefix}{text})")
    return (",\n" + " " * indent).join(shown)


def _told(dtype: dtypes.dtype, layout: str, requires_grad: bool, grad_fn: str | None) -> list[str]:
    """The metadata of a sparse tensor after its size: the dtype unless the numbers determine it, the layout, the
    graph."""
    default = dtypes.get_default_dtype()
    shown = [] if dtype in (default, dtypes.int64, dtypes.bool_, default.to_complex()) else [f"dtype={dtype}"]
    shown.append(f"layout={layout}")
    if grad_fn is not None:
        shown.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        shown.append("requires_grad=True")
    return shown
