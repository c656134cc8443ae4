"""Parametrizations: orthogonal weights, weight normalization, spectral normalization."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.dtype import finfo
from compat.nn import functional as F
from compat.nn.modules.conv import _ConvTransposeNd
from compat.nn.modules.module import Module
from compat.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Any, name: str) -> Any:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


# ---------------------------------------------------------------- orthogonal


def _is_orthogonal(q: Any) -> bool:
    identity = q.new_empty(q.shape[-1:] * 2).zero_()
    identity.diagonal().fill_(1)
    return (q.mH @ q).allclose(identity.expand_as(q.mH @ q), atol=10.0 * q.shape[-2] * finfo(q.dtype).eps)


def _orthogonalized(a: Any) -> Any:
    """The factor Q of a QR decomposition with a positive diagonal in R."""
    reflections, tau = a.geqrf()
    q = names_of("linalg")["householder_product"](reflections, tau)
    return q * reflections.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns, or rows if these are fewer."""

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:  # the orthogonal matrix around which the map is taken
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        X = X.mT if wide else X
        q = self._by_reflections(X) if self.orthogonal_map == "householder" else self._by_skew_matrix(X)
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    def _by_skew_matrix(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = names_of("torch")["cat"]([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = skew.matrix_exp()
        else:
            identity = names_of("torch")["eye"](n, dtype=skew.dtype, device=skew.device)
            q = names_of("linalg")["solve"](identity.add(skew, alpha=-0.5), identity.add(skew, alpha=0.5))
        return q if n == k else q[..., :k]

    def _by_reflections(self, x: Any) -> Any:
        below = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
        q = names_of("linalg")["householder_product"](below, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """The parameter that maps to ``Q``; if ``Q`` is not orthogonal it is orthogonalized first."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if "base" not in self._buffers:
            found = self._reflections_of(tall)
            return found.mT if wide else found
        self.base = self._base_of(tall)
        start = names_of("torch")["zeros_like"](Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _reflections_of(self, q: Any) -> Any:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        found, tau = q.geqrf()
        signs = found.diagonal(dim1=-2, dim2=-1)
        signs.sign_()
        signs[tau == 0.0] *= -1
        return found

    def _base_of(self, q: Any) -> Any:
        n, k = q.shape[-2:]
        if n == k:
            return q.clone() if _is_orthogonal(q) else _orthogonalized(q)
        more = names_of("torch")["randn"](*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
        return _orthogonalized(names_of("torch")["cat"]([q, more], dim=-1))


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keeps a matrix, or batch of matrices, orthogonal: orthonormal columns, or rows if these are fewer.

    Source: M. Lezcano Casado, "Trivializations for gradient-based optimization on manifolds", NeurIPS 2019.

    Args:
        name: the name of the parameter.
        orthogonal_map: ``"matrix_exp"`` or ``"cayley"`` of a skew matrix, or a product of ``"householder"``
            reflections; by default the first for square and complex matrices and the last for others.
        use_trivialization: whether to center the map at an orthogonal matrix, which an assignment to the parameter
            sets.

    Returns:
        The module.

    Raises:
        ValueError: if the tensor does not exist or is not a matrix, or the map is unknown.

    Example:
        >>> layer = orthogonal(torch.nn.Linear(3, 2))
        >>> torch.dist(layer.weight @ layer.weight.T, torch.eye(2)) < 1e-5
        tensor(True)
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# ---------------------------------------------------------------- weight normalization


class _WeightNorm(Module):
    """Maps norms and directions to weights."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return names_of("torch")["_weight_norm"](weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """The norms of a weight, and the weight."""
        return names_of("torch")["norm_except_dim"](weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Trains the norms of a weight's slices separately from their directions.

    State dicts saved with the deprecated ``torch.nn.utils.weight_norm`` can be loaded.

    Source: T. Salimans and D. P. Kingma, "Weight normalization", NeurIPS 2016.

    Args:
        name: the name of the parameter.
        dim: the dimension of the slices that have norms; None for a single norm.

    Returns:
        The module.

    Example:
        >>> layer = weight_norm(torch.nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
        (torch.Size([40, 1]), torch.Size([40, 20]))
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict, prefix: str, *_: Any) -> None:
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---------------------------------------------------------------- spectral normalization


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, estimated by power iteration."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, matrix.new_empty(size).normal_(0, 1))
            for name in ("_u", "_v"):
                setattr(self, name, F.normalize(getattr(self, name), dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, matrix: Any, iterations: int) -> None:
        for _ in range(iterations):
            self._u = F.normalize(matrix.mv(self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(matrix.H.mv(self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, as the next call changes these in place.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        """The value itself: assigned values must be normalized."""
        return value


def output_dim(module: Any, dim: int | None) -> int:
    """The dimension of a weight's rows: ``dim``, or the dimension of its outputs if that is None."""
    return dim if dim is not None else 1 if isinstance(module, _ConvTransposeNd) else 0


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value, estimated by power iteration in training.

    Source: T. Miyato et al., "Spectral normalization for generative adversarial networks", ICLR 2018.

    Args:
        name: the name of the parameter.
        n_power_iterations: the number of iterations per forward pass in training.
        eps: the lower bound of norms in divisions.
        dim: the dimension of the rows of the matrix; by default the output dimension.

    Returns:
        The module.

    Raises:
        ValueError: if the tensor does not exist, or ``n_power_iterations`` is not positive.

    Example:
        >>> layer = spectral_norm(torch.nn.Linear(20, 40), n_power_iterations=20)
        >>> abs(torch.linalg.matrix_norm(layer.weight, 2).item() - 1) < 0.1
        True
    """
    weight = _tensor_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    return register_parametrization(module, name, made)
