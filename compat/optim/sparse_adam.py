"""SparseAdam: Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from compat._core.operators.multi_tensor import Job
from compat._core.transforms.grad_mode import no_grad
from compat._operators.create.factories import zeros_like
from compat._operators.sparse.conversion import sparse_coo_tensor
from compat.optim.adam import check_moments
from compat.optim.optimizer import Group, Together, check_setting, check_single


class SparseAdam(Together):
    """Adam for sparse gradients: updates means and parameters only at the gradient's indices.

    Source: D. P. Kingma and J. Ba, "Adam: A method for stochastic optimization", ICLR 2015, applied to the rows that a
    gradient has.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, maximize: as for ``Adam``.

    Raises:
        ValueError: for settings out of range and complex parameters.
        RuntimeError: at a step, for dense gradients.

    Example:
        >>> table = torch.nn.Embedding(3, 1, sparse=True, _weight=torch.zeros(3, 1))
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.5)
        >>> table(torch.tensor([2])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach().flatten()
        tensor([ 0.0000,  0.0000, -0.5000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        check_single(lr)
        least = 0.0
        check_setting("learning rate", lr, least < lr)
        check_setting("epsilon value", eps, least < eps)
        check_moments(betas, eps)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        every = [([i, j], p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        found = [place for place, p in every if p.is_sparse]
        if found:
            raise ValueError(f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors")
        found = [place for place, p in every if p.is_complex()]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        with no_grad():
            for p in parameters:
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=zeros_like(p.detach()), exp_avg_sq=zeros_like(p.detach()))
                state["step"] += 1
                self._change_(p, (-p.grad if group["maximize"] else p.grad).coalesce(), state, group)

    def _change_(self, p: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        """Updates the rows of a parameter at its gradient's indices, and their means."""
        if not grad._nnz():
            return
        (beta, gamma), step, values = group["betas"], state["step"], grad._values()
        of = lambda elements: sparse_coo_tensor(grad._indices(), elements, grad.shape)
        mean, square = (state[name].sparse_mask(grad)._values() for name in ("exp_avg", "exp_avg_sq"))
        towards_mean, towards_square = (values - mean) * (1 - beta), (values * values - square) * (1 - gamma)
        state["exp_avg"].add_(of(towards_mean))
        state["exp_avg_sq"].add_(of(towards_square))
        root = (towards_square + square).sqrt().add(group["eps"])
        rate = group["lr"] * (1 - gamma**step) ** 0.5 / (1 - beta**step)
        p.add_(of((towards_mean + mean) / root * -rate))
