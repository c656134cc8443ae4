"""The text of tensors, the same as in PyTorch; functions of a NumPy array and a tensor's metadata."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compat._core.tensor.registry import function, not_overridable
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
@not_overridable
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
        edgeitems: the number of items that a summary shows at each end of a dimension.
        linewidth: the maximum number of characters in a line.
        profile: ``"default"``, ``"short"`` or ``"full"``; the other arguments override it.
        sci_mode: whether to use scientific notation; None to decide by the values.

    Example:
        >>> import compat as torch
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.23456])
        tensor([1.23])
        >>> torch.set_printoptions(profile="default")
    """
    given: dict[str, Any] = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    if profile in _PROFILES:  # other names are ignored, as in PyTorch: programs pass "long"
        given = _PROFILES[profile] | {k: v for k, v in given.items() if v is not None}
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments of ``set_printoptions``."""
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
    """The format of integers and bools, and the width of the longest."""
    return str, max((len(str(v)) for v in values.tolist()), default=1)


def _floating(values: np.ndarray) -> tuple[Format, int]:
    """The common format of floats (integers with a point, fixed point or scientific), and the width of the longest.

    Zeros, infinities and NaN affect neither.
    """
    p = options.precision
    significant = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    whole, scientific = True, False
    if significant.size:
        size = np.abs(significant)
        low, high = size.min(), size.max()
        whole = bool(np.all(significant == np.ceil(significant)))
        with np.errstate(over="ignore"):
            scientific = bool(high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4))
    if options.sci_mode is not None and significant.size:
        scientific = options.sci_mode

    def write(x: float) -> str:
        if scientific:
            return f"{x:.{p}e}"
        if whole:
            return f"{x:.0f}" + ("." if math.isfinite(x) else "")
        return f"{x:.{p}f}"

    return write, max((len(write(x)) for x in significant.tolist()), default=1)


class _Formatter:
    """Formats the elements of one tensor, padded to the same width."""

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
    """The indices of the items to show: all, or a range at each end."""
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
    """The elements of an array in brackets, as PyTorch prints them after ``tensor(``."""
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
        dtype: its dtype, shown unless the elements imply it.
        device: shown if given.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
        prefix: the beginning of the text.
        tangent: the text of a dual tensor's tangent, shown if given.
    """
    indent = len(prefix)
    suffixes = [] if device is None else [f"device='{device}'"]
    if array.size == 0 and array.ndim != 1:
        suffixes.append(f"size={tuple(array.shape)}")
    text = array_text(array, indent) if array.size else "[]"
    suffixes += _metadata(dtype, requires_grad, grad_fn, empty=not array.size)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return with_suffixes(prefix + text, suffixes, indent)


def contents_text(t: Any, contents: str, grad_fn: str | None) -> str:
    """The ``repr`` of a tensor with another text in place of its elements.

    Args:
        contents: that text.
        grad_fn: the name of its backward node.
    """
    on_meta = t._layout_.base.device.type == "meta"  # or a fake tensor, which claims another one
    suffixes = [f"device='{t.device}'"] if t.device.type != "cpu" else []
    if on_meta or (t.numel() == 0 and t.ndim != 1):
        suffixes.append(f"size={tuple(t.shape)}")
    suffixes += _metadata(t.dtype, t.requires_grad, grad_fn, empty=on_meta or t.numel() == 0)
    prefix = f"{type(t)._shown_as_}("
    return with_suffixes(prefix + contents, suffixes, len(prefix))


def _metadata(
    dtype: dtypes.dtype, requires_grad: bool, grad_fn: str | None, *, empty: bool = False, layout: str | None = None
) -> list[str]:
    """The last suffixes of a tensor's text: the dtype, unless the elements imply it, the layout, and the graph."""
    default = dtypes.get_default_dtype()
    implied = (default,) if empty else (default, dtypes.int64, dtypes.bool_, default.to_complex())
    suffixes = [] if dtype in implied else [f"dtype={dtype}"]
    if layout is not None:
        suffixes.append(f"layout={layout}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def with_suffixes(text: str, suffixes: Sequence[str], indent: int, below: bool = False) -> str:
    """The text with suffixes and the closing bracket; ``below`` starts a new line for the first suffix."""
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
        parts: its indices and its values.
        size, dtype: its size and dtype.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
    """
    text = _parts_text(["indices", "values"], parts)
    metadata = _metadata(dtype, requires_grad, grad_fn, layout="torch.sparse_coo")
    suffixes = [f"size={size}", f"nnz={parts[0].shape[1]}", *metadata]
    return with_suffixes("tensor(" + text, suffixes, len("tensor("), below=True)


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
        parts: its compressed and plain indices, and its values.
        size, dtype, layout: its size, dtype and layout.
        by_rows: whether rows are compressed.
        requires_grad: shown unless there is a ``grad_fn``.
        grad_fn: the name of its backward node.
    """
    names = ["crow_indices", "col_indices"] if by_rows else ["ccol_indices", "row_indices"]
    text = _parts_text([*names, "values"], parts)
    metadata = _metadata(dtype, requires_grad, grad_fn, layout=str(layout))
    suffixes = [f"size={size}", f"nnz={parts[1].shape[-1]}", *metadata]
    return with_suffixes("tensor(" + text, suffixes, len("tensor("))


def _parts_text(names: Sequence[str], parts: Sequence[np.ndarray]) -> str:
    """The texts of the parts of a sparse tensor, each on its own lines."""
    indent = len("tensor(")
    texts = []
    for name, array in zip(names, parts):
        prefix = f"{name}=tensor("
        text = array_text(array, indent + len(prefix)) if array.size else f"[], size={tuple(array.shape)}"
        texts.append(f"{prefix}{text})")
    return (",\n" + " " * indent).join(texts)
