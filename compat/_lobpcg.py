"""``torch.lobpcg``: a few extreme eigenpairs of a large symmetric matrix, by products with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat.autograd.function import Function

__all__ = ["lobpcg"]

_EPSILONS = {dtypes.float32: 1.2e-07, dtypes.float64: 2.23e-16}


def _torch(name: str) -> Any:
    return names_of("torch")[name]


def _product(a: Any, x: Tensor) -> Tensor:
    """A matrix, the identity if it is None, times another one."""
    if a is None:
        return x
    found: Tensor = names_of("sparse")["mm"](a, x) if a.is_sparse else a @ x
    return found


@function("torch.lobpcg")
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The largest or smallest eigenvalues of ``A x = e B x``, and eigenvectors, by a locally optimal block search.

    Both results are differentiable in ``A`` and ``B``, if these are dense and the eigenvalues distinct.

    Args:
        A: ``(..., m, m)``, symmetric; dense or, without gradient, sparse.
        k: how many; by default the number of columns of ``X``, or 1.
        B: ``(..., m, m)``, symmetric positive definite; the identity by default.
        X: ``(..., m, n)`` first guesses; random by default.
        n: the number of random first guesses, by default ``k``.
        iK: ``(..., m, m)``, an approximate inverse of ``A`` that preconditions; the identity by default.
        niter: the maximum number of steps, by default 1000; negative for any number.
        tol: the relative residual at which an eigenpair is found; by default the root of the dtype's epsilon.
        largest: whether the largest eigenvalues are wanted; the default.
        method: ``"ortho"``, which keeps the basis orthonormal, or ``"basic"``, which factorizes its Gram matrix.
        tracker: a function that is called with the search after each step: its attributes ``ivars``, ``fvars``,
            ``bvars`` and ``tvars`` are dictionaries of what it knows; ``bvars["force_stop"] = True`` ends it.
        ortho_iparams, ortho_fparams, ortho_bparams: ``"i_max"``, the number of times that the basis is
            orthonormalized, and ``"ortho_tol_drop"``, the relative size of directions that are dropped.

    Returns:
        The eigenvalues, ``(..., k)``, the most extreme first, and the eigenvectors, ``(..., m, k)``.

    Raises:
        AssertionError: if ``A`` is not square.
        ValueError: if ``m`` is less than three times the number of guesses.

    Example:
        >>> e, x = torch.lobpcg(torch.diag(torch.arange(1.0, 10.0)), k=2)
        >>> e
        tensor([9., 8.])
        >>> torch.allclose(x.abs().argmax(0), torch.tensor([8, 7]))
        True
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    parameters = {**(ortho_iparams or {}), **(ortho_fparams or {}), **(ortho_bparams or {})}
    options = _Options(k, n, niter, tol, largest is not False, method, tracker, parameters)
    if any(t is not None and t.requires_grad for t in (A, B)):
        # The gradient of a symmetric matrix is symmetric.
        a = A if A.is_sparse else (A + A.mT) / 2
        b = B if B is None or B.is_sparse else (B + B.mT) / 2
        found: tuple[Tensor, Tensor] = _differentiable()(a, b, X, iK, options)
        return found
    return _batched(A, B, X, iK, options)


class _Options:
    """How the search is done; the arguments of ``lobpcg``."""

    def __init__(
        self, k: Any, n: Any, niter: Any, tol: Any, largest: bool, method: Any, tracker: Any, ortho: dict[str, Any]
    ):  # fmt: skip
        self.k, self.n, self.niter, self.tol, self.largest = k, n, 1000 if niter is None else niter, tol, largest
        self.method, self.tracker, self.ortho = "ortho" if method is None else method, tracker, ortho


def _batched(a: Tensor, b: Tensor | None, x: Tensor | None, ik: Tensor | None, options: _Options) -> Any:
    """The eigenpairs of each matrix of a batch."""
    m = a.shape[-1]
    dtype = a.dtype if a.dtype.is_floating_point or a.dtype.is_complex else dtypes.float32
    k = options.k if options.k is not None else 1 if x is None else x.shape[-1]
    n = x.shape[-1] if x is not None else k if options.n is None else options.n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    tol = options.tol if options.tol is not None else _EPSILONS[dtype] ** 0.5
    with no_grad():
        x = _torch("randn")((m, n), dtype=dtype, device=a.device) if x is None else x
        if a.dim() < 3:
            return _Search(a, b, x, ik, k, tol, options).run()
        batch = a.shape[:-2]
        bs, xs, iks = (
            None if t is None else t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (b, x, ik)
        )
        found = []
        for n, one in enumerate(a.reshape(-1, m, m)):
            own, first, inverse = (None if t is None else t[n] for t in (bs, xs, iks))
            found.append(_Search(one, own, first, inverse, k, tol, options).run())
        stack = _torch("stack")
        e, v = stack([e for e, _ in found]), stack([v for _, v in found])
        return e.reshape(*batch, *e.shape[1:]), v.reshape(*batch, *v.shape[1:])


class _Search:
    """The search for the eigenpairs of one matrix.

    Attributes:
        X, E, R: the present vectors, their values and residuals.
        ivars, fvars, bvars, tvars: what a tracker reads.
    """

    def __init__(self, a: Tensor, b: Tensor | None, x: Any, ik: Tensor | None, k: int, tol: float, options: _Options):
        self.A, self.B, self.X, self.iK, self.k, self.tol, self.options = a, b, x, ik, k, tol, options
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}
        norm = names_of("linalg")["norm"]
        self.fvars["X_norm"] = norm(x).item()
        self.fvars["A_norm"] = (norm(_product(a, x)) / self.fvars["X_norm"]).item()
        self.fvars["B_norm"] = (norm(_product(b, x)) / self.fvars["X_norm"]).item()

    def run(self) -> tuple[Tensor, Tensor]:
        """The eigenvalues and eigenvectors."""
        n, cat = self.X.shape[-1], _torch("cat")
        self.X, self.E = self._ritz(self._basis(self.X), n)
        directions = None
        while not self._stops():
            w = _product(self.iK, self.R)
            parts = [self.X, w] if directions is None else [self.X, w, directions]
            basis = self._basis(cat(parts, -1))
            x, self.E = self._ritz(basis, n)
            # The new direction is what of the step lies outside of the old vectors.
            directions = x - self.X @ (self.X.mT.conj() @ _product(self.B, x))
            self.X = x
        return self.E[: self.k], self.X[:, : self.k]

    def _stops(self) -> bool:
        """Updates the residuals, and tells whether the search ends."""
        ax, bx = _product(self.A, self.X), _product(self.B, self.X)
        self.R = ax - bx * self.E
        norm = names_of("linalg")["norm"]
        scale = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        self.tvars["rerr"] = rerr = norm(self.R, dim=0) / (norm(self.X, dim=0) * scale)
        found = (rerr < self.tol).tolist()
        self.ivars["converged_count"] = next((i for i, done in enumerate(found) if not done), len(found))
        left = self.options.niter - self.ivars["istep"]
        self.ivars["iterations_left"] = left
        if self.options.tracker is not None and self.ivars["istep"]:
            self.options.tracker(self)
        self.ivars["istep"] += 1
        return left == 0 or self.ivars["converged_count"] >= self.k or self.bvars.get("force_stop", False)

    def _basis(self, s: Tensor) -> Tensor:
        """A basis of the columns' span, orthonormal in ``B`` for the method ``"ortho"``."""
        norm = names_of("linalg")["norm"]
        for _ in range(self.options.ortho.get("i_max", 3) if self.options.method == "ortho" else 0):
            s = s / norm(s, dim=0).clamp_min(1e-300 if s.dtype == dtypes.float64 else 1e-30)
            gram = s.mT.conj() @ _product(self.B, s)
            values, vectors = names_of("linalg")["eigh"]((gram + gram.mT.conj()) / 2)
            smallest = self.options.ortho.get("ortho_tol_drop", self.tol**2) * values[-1]
            kept = values > smallest
            s = s @ (vectors[:, kept] / values[kept].sqrt())
            if bool((values[0] > 0.5 * values[-1]).item()):
                break
        return s

    def _ritz(self, basis: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """The best vectors in the span of a basis, and their values."""
        eigh = names_of("linalg")["eigh"]
        small = basis.mT.conj() @ _product(self.A, basis)
        gram = basis.mT.conj() @ _product(self.B, basis)
        if self.options.method == "ortho":
            values, z = eigh((small + small.mT.conj()) / 2)
        else:
            scale = gram.diagonal().sqrt()
            factor = names_of("linalg")["cholesky"](gram / scale[:, None] / scale)
            solve = names_of("linalg")["solve_triangular"]
            half = solve(factor, small / scale[:, None] / scale, upper=False)
            whole = solve(factor, half.mT.conj(), upper=False)
            values, z = eigh((whole + whole.mT.conj()) / 2)
            z = solve(factor.mT.conj(), z, upper=True) / scale[:, None]
        if self.options.largest:
            values, z = values.flip(-1), z.flip(-1)
        return basis @ z[:, :n], values[:n]


# ---------------------------------------------------------------- derivatives


def _gradients(a: Tensor, b: Any, e: Tensor, u: Any, ge: Tensor, gu: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients with respect to the matrices.

    With ``w_i`` the derivative of the loss along ``(A - e_i B) u_i``, they are sums of ``w_i u_i^T``.
    """
    bu = u if b is None else b @ u
    inner = u.mT @ gu
    gaps = e.unsqueeze(-2) - e.unsqueeze(-1)  # of row j and column i: e_i - e_j
    diagonal = _torch("eye")(e.shape[-1], dtype=dtypes.bool_, device=e.device)
    within = (inner / gaps.masked_fill(diagonal, 1.0)).masked_fill(diagonal, 0.0)
    rest = gu - bu @ inner
    identity = _torch("eye")(a.shape[-1], dtype=a.dtype, device=a.device)
    shifted = a.unsqueeze(-3) - e[..., None, None] * (identity if b is None else b.unsqueeze(-3))
    # On the eigenvectors themselves, where it is singular, the matrix becomes a multiple of B.
    lift = (gaps.mT + e.detach().abs().mean(-1)[..., None, None] + 1.0).unsqueeze(-2)
    shifted = shifted + (bu.unsqueeze(-3) * lift) @ bu.mT.unsqueeze(-3)
    outside = -names_of("linalg")["solve"](shifted, rest.mT.unsqueeze(-1)).squeeze(-1).mT
    outside = outside - u @ (bu.mT @ outside)
    w = u * ge.unsqueeze(-2) + u @ within + outside
    ga = w @ u.mT
    gb = -(w * e.unsqueeze(-2)) @ u.mT - (u * inner.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) / 2) @ u.mT
    return (ga + ga.mT) / 2, (gb + gb.mT) / 2


@functools.cache
def _differentiable() -> Callable[..., Any]:
    """``lobpcg`` as an autograd function."""

    class LOBPCGAutogradFunction(Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor | None, x: Tensor | None, ik: Tensor | None, options: Any) -> Any:
            e, u = _batched(a, b, x, ik, options)
            ctx.save_for_backward(a, b, e, u)
            return e, u

        @staticmethod
        def backward(ctx: Any, ge: Tensor, gu: Tensor) -> Any:
            a, b, e, u = ctx.saved_tensors
            if a.is_sparse or (b is not None and b.is_sparse):
                raise ValueError("lobpcg.backward does not support sparse input yet.")
            if a.dtype.is_complex:
                raise ValueError("lobpcg.backward does not support complex input yet.")
            ga, gb = _gradients(a, b, e, u, ge, gu)
            return ga, None if b is None else gb, None, None, None

    made: Callable[..., Any] = LOBPCGAutogradFunction.apply
    return made
