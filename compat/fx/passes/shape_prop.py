"""``ShapeProp``: records the shape, dtype and layout of each value of a graph by running it."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
)
from compat._core.types.memory_format import (
    memory_format as MemoryFormat,
)
from compat._core.types.size import Size
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node, map_aggregate
from compat.nn.modules.module import Module

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values.

    Attributes:
        memory_format: the first format that its strides have; None if they have none.
        is_quantized, qparams: False, and empty: there are no quantized tensors.
    """

    shape: Size
    dtype: Dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: MemoryFormat | None
    is_quantized: bool
    qparams: dict[str, Any]


#: The formats by the number of dimensions that they are of; None if they are of any.
_FORMATS = ((contiguous_format, None), (channels_last, 4), (channels_last_3d, 5))


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = (f for f, ndim in _FORMATS if ndim in (None, result.dim()) and result.is_contiguous(memory_format=f))
    found = next(formats, None) if include_contiguity else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


def record_metadata(node: Node, result: Any) -> None:
    """Writes the metadata of a node's value into ``meta["tensor_meta"]``, in the value's structure, if it has a tensor;
    and its type into ``meta["type"]``."""
    tensors: list[Tensor] = []

    def extract(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        tensors.append(x)
        return _extract_tensor_metadata(x)

    metadata = map_aggregate(result, extract)
    if tensors:
        node.meta["tensor_meta"] = metadata
    node.meta["type"] = type(result)


def with_fake_weights(module: Module, mode: Any) -> Any:
    """A copy of a module with fake tensors as its parameters and buffers."""
    weights = [*module.parameters(), *module.buffers()]
    return copy.deepcopy(module, {id(t): mode.from_tensor(t) for t in weights})


class ShapeProp(Interpreter):
    """Runs a graph module, and records what each value is: ``node.meta["tensor_meta"]`` is a ``TensorMetadata``, or a
    structure of them, and ``node.meta["type"]`` the type of the value.

    Args:
        gm: the module.
        fake_mode: a ``FakeTensorMode`` to run it in, without memory for its values.

    Example:
        >>> from compat.fx.passes.shape_prop import ShapeProp
        >>> net = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
        >>> _ = ShapeProp(net).propagate(torch.ones(4, 2))
        >>> [node.meta["tensor_meta"].shape for node in net.graph.find_nodes(op="output")]
        [torch.Size([4, 3])]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None):
        super().__init__(gm if fake_mode is None else with_fake_weights(gm, fake_mode), graph=gm.graph)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Runs a node, and records what its value is.

        Raises:
            RuntimeError: if it fails, with the node.
        """
        try:
            with nullcontext() if self.fake_mode is None else self.fake_mode:
                result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        record_metadata(n, result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module; returns its result.

        Args:
            args: its arguments.
        """
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(t) if isinstance(t, Tensor) else t for t in args)
        return self.run(*args)
