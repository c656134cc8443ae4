"""Creating tensors, and their ``out`` arguments."""

import math
from typing import Any

import pytest

import compat as torch


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: torch.zeros(2, **more),
        lambda **more: torch.empty(2, **more),
        lambda **more: torch.full((2,), 1, **more),
        lambda **more: torch.arange(2, **more),
        lambda **more: torch.linspace(0, 1, 2, **more),
        lambda **more: torch.logspace(0, 1, 2, **more),
        lambda **more: torch.eye(2, **more),
        lambda **more: torch.rand(2, **more),
    ],
)
def test_out_that_conflicts_with_dtype_or_device_raises(make):
    out = torch.full((5,), 7.0)
    with pytest.raises(RuntimeError, match=r"^dtype Double does not match dtype of out parameter \(Float\)$"):
        make(out=out, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"^device type meta does not match device type of out parameter \(cpu\)$"):
        make(out=out, device="meta")
    assert out.tolist() == [7.0] * 5


@pytest.mark.filterwarnings("error")
def test_out_is_resized_in_silence():
    assert torch.zeros(2, out=torch.ones(5)).tolist() == [0.0, 0.0]
    assert torch.eye(2, out=torch.ones(5)).shape == (2, 2)
    assert torch.arange(4, out=torch.ones(2, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert torch.randperm(0, out=torch.ones(3, dtype=torch.int64)).shape == (0,)
    with pytest.raises(UserWarning, match="The out tensor will be resized to a tensor of shape"):
        torch.arange(4, out=torch.ones(2))


def test_complex_numbers_as_other_dtypes():
    assert torch.tensor([0j, 1e-323j, 1 + 2j], dtype=torch.bool).tolist() == [False, True, True]
    with pytest.raises(TypeError, match="'complex' object cannot be interpreted as an integer"):
        torch.tensor([1j], dtype=torch.int32)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1j], dtype=torch.float32)
    with pytest.raises(RuntimeError, match=r"torch.logspace\(\): inferred dtype .* can't be safely cast"):
        torch.logspace(0, 1j, 3, dtype=torch.float32)


def test_sizes_beyond_memory():
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        torch.empty([0, 4, 2**61])
    with pytest.raises(RuntimeError, match=r"can't allocate memory: you tried to allocate 4611686018427387904 bytes"):
        torch.empty(2**60)


@pytest.mark.parametrize(
    "call",
    [
        lambda number: torch.add(torch.ones(2), torch.ones(2), alpha=number),
        lambda number: torch.addcmul(torch.ones(2), torch.ones(2), torch.ones(2), value=number),
        lambda number: torch.nn.functional.leaky_relu(torch.ones(2), number),
        lambda number: torch.full((2,), number),
        lambda number: torch.full_like(torch.ones(2), number),
    ],
)
def test_tensors_that_require_grad_are_not_numbers(call):
    call(torch.tensor(1.0))
    with pytest.raises(TypeError, match="must be Number, not Tensor"):
        call(torch.tensor(1.0, requires_grad=True))


@pytest.mark.parametrize("name", ["zeros", "empty"])
def test_sparse_tensors_that_keep_nothing(name: str) -> None:
    make = getattr(torch, name)
    coo = make(2, 3, layout=torch.sparse_coo, dtype=torch.float64, requires_grad=True)
    assert (coo.layout, coo._nnz(), coo.dtype, coo.requires_grad) == (torch.sparse_coo, 0, torch.float64, True)
    assert coo.detach().to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    csr, csc = (make((4, 2, 3), layout=layout) for layout in (torch.sparse_csr, torch.sparse_csc))
    assert (csr.crow_indices().shape, csc.ccol_indices().shape) == ((4, 3), (4, 4))
    assert csr.values().shape == (4, 0)
    dense = torch.ones(2, 3, dtype=torch.float16)
    assert getattr(dense, f"new_{name}")(2, 2, layout=torch.sparse_coo).dtype is torch.float16
    assert torch.zeros_like(dense, layout=torch.sparse_csr)._nnz() == 0
    with pytest.raises(RuntimeError, match=rf"torch.{name}: Only batched sparse compressed .* got size \[3\]"):
        make(3, layout=torch.sparse_csr)
    with pytest.raises(RuntimeError, match=rf"{name}_sparse_compressed .* but got SparseBsr"):
        make(2, 2, layout=torch.sparse_bsr)


def test_sparse_tensors_of_other_values_are_refused() -> None:
    for make in (lambda **o: torch.ones(2, **o), lambda **o: torch.full((2,), 3, **o), torch.ones(2).new_ones):
        with pytest.raises((RuntimeError, TypeError), match=r"not implemented for sparse layout|size"):
            make(layout=torch.sparse_coo)  # type: ignore[operator]
    with pytest.raises(NotImplementedError, match="_mkldnn"):
        torch.zeros(2, layout=torch._mkldnn)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_a_list_of_scalar_tensors(dtype: Any) -> None:
    scalars = [torch.tensor(1, dtype=dtype), torch.tensor(0, dtype=dtype)]
    made = torch.tensor(scalars)
    assert made.dtype is dtype and made.tolist() == [1, 0]
    assert torch.tensor([*scalars, 2.5]).dtype is torch.promote_types(dtype, torch.float32)
    assert torch.tensor([s.reshape(1) for s in scalars]).shape == (2,)
    assert torch.tensor(scalars, dtype=torch.complex128).tolist() == [1, 0]


@pytest.mark.parametrize("two", [torch.tensor(2), torch.tensor(2, dtype=torch.uint8), torch.tensor([2])])
def test_sizes_and_bounds_may_be_tensors(two):
    assert torch.linspace(0, 1, two).tolist() == [0.0, 1.0]
    assert torch.logspace(0, 1, two).tolist() == [1.0, 10.0]
    assert torch.eye(two).tolist() == torch.eye(2, two).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert torch.tril_indices(two, two, two - 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.range(0, two.sum(), two.sum()).tolist() == [0.0, 2.0]
    assert torch.arange(3.0).topk(two).indices.tolist() == [2, 1]
    assert torch.matrix_power(2 * torch.eye(1), two).tolist() == [[4.0]]


def test_a_float_is_no_size():
    for call, text in (
        (torch.eye, r"eye\(\): argument 'n' \(position 1\) must be int, not Tensor"),
        (lambda n: torch.linspace(0, 1, n), "linspace"),
        (
            lambda n: torch.tril_indices(n, 2),
            r"tril_indices\(\): argument 'row' \(position 1\) must be int, not Tensor",
        ),
    ):
        with pytest.raises(TypeError, match=text):
            call(torch.tensor(2.0))


def test_repeated_factories_tell_equal_arguments_apart():
    """A call is found by its arguments; equal ones of other types, and other settings, make other tensors."""
    for _ in range(2):
        assert [torch.full((1,), v).dtype for v in (1, 1.0, True)] == [torch.int64, torch.float32, torch.bool]
        assert [math.copysign(1, torch.full((), v).item()) for v in (0.0, -0.0)] == [1, -1]
        assert torch.full((), math.nan).isnan()
        assert torch.arange(3).dtype is torch.int64 and torch.arange(3.0).dtype is torch.float32
        assert torch.zeros_like(torch.arange(2)).dtype is torch.int64
        assert torch.full((2,), torch.tensor(1)).tolist() == [1, 1] and torch.full((2,), torch.tensor(2)).tolist() == [
            2,
            2,
        ]
        assert torch.zeros(2, requires_grad=True).requires_grad and not torch.zeros(2).requires_grad
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert torch.zeros(2).is_meta
    torch.empty(2), torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(2).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)
    with pytest.raises(TypeError):
        torch.zeros(3, "dtype", torch.float32)


def test_repeated_factories_make_separate_tensors():
    a, b = torch.zeros(3), torch.zeros(3)
    a += 1
    assert b.tolist() == torch.zeros(3).tolist() == [0, 0, 0]
    out = torch.ones(4)
    assert torch.arange(4, out=out) is out and torch.arange(4, out=out) is out
