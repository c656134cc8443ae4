"""``torch.sparse``: sparse tensors, of COO and compressed layouts.

Example:
    >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    >>> s = x.to_sparse()
    >>> torch.sparse.mm(s, torch.ones(2, 1)).sum().backward()
    >>> x.grad
    tensor([[0., 1.],
            [1., 0.]])
"""

from compat._core.tensor.registry import lookups as _lookups
from compat._operators.sparse import (
    arithmetic, compressed_factories, compressed_shapes, conversion, layouts, legacy, linear, reductions, shapes,
)  # fmt: skip

__getattr__, __dir__ = _lookups("sparse", globals())

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"]
