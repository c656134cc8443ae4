"""Test cases that compare tensors, and tests for each of several parameters."""

from __future__ import annotations

import functools
import random
import sys
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from compat._core.random.generator import manual_seed
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._operators.create.from_buffer import as_tensor
from compat.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from compat.random import fork_rng
from compat.testing._comparison import assert_close
from compat.testing._creation import make_tensor

__all__ = [
    "IS_LINUX", "IS_MACOS", "IS_WINDOWS", "SEED", "TEST_CUDA", "TEST_WITH_ROCM", "TestCase", "freeze_rng_state",
    "instantiate_parametrized_tests", "make_tensor", "parametrize", "run_tests", "set_default_dtype",
    "set_rng_seed", "subtest",
]  # fmt: skip

SEED = 1234
IS_LINUX, IS_MACOS, IS_WINDOWS = (sys.platform.startswith(p) for p in ("linux", "darwin", "win32"))
TEST_CUDA = TEST_WITH_ROCM = False

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_SEQUENCES = (Sequence, Sequential, ModuleList, ParameterList)
_MAPPINGS = (Mapping, ModuleDict, ParameterDict)


def set_rng_seed(seed: int | None = None) -> None:
    """Seeds the generators of PyTorch, Python and NumPy."""
    chosen = SEED if seed is None else seed
    manual_seed(chosen)
    random.seed(chosen)
    np.random.seed(chosen)  # noqa: NPY002 (programs use these)


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A context after which PyTorch's random numbers go on as if it had drawn none."""
    with fork_rng():
        yield


@contextmanager
def set_default_dtype(dtype: Dtype) -> Iterator[None]:
    """A context with another default dtype."""
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtype)
    try:
        yield
    finally:
        dtypes.set_default_dtype(before)


# ---------------------------------------------------------------- test cases


class TestCase(unittest.TestCase):
    """A test case whose ``assertEqual`` compares tensors, arrays, numbers and containers of them, with tolerances.

    Attributes:
        precision: the least absolute tolerance.
        rel_tol: the least relative tolerance.

    Example:
        >>> from compat.testing._internal.common_utils import TestCase
        >>> case = TestCase()
        >>> case.assertEqual(torch.ones(2), [1, 1 + 1e-7])
        >>> case.assertEqual({"a": torch.ones(2)}, {"a": torch.zeros(2)})
        Traceback (most recent call last):
        AssertionError: Tensor-likes are not close!
        ...
    """

    __test__ = False
    precision: ClassVar[float] = 0
    rel_tol: ClassVar[float] = 0
    maxDiff = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True  # pytest collects the classes of tests, not this one

    def setUp(self) -> None:
        """Seeds the generators before each test."""
        super().setUp()
        set_rng_seed()

    def assertEqual(  # noqa: N802 (unittest's name)
        self, x: Any, y: Any, msg: str | Callable[[str], str] | None = None, *, atol: float | None = None,
        rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False,
        exact_layout: bool = False, exact_stride: bool = False, exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Fails unless two values are close.

        Args:
            x, y: tensors, arrays, numbers, other objects, or containers of them. A number is compared with a tensor
                of one element, and a sequence of numbers with a tensor.
            msg: added to the message; or a function from the message to another.
            atol, rtol: the tolerances, absolute and relative to ``y``; by default those of the dtype.
            equal_nan: whether NaN is close to NaN.
            exact_dtype, exact_device, exact_layout, exact_stride, exact_is_coalesced: whether these must be equal.
        """
        options: dict[str, Any] = {
            "equal_nan": equal_nan, "check_dtype": exact_dtype, "check_device": exact_device,
            "check_layout": exact_layout, "check_stride": exact_stride,
        }  # fmt: skip
        try:
            self._compare(x, y, atol, rtol, options)
            if exact_is_coalesced and isinstance(x, Tensor) and x.is_sparse and x.is_coalesced() != y.is_coalesced():
                raise AssertionError(f"is_coalesced() does not match: {x.is_coalesced()} != {y.is_coalesced()}")
        except AssertionError as error:
            text = str(error)
            raise AssertionError(msg(text) if callable(msg) else f"{text}\n{msg}" if msg else text) from None

    def _compare(self, x: Any, y: Any, atol: float | None, rtol: float | None, options: dict[str, Any]) -> None:
        if isinstance(x, (Tensor, np.ndarray)) or isinstance(y, (Tensor, np.ndarray)):
            exact = all(isinstance(v, (Tensor, np.ndarray)) for v in (x, y))
            checks = options if exact else options | {"check_dtype": False}
            like = x if isinstance(x, Tensor) else y if isinstance(y, Tensor) else None
            self._close(_as_tensor(x, like), _as_tensor(y, like), atol, rtol, checks)
        elif isinstance(x, (str, bytes)) or isinstance(y, (str, bytes)):
            if x != y:
                raise AssertionError(f"String comparison failed: {x!r} != {y!r}")
        elif isinstance(x, _MAPPINGS) and isinstance(y, _MAPPINGS):
            super().assertEqual(set(x), set(y), "The keys of the mappings do not match")
            for key in x:
                self._compare(x[key], y[key], atol, rtol, options)
        elif isinstance(x, _SEQUENCES) and isinstance(y, _SEQUENCES):
            if len(x) != len(y):
                raise AssertionError(f"The length of the sequences mismatch: {len(x)} != {len(y)}")
            for a, b in zip(x, y):
                self._compare(a, b, atol, rtol, options)
        elif isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
            self._close(_number(x), _number(y), atol, rtol, options | {"check_dtype": False})
        else:
            super().assertEqual(x, y)

    def _close(self, x: Any, y: Any, atol: float | None, rtol: float | None, options: dict[str, Any]) -> None:
        if x.shape != y.shape and 1 == x.numel() == y.numel():
            x, y = x.reshape(()), y.reshape(())
        if not (self.precision or self.rel_tol):
            assert_close(x, y, atol=atol, rtol=rtol, **options)
            return
        assert_close(
            x, y, atol=max(atol or 0.0, self.precision), rtol=max(rtol or 0.0, self.rel_tol), **options
        )  # fmt: skip

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """``assertEqual`` of values whose dtypes may differ."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualBroadcasting(self, x: Tensor, y: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """``assertEqual`` of a tensor and a value that is broadcast to its shape."""
        self.assertEqual(x, as_tensor(y, dtype=x.dtype).broadcast_to(x.shape), *args, **kwargs)

    def assertNotEqual(  # type: ignore[override]  # noqa: N802
        self, x: Any, y: Any, msg: str | None = None, *, atol: float | None = None, rtol: float | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        """Fails if ``assertEqual`` does not."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **kwargs)


def _as_tensor(value: Any, like: Tensor | None) -> Tensor:
    """A number, an array or a sequence as a tensor, of the dtype of the tensor that it is compared with."""
    if isinstance(value, Tensor):
        return value.to_dense() if value.is_sparse else value
    given = value if isinstance(value, (np.ndarray, np.generic)) or like is None else None
    return as_tensor(value) if given is not None else as_tensor(value, dtype=like.dtype)  # type: ignore[union-attr]


def _number(value: Any) -> Tensor:
    return as_tensor(value.item() if isinstance(value, np.generic) else value, dtype=None)


# ---------------------------------------------------------------- parameters


@dataclass
class subtest:
    """The parameters of one test of ``parametrize``, with a name and decorators.

    Args:
        arg_values: the parameters.
        name: the suffix of the test's name.
        decorators: applied to this test only.
    """

    arg_values: Any
    name: str | None = None
    decorators: Iterable[Callable[..., Any]] = field(default_factory=list)


class parametrize:
    """Decorates a test that is to be run with several parameters, in a class that ``instantiate_parametrized_tests``
    is given.

    Args:
        arg_str: the names of the parameters, separated by commas.
        arg_values: their values for each test, a tuple of them for several parameters.
        name_fn: a function from values to the suffix of the test's name.
    """

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None):
        self.arg_names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.arg_values = list(arg_values)
        self.name_fn = name_fn

    def __call__(self, test: Any) -> Any:
        test._parameters = [self, *getattr(test, "_parameters", ())]
        return test

    def variants(self, test: Any) -> Iterator[tuple[str, dict[str, Any], Iterable[Callable[..., Any]]]]:
        """The name's end, the arguments and the decorators of each test.

        Raises:
            ValueError: without any values.
            RuntimeError: for a wrong number of values.
        """
        if not self.arg_values:
            raise ValueError(f"{test}: An empty arg_values was passed to @parametrize.")
        for n, given in enumerate(self.arg_values):
            case = given if isinstance(given, subtest) else subtest(given)
            values = list(case.arg_values) if len(self.arg_names) > 1 else [case.arg_values]
            if len(values) != len(self.arg_names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values and {len(self.arg_names)} "
                    f'names for test "{test.__name__}"'
                )
            name = case.name or (self.name_fn(*values) if self.name_fn else self._name(n, values))
            yield name, dict(zip(self.arg_names, values)), case.decorators

    def _name(self, n: int, values: list[Any]) -> str:
        return "_".join(_shown(n, name, value) for name, value in zip(self.arg_names, values))


def _shown(n: int, name: str, value: Any) -> str:
    if isinstance(value, Dtype):
        return repr(value).rpartition(".")[2]
    if isinstance(value, Device):
        return str(value)
    return f"{name}_{str(value).replace('.', '_')}" if isinstance(value, (int, float, str)) else f"{name}{n}"


def instantiate_parametrized_tests(generic_cls: Any) -> Any:
    """Replaces each test of a class that ``parametrize`` decorates by one for each of its parameters.

    Example:
        >>> from compat.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize
        >>> @instantiate_parametrized_tests
        ... class Sums(TestCase):
        ...     @parametrize("n", [1, 2])
        ...     def test_sum(self, n):
        ...         self.assertEqual(torch.ones(n).sum(), n)
        >>> [name for name in dir(Sums) if name.startswith("test")]
        ['test_sum_n_1', 'test_sum_n_2']
    """
    for name in dir(generic_cls):
        test = getattr(generic_cls, name)
        if hasattr(test, "_parameters"):
            delattr(generic_cls, name)
            _instantiate(generic_cls, test.__name__, test, test._parameters, {})
    return generic_cls


def _instantiate(cls: Any, name: str, test: Any, left: list[parametrize], arguments: dict[str, Any]) -> None:
    if not left:
        if hasattr(cls, name):
            raise AssertionError(f"Redefinition of test {name}")
        made = functools.partialmethod(test, **arguments)
        setattr(cls, name, functools.wraps(test)(lambda self, run=made: run.__get__(self, cls)()))
        return
    for ending, more, decorators in left[0].variants(test):
        decorated = functools.reduce(lambda f, decorate: decorate(f), decorators, test)
        _instantiate(cls, f"{name}_{ending}", decorated, left[1:], arguments | more)


def run_tests(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the main module, and exits."""
    unittest.main(argv=None if argv is None else list(argv))
