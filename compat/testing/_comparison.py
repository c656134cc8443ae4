"""``assert_close``: comparison of results with tolerances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn
from compat._core.types.type_promotion import promote_types
from compat._operators.create.from_data import tensor

#: Relative and absolute tolerances by dtype; other dtypes are compared exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_OF_NUMBERS: dict[type, tuple[float, float]] = {float: (1e-7, 1e-7), complex: (1e-7, 1e-7)}
Path = tuple[Any, ...]


@dataclass(frozen=True)
class _Rules:
    """The options of a comparison."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *defaults: tuple[float, float]) -> tuple[float, float]:
        """The given tolerances, or else the wider ones of some default dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        return max(r for r, _ in defaults), max(a for _, a in defaults)


class _Mismatch(Exception):
    """A mismatch, and the index of its item."""

    def __init__(self, text: str, path: Path = ()):
        super().__init__(text)
        where = "".join(f"[{p!r}]" for p in path)
        self.text = f"{text}\n\nThe failure occurred for item {where}" if path else text


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises if two results differ by more than rounding errors.

    Args:
        actual, expected: tensors, numbers, arrays, None, or sequences and mappings of them.
        allow_subclasses: whether a subclass may stand for its class.
        rtol, atol: the tolerances, relative to ``expected`` and absolute; by default those of the dtype.
        equal_nan: whether NaN is close to NaN.
        check_device, check_dtype, check_layout, check_stride: whether these must be equal.
        msg: a message to use instead, or a function of the default message.

    Raises:
        AssertionError: if they are not close; with the position.
        TypeError: for values that cannot be compared.
        ValueError: if only one of ``rtol`` and ``atol`` is given.
        RuntimeError: if one is negative.

    Example:
        >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
        Traceback (most recent call last):
        AssertionError: Tensor-likes are not close!
        <BLANKLINE>
        Mismatched elements: 1 / 2 (50.0%)
        Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
        Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    rules = _Rules(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    try:
        pairs = list(_pairs(actual, expected, rules, ()))
        for compare in pairs:
            compare()
    except _Mismatch as found:
        text = found.text if msg is None else msg(found.text) if callable(msg) else msg
    else:
        return
    raise AssertionError(text)


def _pairs(actual: Any, expected: Any, rules: _Rules, path: Path) -> Iterator[Callable[[], None]]:
    """The comparisons of all items."""
    if _are(actual, expected, Sequence) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        for i, (a, e) in enumerate(zip(actual, expected)):
            yield from _pairs(a, e, rules, (*path, i))
    elif _are(actual, expected, Mapping):
        for key in _keys(actual, expected, path):
            yield from _pairs(actual[key], expected[key], rules, (*path, key))
    else:
        yield _pair(actual, expected, rules, path)


def _are(actual: Any, expected: Any, kind: Any) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _keys(actual: Mapping, expected: Mapping, path: Path) -> Sequence[Any]:
    missing, more = set(expected) - set(actual), set(actual) - set(expected)
    if missing or more:
        raise _Mismatch(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted(missing)}\n"
            f"Additional keys in the actual mapping: {_sorted(more)}",
            path,
        )
    return _sorted(actual)


def _sorted(keys: Any) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _pair(actual: Any, expected: Any, rules: _Rules, path: Path) -> Callable[[], None]:
    """The comparison of two items."""
    if actual is None or expected is None:
        return lambda: _compare_none(actual, expected, path)
    if _are(actual, expected, bool | np.bool_):
        return lambda: _compare_bools(bool(actual), bool(expected), path)
    numbers = (int, float, complex, np.number)
    if _are(actual, expected, numbers) and not isinstance(actual, bool) and not isinstance(expected, bool):
        return lambda: _compare_numbers(_number(actual), _number(expected), rules, path)
    numeric = isinstance(actual, numbers) or isinstance(expected, numbers)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not numeric and (type(actual) is type(expected) or (rules.allow_subclasses and related)):
        try:
            pair = _tensor(actual), _tensor(expected)
        except (TypeError, ValueError, RuntimeError):
            pass
        else:
            return lambda: _compare_tensors(*pair, rules, path)
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.number) else value


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, str):
        raise TypeError
    return tensor(value)


def _compare_none(actual: Any, expected: Any, path: Path) -> None:
    if actual is not expected:
        raise _Mismatch(f"None mismatch: {actual} is not {expected}", path)


def _compare_bools(actual: bool, expected: bool, path: Path) -> None:
    if actual is not expected:
        raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}", path)


def _compare_numbers(actual: Any, expected: Any, rules: _Rules, path: Path) -> None:
    kinds = type(actual), type(expected)
    if rules.check_dtype and kinds[0] is not kinds[1]:
        raise _Mismatch(f"The (d)types do not match: {kinds[0]} != {kinds[1]}.", path)
    _compare_scalars(actual, expected, *rules.tolerances(*[_OF_NUMBERS.get(k, (0.0, 0.0)) for k in kinds]), rules, path)


def _compare_scalars(actual: Any, expected: Any, rtol: float, atol: float, rules: _Rules, path: Path) -> None:
    if actual == expected or (rules.equal_nan and actual != actual and expected != expected):
        return
    difference = abs(actual - expected)
    if np.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    relative = float("inf") if expected == 0 else difference / abs(expected)
    exact = rtol == atol == 0
    raise _Mismatch(
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}",
        path,
    )


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


# ---------------------------------------------------------------- tensors


def _compare_tensors(actual: Tensor, expected: Tensor, rules: _Rules, path: Path) -> None:
    for name, wanted, get in (
        ("shape", True, lambda t: t.shape),
        ("device", rules.check_device, lambda t: t.device),
        ("dtype", rules.check_dtype, lambda t: t.dtype),
        ("layout", rules.check_layout, lambda t: t.layout),
        ("stride()", rules.check_stride, lambda t: t.stride()),
    ):
        if wanted and get(actual) != get(expected):
            raise _Mismatch(f"The values for attribute '{name}' do not match: {get(actual)} != {get(expected)}.", path)
    rtol, atol = rules.tolerances(*[_TOLERANCES.get(repr(t.dtype)[6:], (0.0, 0.0)) for t in (actual, expected)])
    common = promote_types(actual.dtype, expected.dtype)
    a, e = _array(actual, common), _array(expected, common)
    if a.ndim == 0:
        _compare_scalars(a.item(), e.item(), rtol, atol, rules, path)
        return
    close = _close(a, e, rtol, atol, rules.equal_nan)
    if not close.all():
        raise _Mismatch(_summary(a, e, close, common, rtol, atol), path)


def _array(t: Tensor, dtype: Dtype) -> np.ndarray:
    """A tensor's values; integers as int64, bfloat16 and float8 as float32."""
    t = t.detach().to(dtype)
    if dtype is dtypes.bfloat16 or dtype in dtypes.FLOAT8:
        t = t.to(dtypes.float32)
    array = t.numpy(force=True)
    return array if dtype.category >= dtypes.FLOATING else array.astype(np.int64)


def _close(a: np.ndarray, e: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        close = a == e
        if equal_nan:
            close |= (a != a) & (e != e)
        if rtol or atol:
            difference = np.abs(a - e)
            close |= np.isfinite(difference) & (difference <= atol + np.abs(rtol * e))
    return np.asarray(close)


def _summary(a: np.ndarray, e: np.ndarray, close: np.ndarray, dtype: Dtype, rtol: float, atol: float) -> str:
    bad, exact = int((~close).sum()), rtol == atol == 0
    with np.errstate(all="ignore"):
        difference = np.abs(a - e)
        relative = difference / np.abs(e)
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    lines.append(f"Mismatched elements: {bad} / {a.size} ({bad / a.size:.1%})")
    for what, values, tolerance in (("absolute", difference, atol), ("relative", relative, rtol)):
        values = np.where(close, 0, values).astype(values.dtype)
        place = np.unravel_index(int(np.argmax(values)), a.shape)
        index = tuple(int(i) for i in place)
        greatest = _rounded(values[place], dtype)
        lines.append(f"Greatest {what} difference: {greatest} at index {index}{_allowed(tolerance, exact)}")
    return "\n".join(lines)


def _rounded(value: Any, dtype: Dtype) -> Any:
    """A difference as a number, computed in the precision that PyTorch has for it."""
    if isinstance(value, np.integer):
        return value.item()
    if dtype.category < dtypes.FLOATING:
        return np.float32(value).item()
    return tensor(value.item(), dtype=dtype).item() if dtype is dtypes.bfloat16 else value.item()


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """As ``assert_close``, which is to be used instead; dtypes may differ, and NaN is close to NaN."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    given = [x if isinstance(x, Tensor) else tensor(x) for x in (actual, expected)]
    assert_close(*given, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
