"""Linear algebra: PyTorch's errors and nodes, gradients that PyTorch lacks, and compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.func import jvp, vmap
from tests.compat.scripts import assert_same, cases, observe

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def square(*lead: int, n: int = 3, grad: bool = True) -> Any:
    x = np.random.default_rng(0).normal(size=(*lead, n, n)) + 3 * np.eye(n)
    return torch.tensor(x, requires_grad=grad)


def positive(n: int = 3) -> Any:
    x = square(n=n, grad=False)
    return (x @ x.mT).requires_grad_()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (torch.linalg.inv, torch.linalg.LinAlgError,
         r"^linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input matrix "
         r"is singular\.$"),
        (lambda x: torch.linalg.inv(torch.stack([torch.eye(2), x])), torch.linalg.LinAlgError,
         r"^linalg.inv: \(Batch element 1\): The diagonal element 2 is zero"),
        (lambda x: torch.linalg.inv_ex(x, check_errors=True), torch.linalg.LinAlgError, "^linalg.inv_ex: The diagonal"),
        (lambda x: torch.linalg.solve(x, x), torch.linalg.LinAlgError,
         r"^torch.linalg.solve: The solver failed because the input matrix is singular\.$"),
        (lambda x: torch.linalg.cholesky(-x), torch.linalg.LinAlgError,
         r"^linalg.cholesky: The factorization could not be completed because the input is not positive-definite \(the "
         r"leading minor of order 1 is not positive-definite\)\.$"),
        (torch.linalg.lu_factor, RuntimeError, r"^torch.linalg.lu_factor: U\[2,2\] is zero and using it"),
        (lambda x: torch.linalg.svd(x * float("nan")), torch.linalg.LinAlgError,
         "^linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values"),
        (lambda x: torch.linalg.eig(x * float("nan")), RuntimeError, "^torch.linalg.eig: input tensor should not"),
        (lambda x: torch.cholesky_inverse(torch.zeros(2, 2)), torch.linalg.LinAlgError, "^cholesky_inverse: The diag"),
        (lambda x: torch.linalg.matrix_power(x, -1), torch.linalg.LinAlgError, "^linalg.inv: "),
        (lambda x: torch.linalg.det(x[0]), RuntimeError, "^linalg.det: The input tensor A must have at least 2"),
        (lambda x: torch.linalg.eigh(x[:1]), RuntimeError,
         "^linalg.eigh: A must be batches of square matrices, but they are 1 by 2 matrices$"),
        (lambda x: torch.linalg.cholesky(x.long()), RuntimeError,
         r"^linalg.cholesky: Expected a floating point or complex tensor as input\. Got Long$"),
        (lambda x: torch.linalg.qr(x.half()), NotImplementedError, "^\"geqrf_cpu\" not implemented for 'Half'"),
        (lambda x: torch.linalg.solve(x, x.double()), RuntimeError, "found A of type Float and B of type Double inst"),
        (lambda x: torch.linalg.qr(x, "foo"), RuntimeError, "^qr received unrecognized mode 'foo'"),
        (lambda x: torch.linalg.inv(torch.eye(2), out=torch.empty(0).int()), RuntimeError,
         "^Expected out tensor to have dtype float, but got int instead$"),
        (lambda x: torch.linalg.eigvals(x, out=torch.empty(0)), RuntimeError,
         "^torch.linalg.eigvals: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got eigen"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(torch.tensor(SINGULAR))


def test_errors_are_raised_by_the_call_or_reported_by_info() -> None:
    x = torch.tensor(SINGULAR) + torch.zeros(2, 2)  # not computed yet
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(x)
    assert torch.linalg.inv_ex(x).info.item() == 2
    assert torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    assert torch.linalg.solve_ex(x, x).info.dtype is torch.int32
    assert isinstance(torch.linalg.LinAlgError(), RuntimeError)


@pytest.mark.parametrize(
    ("call", "name", "saved"),
    [
        (torch.linalg.cholesky, "LinalgCholeskyExBackward0", {"L", "upper"}),
        (torch.linalg.inv, "LinalgInvExBackward0", {"inverse"}),
        (torch.linalg.det, "LinalgDetBackward0", {"A", "LU", "pivots", "result"}),
        (lambda x: torch.linalg.solve(x, x), "LinalgSolveExBackward0", {"A", "LU", "left", "pivots", "result"}),
        (torch.linalg.svdvals, "LinalgSvdBackward0",
         {"S", "S_sym_argsize_minus_1", "U", "Vh", "full_matrices"}),
        (torch.linalg.eigvalsh, "LinalgEighBackward0", {"eigenvalues", "eigenvectors"}),
        (lambda x: torch.linalg.qr(x).R, "LinalgQrBackward0", {"Q", "R", "mode"}),
        (torch.linalg.pinv, "LinalgPinvBackward0", {"result", "self"}),
        (torch.linalg.matrix_exp, "LinalgMatrixExpBackward0", {"self"}),
    ],
)  # fmt: skip
def test_nodes_and_their_saved_tensors(call: Any, name: str, saved: set[str]) -> None:
    node = call(positive()).grad_fn
    assert node.name() == name
    found = {a.removeprefix("_saved_") for a in dir(node) if a.startswith("_saved_")}
    assert found == saved
    assert all(getattr(node, f"_saved_{a}") is not None for a in saved)


def test_results_are_column_major() -> None:
    x = square(2, grad=False)
    assert torch.linalg.inv(x).stride() == (9, 1, 3)
    assert torch.linalg.cholesky(x @ x.mT).stride() == (9, 1, 3)
    assert torch.linalg.lu(x).L.stride() == (9, 3, 1)
    assert torch.linalg.matrix_exp(x).stride() == (9, 3, 1)


def test_equal_eigenvalues_and_singular_values_have_gradients() -> None:
    x = torch.eye(3, dtype=torch.float64, requires_grad=True)
    for f in (torch.linalg.eigvalsh, torch.linalg.svdvals, lambda x: torch.linalg.svd(x).S):
        (gradient,) = torch.autograd.grad(f(x).sum(), x)
        np.testing.assert_allclose(gradient.numpy(), np.eye(3), atol=1e-14)


@pytest.mark.parametrize("mode", ["complete", "r"])
def test_modes_without_a_derivative_raise_in_backward(mode: str) -> None:
    x = torch.ones(3, 2, requires_grad=True)
    found = torch.linalg.qr(x, mode).R
    assert found.grad_fn.name() == "LinalgQrBackward0"
    with pytest.raises(RuntimeError, match=r"not differentiable when mode='complete'|which is not computed when mode"):
        found.sum().backward()


def test_gradients_of_functions_of_factors() -> None:
    # d logdet(A) = inv(A).T, in both modes.
    a = positive()
    expected = np.linalg.inv(a.detach().numpy())
    functions = {
        "logdet": lambda: torch.logdet(a),
        "slogdet": lambda: torch.linalg.slogdet(a).logabsdet,
        "cholesky": lambda: 2 * torch.linalg.cholesky(a).diagonal().log().sum(),
        "lu": lambda: torch.linalg.lu(a).U.diagonal().abs().log().sum(),
        "lu_factor": lambda: torch.linalg.lu_factor(a).LU.diagonal().abs().log().sum(),
        "qr": lambda: torch.linalg.qr(a).R.diagonal().abs().log().sum(),
        "svd": lambda: torch.linalg.svdvals(a).log().sum(),
        "eigh": lambda: torch.linalg.eigvalsh(a).log().sum(),
        "eig": lambda: torch.linalg.eigvals(a).log().sum().real,
        "matrix_exp": lambda: torch.logdet(a) + 0 * torch.linalg.matrix_exp(a / 9).sum(),
    }
    for name, function in functions.items():
        (gradient,) = torch.autograd.grad(function(), a)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_second_derivatives_of_a_solution() -> None:
    a, b = square(), torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    for solve in (
        torch.linalg.solve,
        lambda a, b: torch.linalg.solve(a, b.mT, left=False).mT,
        lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
        lambda a, b: torch.linalg.inv(a) @ b,
    ):
        assert torch.autograd.gradgradcheck(solve, (a, b))


def test_transforms_of_linear_algebra() -> None:
    x = square(4, grad=False)
    np.testing.assert_allclose(vmap(torch.linalg.inv)(x).numpy(), np.linalg.inv(x.numpy()), rtol=1e-10)
    _, tangent = jvp(torch.linalg.det, (x,), (torch.ones_like(x),))
    expected = np.linalg.det(x.numpy()) * np.linalg.inv(x.numpy()).sum((1, 2))
    np.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-9)


def test_a_second_call_does_not_compile() -> None:
    from compat._operators.linalg.inverse_det import _inverse_of

    x = square(grad=False)
    torch.linalg.inv(x)
    before = len(_inverse_of.plans)
    for k in range(3):
        torch.linalg.inv(x + k)
    assert len(_inverse_of.plans) == before


def test_named_results() -> None:
    x = square(grad=False)
    names = {
        "cholesky_ex": ("L", "info"), "eig": ("eigenvalues", "eigenvectors"), "inv_ex": ("inverse", "info"),
        "lu": ("P", "L", "U"), "lu_factor": ("LU", "pivots"), "qr": ("Q", "R"), "slogdet": ("sign", "logabsdet"),
        "svd": ("U", "S", "Vh"),
    }  # fmt: skip
    for name, fields in names.items():
        found = getattr(torch.linalg, name)(x)
        assert type(found).__name__ == f"linalg_{name}"
        assert found._fields == fields


@pytest.mark.parametrize("size", [(7, 4), (4, 7), (2, 5, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_low_rank_decompositions(size: tuple[int, ...], dtype: Any) -> None:
    torch.manual_seed(0)
    left, right = torch.randn(*size[:-1], 2, dtype=dtype), torch.randn(*size[:-2], 2, size[-1], dtype=dtype)
    A = left @ right
    U, S, V = torch.svd_lowrank(A, q=2)
    torch.testing.assert_close(S, torch.linalg.svdvals(A)[..., :2])
    torch.testing.assert_close(U @ torch.diag_embed(S).to(dtype) @ V.mH, A)
    M = A.mean(dim=-2, keepdim=True)
    centred = torch.linalg.svdvals(A - M)[..., :2]
    for found in (torch.pca_lowrank(A, q=2), torch.svd_lowrank(A, q=2, M=M)):
        torch.testing.assert_close(found[1], centred)
    assert torch.pca_lowrank(A)[2].shape == (*size[:-2], size[-1], min(6, *size[-2:]))


def test_low_rank_decompositions_draw_pytorchs_numbers_and_check_arguments() -> None:
    A = torch.arange(12.0).view(4, 3)
    torch.manual_seed(0)
    torch.svd_lowrank(A.T, q=2)
    assert torch.rand(1).item() == pytest.approx(0.0223, abs=1e-4)
    with pytest.raises(ValueError, match=r"q\(=5\) must be non-negative integer and not greater than min\(m, n\)=3"):
        torch.pca_lowrank(A, q=5)
    with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
        torch.pca_lowrank(A, niter=-1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.linalg.svd(x)[0].real.sum(), "^svd_backward: The singular vectors in the complex case"),
        (lambda x: torch.linalg.svd(x[:2], full_matrices=False).Vh.real.sum(), "^svd_backward: The singular vectors"),
        (lambda x: torch.svd(x).V.real.sum(), "^svd_backward: The singular vectors in the complex case"),
        (lambda x: torch.linalg.eigh(x).eigenvectors.real.sum(), "^linalg_eigh_backward: The eigenvectors in the"),
        (lambda x: torch.linalg.eig(x).eigenvectors.real.sum(), "^linalg_eig_backward: The eigenvectors in the"),
    ],
)  # fmt: skip
def test_gradients_that_depend_on_phases_raise(call: Any, message: str) -> None:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)), requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        call(x).backward()


def test_phase_invariant_gradients_are_accepted() -> None:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3)), requires_grad=True)
    left, values, right = torch.linalg.svd(x)
    ((left * values) @ right[:2]).real.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.ones((2, 3)), atol=1e-12)  # a few products of 3 x 3 matrices


@pytest.mark.parametrize(("source", "want"), cases("matrix_norms"))
def test_norms_are_as_recorded(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 5])
def test_indefinite_matrices_are_factored_and_solved(n: int, hermitian: bool) -> None:
    rng = np.random.default_rng(n)
    half = rng.normal(size=(3, n, n)) + 1j * rng.normal(size=(3, n, n))
    half[1] *= n > 1 and 1 - np.eye(n)  # no pivot is on the diagonal at first
    whole = half + (half.conj() if hermitian else half).swapaxes(-1, -2) + (n == 1)
    factors = torch.linalg.ldl_factor(torch.tensor(whole), hermitian=hermitian)
    assert n == 1 or (factors.pivots[1] < 0).any()
    b = torch.tensor(rng.normal(size=(3, n, 2)) + 0j)
    found = torch.linalg.ldl_solve(*factors, b, hermitian=hermitian)
    np.testing.assert_allclose(whole @ found.numpy(), b.numpy(), atol=1e-11)  # condition numbers of up to a thousand
    assert not np.triu(factors.LD.numpy(), 1).any()
    ignored = torch.tensor(np.tril(whole))
    assert torch.equal(torch.linalg.ldl_factor(ignored, hermitian=hermitian).LD, factors.LD)


def test_zero_pivots_are_reported() -> None:
    zeros = torch.zeros(2, 3, 3)
    assert torch.linalg.ldl_factor_ex(zeros).info.tolist() == [1, 1]
    for call in (torch.linalg.ldl_factor, lambda a: torch.linalg.ldl_factor_ex(a, check_errors=True)):
        with pytest.raises(RuntimeError, match="Unknown error code: 1"):
            call(zeros)
