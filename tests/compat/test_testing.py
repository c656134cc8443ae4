"""``torch.testing``: messages of ``assert_close``, and results of ``make_tensor``, recorded from PyTorch 2.13."""

from __future__ import annotations

import re
import unittest
import warnings

import numpy as np
import pytest

import compat as torch
from compat.testing import assert_close, make_tensor
from compat.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, subtest

T = torch.tensor
ONE_OFF = """Tensor-likes are not close!

Mismatched elements: 1 / 2 (50.0%)
Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)
Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)"""


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (T([1.0, 2]), T([1.0, 3]), ONE_OFF),
        ([T([1.0, 2])], [T([1.0, 3])], ONE_OFF + "\n\nThe failure occurred for item [0]"),
        ({"a": (1, T([1.0, 2]))}, {"a": (1, T([1.0, 3]))}, ONE_OFF + "\n\nThe failure occurred for item ['a'][1]"),
        (
            T([1, 2, 3]),
            T([1, 2, 4]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: 1 at "
            "index (2,)\nGreatest relative difference: 0.25 at index (2,)",
        ),
        (
            torch.ones(2, 3),
            torch.zeros(2, 3),
            "Tensor-likes are not close!\n\nMismatched elements: 6 / 6 (100.0%)\nGreatest absolute difference: 1.0 at "
            "index (0, 0) (up to 1e-05 allowed)\nGreatest relative difference: inf at index (0, 0) (up to 1.3e-06 "
            "allowed)",
        ),
        (
            T([1.0, float("nan")]),
            T([1.0, float("nan")]),
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: nan at "
            "index (1,) (up to 1e-05 allowed)\nGreatest relative difference: nan at index (1,) (up to 1.3e-06 allowed)",
        ),
        (
            T([1.0], dtype=torch.bfloat16),
            T([1.1], dtype=torch.bfloat16),
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: "
            "0.1015625 at index (0,) (up to 1e-05 allowed)\nGreatest relative difference: 0.09228515625 at index (0,) "
            "(up to 0.016 allowed)",
        ),
        (
            T([1], dtype=torch.uint8),
            T([255], dtype=torch.uint8),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: 254 at "
            "index (0,)\nGreatest relative difference: 0.9960784316062927 at index (0,)",
        ),
        (T([1.0, 2, 3]), T([1.0, 2]), "The values for attribute 'shape' do not match: torch.Size([3]) != "
         "torch.Size([2])."),
        (T([1.0]), T([1.0], dtype=torch.float64), "The values for attribute 'dtype' do not match: torch.float32 != "
         "torch.float64."),
        (1, 2, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
        (1 + 1j, 1 + 2j, "Scalars are not close!\n\nExpected (1+2j) but got (1+1j).\nAbsolute difference: 1.0 (up to "
         "1e-07 allowed)\nRelative difference: 0.4472135954999579 (up to 1e-07 allowed)"),
        (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (True, False, "Booleans mismatch: True is not False"),
        (None, 1, "None mismatch: None is not 1"),
        ([1, 2], [1, 2, 3], "The length of the sequences mismatch: 2 != 3"),
        ({"a": 1}, {"b": 1}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
         "Additional keys in the actual mapping: ['a']"),
    ],
)  # fmt: skip
def test_messages_of_assert_close(actual, expected, text):
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}$"):
        assert_close(actual, expected)


def test_values_that_are_close():
    assert_close(T([1.0]), T([1.0 + 1e-6]))
    assert_close((1, [2.0]), [1, (2.0 + 1e-8,)])
    assert_close(T([1.0, float("nan")]), T([1.0, float("nan")]), equal_nan=True)
    assert_close(T([1.0]), T([1.1]), rtol=0.2, atol=0)
    assert_close(T([1, 2]), T([1.0, 2]), check_dtype=False)
    assert_close(np.array([1.0]), np.array([1.0]))
    assert_close(torch.nn.Parameter(T([1.0])), T([1.0]))
    assert_close(T([float("inf")]), T([float("inf")]))


@pytest.mark.parametrize(("actual", "expected"), [("a", "a"), (T([1.0]), 1), (np.array([1.0]), T([1.0])), (1, T(1))])
def test_types_that_assert_close_cannot_compare(actual, expected):
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(actual, expected)


def test_messages_and_tolerances():
    with pytest.raises(AssertionError, match=r"^hello$"):
        assert_close(1, 2, msg="hello")
    with pytest.raises(AssertionError, match=r"^pre Scalars are not equal!"):
        assert_close(1, 2, msg=lambda text: "pre " + text)
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1, 1, rtol=1)
    with pytest.raises(AssertionError, match=r"'stride\(\)' do not match: \(3, 1\) != \(1, 2\)"):
        assert_close(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)


@pytest.mark.parametrize(
    ("size", "options", "values"),
    [
        ((4,), {"dtype": torch.float32}, [-8.923256874084473, -7.0997514724731445, -3.8548355102539062,
                                          -8.514813423156738]),
        ((2, 3), {"dtype": torch.float64, "noncontiguous": True}, [
            [-3.8386759190164748, -5.851313472936696, 1.9485112845726895],
            [-1.1985204401066631, 5.013891461766161, 1.6999235902316054]]),
        ((3,), {"dtype": torch.complex128, "low": 1000, "high": 2000}, [
            1034.1081956505204 + 1286.740226721307j, 1772.9149443285844 + 1174.9270292812946j, ...]),
        ((4,), {"dtype": torch.bool}, [False, False, True, True]),
        ((4,), {"dtype": torch.uint8}, [6, 8, 7, 7]),
        ((2, 3), {"dtype": torch.int8, "noncontiguous": True}, [[2, 3, 6], [-1, -1, 6]]),
        ((4,), {"dtype": torch.int8, "low": -1, "high": 1, "exclude_zero": True}, [-1, -1, 1, 1]),
        ((3,), {"dtype": torch.int16, "low": -float("inf"), "high": float("inf")}, [-26774, -31080, -21255]),
        ((3,), {"dtype": torch.float32, "low": -float("inf"), "high": float("inf")}, [
            -3.3738074512063045e38, -2.6843556145132147e38, -1.4574804663160226e38]),
    ],
)  # fmt: skip
def test_values_of_make_tensor(size, options, values):
    torch.manual_seed(3)
    made = make_tensor(size, device="cpu", **options).tolist()
    assert made[: values.index(...)] == values[: values.index(...)] if ... in values else made == values


def test_how_make_tensor_lays_out():
    assert make_tensor(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True).stride() == (6, 2)
    made = make_tensor((1, 2, 2, 2), dtype=torch.float32, device="cpu", memory_format=torch.channels_last)
    assert made.stride() == (8, 1, 4, 2)
    assert make_tensor(2, dtype=torch.float32, device="cpu", requires_grad=True).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make_tensor(2, dtype=torch.complex64, device="cpu", low=1, high=1).tolist() == [1 + 1j, 1 + 1j]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dtype": torch.float32, "low": 5, "high": 1}, "`low` must be less than `high`, but got 5 >= 1"),
        ({"dtype": torch.bool, "low": 2}, "`low` must be less than `high`, but got 2 >= 2"),
        ({"dtype": torch.uint8, "high": -2}, "The value interval specified by `low` and `high` is [-9, -2), but "
         "torch.uint8 only supports [0, 256)"),
        ({"dtype": torch.int8, "low": 1000, "high": 2000}, "The value interval specified by `low` and `high` is [1000, "
         "2000), but torch.int8 only supports [-128, 128)"),
        ({"dtype": torch.int64, "requires_grad": True}, "`requires_grad=True` is not supported for boolean and "
         "integral dtypes, but got dtype=torch.int64"),
        ({"dtype": torch.float32, "low": float("nan"), "high": 1}, "`low` and `high` cannot be NaN, but got low=nan "
         "and high=1"),
    ],
)  # fmt: skip
def test_invalid_options_of_make_tensor(options, text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        make_tensor(3, device="cpu", **options)


# ---------------------------------------------------------------- test cases


class Case(TestCase):
    def runTest(self) -> None:  # noqa: N802 (unittest's name)
        pass


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (T([1.0, 2.0]), [1, 2]), (1, 1.0), (T(1.0), 1), (T([1.0]), np.ones(1)), ({"a": [1, T(2)]}, {"a": [1, 2]}),
        ((1, 2), [1, 2]), (torch.Size([1, 2]), (1, 2)), (T([float("nan")]), T([float("nan")])),
        (torch.int8, torch.int8), ("a", "a"), ({1, 2}, {2, 1}), (None, None), (True, 1),
    ],
)  # fmt: skip
def test_a_test_case_compares_values_of_several_kinds(x: object, y: object) -> None:
    if isinstance(y, np.ndarray):
        y = y.astype(np.float32)
    Case().assertEqual(x, y)
    with pytest.raises(AssertionError):
        Case().assertNotEqual(x, y)


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (T([1.0]), T([1.1]), "not close"), (T([1.0]), T([1.0]).double(), "'dtype' do not match"),
        ([1], [1, 2], "length of the sequences mismatch"), ({"a": 1}, {"b": 1}, "keys of the mappings"),
        ("a", "b", "String comparison failed"), (1, 2, "Scalars"), (T(1), None, "None"),
    ],
)  # fmt: skip
def test_a_test_case_tells_differences(x: object, y: object, text: str) -> None:
    with pytest.raises((AssertionError, TypeError, RuntimeError), match=text):
        Case().assertEqual(x, y)


def test_tolerances_of_a_class_are_the_least() -> None:
    class Rough(Case):
        precision = 0.2

    Rough().assertEqual(T([1.0]), T([1.1]))
    with pytest.raises(AssertionError, match="more"):
        Case().assertEqual(T([1.0]), T([1.1]), "more")


def test_a_test_for_each_of_several_parameters() -> None:
    seen = []

    @instantiate_parametrized_tests
    class Many(TestCase):
        @parametrize("a", [1, subtest(2.5, name="x")])
        @parametrize("b,c", [(torch.float32, "q"), (3, None)])
        def test_it(self, a: object, b: object, c: object) -> None:
            seen.append((a, b, c))

    names = [name for name in dir(Many) if name.startswith("test")]
    assert names == ["test_it_a_1_b_3_c1", "test_it_a_1_float32_c_q", "test_it_x_b_3_c1", "test_it_x_float32_c_q"]
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(Many).run(result)
    assert result.testsRun == 4
    assert (2.5, 3, None) in seen
