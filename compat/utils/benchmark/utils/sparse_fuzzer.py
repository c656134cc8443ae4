"""Random sparse tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import float32
from compat._core.types.size import Size
from compat.utils.benchmark.utils.fuzzer import FuzzedTensor

__all__ = ["FuzzedSparseTensor"]


class FuzzedSparseTensor(FuzzedTensor):
    """A random sparse tensor. Its density and whether it is coalesced are the parameters "density" and "coalesced".

    Args:
        name: its name.
        size: the size, of numbers and names of parameters.
        min_elements, max_elements: bounds of its number of elements; other parameters are sampled again.
        dim_parameter: the name of the parameter that is its number of dimensions.
        sparse_dim: whether the parameter "sparse_dim" is its number of sparse dimensions; otherwise all are sparse.
        nnz, density, coalesced: unused, as in PyTorch.
        dtype: the dtype.
        cuda: whether it is on a GPU.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        min_elements: int | None = None,
        max_elements: int | None = None,
        dim_parameter: str | None = None,
        sparse_dim: str | None = None,
        nnz: str | None = None,
        density: str | None = None,
        coalesced: str | None = None,
        dtype: Dtype = float32,
        cuda: bool = False,
    ):
        super().__init__(
            name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter, dtype=dtype,
            cuda=cuda,
        )  # fmt: skip
        self._density, self._coalesced, self._sparse_dim = density, coalesced, sparse_dim

    @staticmethod
    def sparse_tensor_constructor(size: Any, dtype: Dtype, sparse_dim: int, nnz: int, is_coalesced: bool) -> Tensor:
        """A sparse tensor with ``nnz`` values at random indices; without ``is_coalesced``, each index occurs twice."""
        import compat as torch

        if isinstance(size, int | float):
            size = [size] * sparse_dim
        if all(n <= 0 for n in size[:sparse_dim]) and nnz != 0:
            raise AssertionError("invalid arguments")
        shape = [nnz, *size[sparse_dim:]]
        if dtype.is_floating_point:
            values = torch.rand(size=shape, dtype=dtype, device="cpu")
        else:
            values = torch.randint(1, 127, size=shape, dtype=dtype, device="cpu")
        places = torch.rand(sparse_dim, nnz, device="cpu")
        places = (places * torch.tensor(size[:sparse_dim]).unsqueeze(1).to(places)).to(torch.long)
        if not is_coalesced:
            values = torch.cat([values, torch.randn_like(values)], 0)
            places = torch.cat([places, places], 1)
        made = torch.sparse_coo_tensor(places, values, Size(size))
        return made.coalesce() if is_coalesced else made

    def _make_tensor(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        """A tensor, and a description of it."""
        size, _, _ = self._get_size_and_steps(params)
        density = params["density"]
        nnz = math.ceil(sum(size) * density)
        if nnz > sum(size):
            raise AssertionError("nnz cannot exceed total number of elements")
        dims = min(params["sparse_dim"] if self._sparse_dim else len(size), len(size))
        made = self.sparse_tensor_constructor(size, self._dtype, dims, nnz, params["coalesced"])
        if self._cuda:
            made = made.cuda()
        return made, {
            "numel": made.numel(),
            "shape": made.size(),
            "is_coalesced": made.is_coalesced(),
            "density": density,
            "sparsity": 1.0 - density,
            "sparse_dim": made.sparse_dim(),
            "dense_dim": made.dense_dim(),
            "is_hybrid": made.sparse_dim() < len(size),
            "dtype": str(self._dtype),
        }
