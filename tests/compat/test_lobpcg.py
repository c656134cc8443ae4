"""``torch.lobpcg``: a few extreme eigenpairs, and their derivatives."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch


def _matrices() -> tuple[Any, Any]:
    torch.manual_seed(0)
    a, b = (torch.randn(12, 12, dtype=torch.float64) for _ in range(2))
    return a @ a.T + torch.eye(12), b @ b.T + torch.eye(12) * 2


def _dense(a: Any, b: Any, largest: bool = True) -> tuple[Any, Any]:
    """All eigenpairs, by factorizations."""
    factor = torch.linalg.cholesky(b)
    half = torch.linalg.solve_triangular(factor, a, upper=False)
    whole = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    e, v = torch.linalg.eigh((whole + whole.mT) / 2)
    e, v = (e.flip(-1), v.flip(-1)) if largest else (e, v)
    return e, torch.linalg.solve_triangular(factor.mT, v, upper=True)


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
def test_eigenpairs(method: str, largest: bool) -> None:
    a, b = _matrices()
    e, v = torch.lobpcg(a, k=3, B=b, largest=largest, method=method)
    torch.testing.assert_close(e, _dense(a, b, largest)[0][:3])
    torch.testing.assert_close(a @ v, b @ v * e, rtol=0, atol=1e-5)
    torch.testing.assert_close(v.T @ b @ v, torch.eye(3, dtype=torch.float64))


def test_batches_sparse_matrices_and_guesses() -> None:
    a, _ = _matrices()
    expected = torch.linalg.eigvalsh(a).flip(-1)[:2]
    e, v = torch.lobpcg(torch.stack([a, 2 * a]), k=2)
    torch.testing.assert_close(e, torch.stack([expected, 2 * expected]))
    assert v.shape == (2, 12, 2)
    torch.testing.assert_close(torch.lobpcg(a.to_sparse(), k=2)[0], expected)
    guess = torch.randn(12, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.lobpcg(a, k=2, X=guess, iK=torch.linalg.inv(a))[0], expected)
    assert torch.lobpcg(a, X=guess, niter=1)[0].shape == (3,)


def test_a_tracker_follows_and_stops_the_search() -> None:
    seen: list[int] = []

    def stop(search: Any) -> None:
        seen.append(search.ivars["istep"])
        search.bvars["force_stop"] = len(seen) == 2

    torch.lobpcg(_matrices()[0], k=2, tracker=stop)
    assert seen == [1, 2]


def test_first_and_second_derivatives() -> None:
    a, b = (t.requires_grad_() for t in _matrices())

    def derivatives(f: Any) -> list[Any]:
        x, y = (a + a.T) / 2, (b + b.T) / 2
        e, v = f(x, y)
        loss = (e[:2] * torch.tensor([1.0, 2.0])).sum() + (v[:, :2] * v[:, :2].sum(0).sign()).pow(3).sum()
        first = torch.autograd.grad(loss, [a, b], create_graph=True)
        return [*first, *torch.autograd.grad((first[0] ** 2).sum(), [a, b])]

    found = derivatives(lambda x, y: torch.lobpcg(x, k=2, B=y, tol=1e-12))
    torch.testing.assert_close(found, derivatives(_dense))


def test_errors() -> None:
    with pytest.raises(ValueError, match="smaller than 3 x the number of requested eigenpairs"):
        torch.lobpcg(torch.eye(5), k=2)
    with pytest.raises(AssertionError, match="A must be square"):
        torch.lobpcg(torch.ones(4, 5))
    sparse = torch.eye(9).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match="does not support sparse input"):
        torch.lobpcg(sparse, k=2)[0].sum().backward()
