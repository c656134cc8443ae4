"""Differentiable collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._distributed import collectives
from compat._distributed.groups import chosen_group, one_rank
from compat._distributed.reduce_op import ReduceOp
from compat.autograd.function import Function

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _empty(t: Tensor) -> Tensor:
    return names_of("torch")["empty_like"](t)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        tensor = tensor.clone()
        collectives.broadcast(tensor, group=group, group_src=source)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        total = _Reduce.apply(ctx.source, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if ctx.group.rank() == ctx.source else total.new_zeros(total.shape)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, to: int, group: Any, tensor: Tensor) -> tuple:
        ctx.to, ctx.group = to, group
        found = [tensor.new_zeros(tensor.shape) for _ in range(group.size())]
        collectives.gather(tensor.contiguous(), found if group.rank() == to else None, group=group, group_dst=to)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, None, _Scatter.apply(ctx.to, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        found = _empty(tensors[0])
        given = [t.contiguous() for t in tensors] if group.rank() == source else None
        collectives.scatter(found, given, group=group, group_src=source)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, *_Gather.apply(ctx.source, ctx.group, grad)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, to: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.to, ctx.group = to, group
        tensor = tensor.clone()
        collectives.reduce(tensor, op=op, group=group, group_dst=to)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, None, _Broadcast.apply(ctx.to, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        found = _empty(output)
        collectives.reduce_scatter(found, [t.contiguous() for t in tensors], op, group)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple:
        ctx.group = group
        found = [_empty(tensor) for _ in range(group.size())]
        collectives.all_gather(found, tensor.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[0], *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Sequence[Tensor], *tensors: Tensor) -> tuple:
        ctx.group, ctx.sizes = group, [t.shape for t in tensors]
        found = [_empty(t) for t in outputs]
        collectives.all_to_all(found, [t.contiguous() for t in tensors], group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        outputs = [grads[0].new_zeros(size) for size in ctx.sizes]
        return None, None, *_AllToAll.apply(ctx.group, outputs, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, into: Any, sent: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.size, ctx.into, ctx.sent = group, tensor.shape, into, sent
        found = _empty(output)
        collectives.all_to_all_single(found, tensor.contiguous(), into, sent, group)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        output = grad.new_zeros(ctx.size)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, output, ctx.sent, ctx.into, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        tensor = tensor.clone()
        collectives.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Broadcasts the tensor of one process; its gradient is the sum over the processes."""
    found = chosen_group(group)
    return _Broadcast.apply(one_rank(found, src, None), found, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, in one process; zeros in the others."""
    found = chosen_group(group)
    return _Gather.apply(one_rank(found, dst, None), found, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor for this process of the tensors in one process."""
    found = chosen_group(group)
    return _Scatter.apply(one_rank(found, src, None), found, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all processes' tensors, in one process; this process's tensor in the others."""
    found = chosen_group(group)
    return _Reduce.apply(one_rank(found, dst, None), op, found, tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of the tensors that all processes have for this one, of the size of ``output``."""
    return _ReduceScatter.apply(op, chosen_group(group), output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, in all processes."""
    return _AllGather.apply(chosen_group(group), tensor)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple:
    """The tensors that the processes have for this one, of the sizes of ``output_tensor_list``."""
    return _AllToAll.apply(chosen_group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """The slices along the first dimension that the processes have for this one, of the size of ``output``."""
    return _AllToAllSingle.apply(chosen_group(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all processes' tensors, in all processes; gradients are reduced likewise."""
    return _AllReduce.apply(op, chosen_group(group), tensor)
