"""SparseAdam: Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from compat._core.transforms.grad_mode import no_grad
from compat._operators.create.factories import zeros_like
from compat._operators.sparse.conversion import sparse_coo_tensor
from compat._operators.tensor.multi_tensor import Job
from compat.optim.adam import check_moments
from compat.optim.optimizer import Group, MultiTensorOptimizer, check_setting, check_single


class SparseAdam(MultiTensorOptimizer):
    """Adam for sparse gradients: updates means and parameters only at the gradient's indices.

    Source: D. P. Kingma and J. Ba, "Adam: A method for stochastic optimization", ICLR 2015.

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
        zero = 0.0  # on the left, as in PyTorch's error for a string
        check_setting("learning rate", lr, zero < lr)
        check_setting("epsilon value", eps, zero < eps)
        check_moments(betas, eps)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        every = [([i, j], p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        invalid = [position for position, p in every if p.is_sparse]
        if invalid:
            raise ValueError(f"Sparse params at indices {invalid}: SparseAdam requires dense parameter tensors")
        invalid = [position for position, p in every if p.is_complex()]
        if invalid:
            raise ValueError(f"Complex params at indices {invalid}: SparseAdam does not support complex parameters")

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        with no_grad():
            for p in parameters:
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=zeros_like(p.detach()), exp_avg_sq=zeros_like(p.detach()))
                state["step"] += 1
                self._update_(p, (-p.grad if group["maximize"] else p.grad).coalesce(), state, group)

    def _update_(self, p: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        """Updates the rows of a parameter at its gradient's indices, and their means."""
        if not grad._nnz():
            return
        (beta1, beta2), step, values = group["betas"], state["step"], grad._values()
        sparse = lambda elements: sparse_coo_tensor(grad._indices(), elements, grad.shape)
        mean, square = (state[name].sparse_mask(grad)._values() for name in ("exp_avg", "exp_avg_sq"))
        mean_change, square_change = (values - mean) * (1 - beta1), (values * values - square) * (1 - beta2)
        state["exp_avg"].add_(sparse(mean_change))
        state["exp_avg_sq"].add_(sparse(square_change))
        root = (square_change + square).sqrt().add(group["eps"])
        rate = group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.add_(sparse((mean_change + mean) / root * -rate))
