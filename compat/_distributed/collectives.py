"""Collectives over all processes of a group.

All processes of the group call the same collectives in the same order, with tensors of the same shapes and dtypes. With
``async_op=True`` a call returns a ``Work`` immediately, and the tensors are written when it is done; otherwise it
returns None after that. They are not differentiable; ``torch.distributed.nn.functional`` has differentiable ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._distributed.groups import ProcessGroup, chosen_group, not_in, one_rank
from compat._distributed.reduce_op import RedOpType, ReduceOp, kind_of
from compat._distributed.tensors import check_one_dtype, check_sizes, check_tensor, check_tensors, like, reader, write
from compat._distributed.transport import algorithms
from compat._distributed.transport.call import Call
from compat._distributed.transport.errors import DistBackendError
from compat._distributed.work import Work

_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)
_ORDERED = (RedOpType.MIN, RedOpType.MAX, RedOpType.PRODUCT, *_BITWISE)


def _exchanged(
    name: str, group: ProcessGroup, written: Any, later: bool, exchange: Callable[[Call], None],
    timeout: timedelta | float | None = None,
) -> Work | None:  # fmt: skip
    """Runs a collective as the group's next call."""
    call = group.begin(name, timeout)

    def run() -> None:
        with call:
            exchange(call)

    return group.run(run, written, later)


def _op(name: str, op: Any, *tensors: Tensor) -> str:
    kind = kind_of(op)
    for t in tensors:
        if t.is_complex() and kind in _ORDERED:
            problem = ValueError if name == "all_reduce" else RuntimeError
            raise problem(f"{name} does not support {kind} on complex tensors")
        if kind is RedOpType.AVG and not (t.dtype.is_floating_point or t.is_complex()):
            raise RuntimeError(f"{name}: ReduceOp.AVG takes floating point or complex tensors, got {t.dtype}")
        if kind in _BITWISE and t.dtype.is_floating_point:
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    return kind.name


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replaces a tensor in all processes by the reduction of all processes' tensors.

    Args:
        tensor: of any shape and dtype, the same in all processes; it is written.
        op: the reduction.
        group: the group; all processes by default.
        async_op: whether to return immediately.

    Returns:
        A ``Work`` if ``async_op``, else None.

    Raises:
        DistBackendError: if another process, which is named, times out or has ended.
        TypeError: for an argument that is not a tensor.

    Example:
        >>> import compat as torch, compat.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.all_reduce(x, async_op=True).wait(), x
        (True, tensor([1., 1.]))
        >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "all_reduce"):
        return None
    kind, read = _op("all_reduce", op, tensor), reader(tensor)
    return _exchanged(
        "all_reduce", chosen_group(group), [tensor], async_op,
        lambda call: write(tensor, algorithms.all_reduce(call, read(), kind)),
    )  # fmt: skip


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """``all_reduce`` of several tensors of one dtype, as one call."""
    check_tensors(tensors, "tensor")
    check_one_dtype(*tensors)
    if not_in(group, "all_reduce_coalesced"):
        return None
    kind, reads = _op("all_reduce", op, *tensors), [reader(t) for t in tensors]

    def exchange(call: Call) -> None:
        whole = algorithms.all_reduce(call, np.concatenate([read().reshape(-1) for read in reads]), kind)
        ends = np.cumsum([t.numel() for t in tensors])
        for t, end in zip(tensors, ends):
            write(t, whole[end - t.numel() : end])

    return _exchanged("all_reduce_coalesced", chosen_group(group), list(tensors), async_op, exchange)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Replaces a tensor in all processes by that of one process.

    Args:
        tensor: of the same shape and dtype in all processes; it is written except in the source.
        src: the source's global rank.
        group: the group; all processes by default.
        async_op: whether to return immediately.
        group_src: the source's rank in the group, instead of ``src``.
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "broadcast"):
        return None
    found = chosen_group(group)
    source = one_rank(found, src, group_src)
    read = reader(tensor) if found.rank() == source else lambda: like(tensor)

    def exchange(call: Call) -> None:
        array = algorithms.broadcast(call, read(), source)
        if found.rank() != source:
            write(tensor, array)

    return _exchanged("broadcast", found, [tensor], async_op, exchange)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Replaces a tensor in one process by the reduction of all processes' tensors."""
    check_tensor(tensor, "tensor")
    if not_in(group, "reduce"):
        return None
    found = chosen_group(group)
    to, kind, read = one_rank(found, dst, group_dst), _op("reduce", op, tensor), reader(tensor)

    def exchange(call: Call) -> None:
        result = algorithms.reduce(call, read(), kind, to)
        if result is not None:
            write(tensor, result)

    return _exchanged("reduce", found, [tensor], async_op, exchange)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Writes all processes' tensors, in rank order, into the tensors of a list, in all processes.

    Args:
        tensor_list: a tensor for each rank.
        tensor: this process's tensor, whose number of elements may differ from others'.
        group: the group; all processes by default.
        async_op: whether to return immediately.

    Raises:
        RuntimeError: if the list does not have a tensor for each rank.
        ValueError: if it has other dtypes.
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_one_dtype(*tensor_list, tensor)
    if not_in(group, "all_gather"):
        return None
    found, read = chosen_group(group), reader(tensor)
    _check_count("all_gather", "tensor_list", tensor_list, found)
    check_sizes("all_gather", [tensor_list[found.rank()]], tensor)

    def exchange(call: Call) -> None:
        arrays = algorithms.all_to_all(call, [read()] * call.size, [like(t) for t in tensor_list])
        for t, array in zip(tensor_list, arrays):
            write(t, array)

    return _exchanged("all_gather", found, list(tensor_list), async_op, exchange)


def _check_count(name: str, parameter: str, tensors: Sequence[Any], group: ProcessGroup) -> None:
    if len(tensors) != group.size():
        raise RuntimeError(
            f"{name}: {parameter} has {len(tensors)} tensors, but the group has {group.size()} processes"
        )


def _check_parts(name: str, whole_name: str, whole: Tensor, part_name: str, part: Tensor, group: ProcessGroup) -> None:
    """Checks that a tensor has as many elements as all processes' parts together."""
    if whole.dtype is not part.dtype:
        raise RuntimeError(f"{name}: {whole_name} is of {whole.dtype}, but {part_name} of {part.dtype}")
    if whole.numel() != part.numel() * group.size():
        raise RuntimeError(
            f"{name}: {whole_name} of size {list(whole.shape)} must hold {group.size()} times the {part.numel()} "
            f"elements of {part_name}, as the group has {group.size()} processes"
        )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes all processes' tensors, concatenated along the first dimension, into one tensor."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if not_in(group, "all_gather_into_tensor"):
        return None
    found, read = chosen_group(group), reader(input_tensor)
    _check_parts("all_gather_into_tensor", "output_tensor", output_tensor, "input_tensor", input_tensor, found)
    return _exchanged(
        "all_gather_into_tensor", found, [output_tensor], async_op,
        lambda call: write(output_tensor, np.concatenate([a.reshape(-1) for a in algorithms.all_gather(call, read())])),
    )  # fmt: skip


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """``all_gather`` of several tensors: ``output_tensor_lists[rank][i]`` is written with that rank's tensor ``i``."""
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for tensors in output_tensor_lists:
        check_tensors(tensors, "output_tensor_lists")
    check_tensors(input_tensor_list, "input_tensor_list")
    if not_in(group, "all_gather_coalesced"):
        return None
    found, reads = chosen_group(group), [reader(t) for t in input_tensor_list]
    _check_count("all_gather_coalesced", "output_tensor_lists", output_tensor_lists, found)

    def exchange(call: Call) -> None:
        for i, read in enumerate(reads):  # messages between two processes arrive in order
            for tensors, array in zip(output_tensor_lists, algorithms.all_gather(call, read())):
                write(tensors[i], array)

    return _exchanged("all_gather_coalesced", found, output_tensor_lists, async_op, exchange)


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Writes all processes' tensors into the list of one process.

    Args:
        tensor: this process's tensor.
        gather_list: a tensor for each rank, in the destination only.
        dst: the destination's global rank; 0 by default.
        group: the group; all processes by default.
        async_op: whether to return immediately.
        group_dst: the destination's rank in the group, instead of ``dst``.

    Raises:
        ValueError: if the list is missing in the destination, or given elsewhere.
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "gather"):
        return None
    found = chosen_group(group)
    to, read = one_rank(found, 0 if dst is None and group_dst is None else dst, group_dst), reader(tensor)
    if found.rank() == to:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_tensors(gather_list, "gather_list")
        check_one_dtype(tensor, *gather_list)
        _check_count("gather", "gather_list", gather_list, found)
        check_sizes("gather", gather_list, tensor)
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")

    def exchange(call: Call) -> None:
        for t, array in zip(gather_list or (), algorithms.gather(call, read(), to) or ()):
            write(t, array)

    return _exchanged("gather", found, list(gather_list or ()), async_op, exchange)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Writes one of a list of tensors, which one process has, into each process's tensor.

    Args:
        tensor: the tensor to write.
        scatter_list: a tensor for each rank, in the source only.
        src: the source's global rank; 0 by default.
        group: the group; all processes by default.
        async_op: whether to return immediately.
        group_src: the source's rank in the group, instead of ``src``.

    Raises:
        ValueError: if the list is missing in the source, or given elsewhere.
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "scatter"):
        return None
    found = chosen_group(group)
    source = one_rank(found, 0 if src is None and group_src is None else src, group_src)
    reads = []
    if found.rank() == source:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_tensors(scatter_list, "scatter_list")
        check_one_dtype(tensor, *scatter_list)
        _check_count("scatter", "scatter_list", scatter_list, found)
        check_sizes("scatter", scatter_list, tensor)
        reads = [reader(t) for t in scatter_list]
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")

    def exchange(call: Call) -> None:
        write(tensor, algorithms.scatter(call, [r() for r in reads], [like(tensor)] * call.size, source))

    return _exchanged("scatter", found, [tensor], async_op, exchange)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes into each process's tensor the reduction of all processes' list elements for it.

    Args:
        output: the tensor to write.
        input_list: a tensor for each rank.
        op: the reduction.
        group: the group; all processes by default.
        async_op: whether to return immediately.
    """
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_one_dtype(output, *input_list)
    if not_in(group, "reduce_scatter"):
        return None
    found, kind, reads = chosen_group(group), _op("reduce_scatter", op, output), [reader(t) for t in input_list]
    _check_count("reduce_scatter", "input_list", input_list, found)
    check_sizes("reduce_scatter", [input_list[found.rank()]], output)

    def exchange(call: Call) -> None:
        write(output, algorithms.reduce_scatter(call, [r() for r in reads], kind))

    return _exchanged("reduce_scatter", found, [output], async_op, exchange)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """``reduce_scatter`` of the parts of one tensor, which is divided evenly among the processes."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if not_in(group, "reduce_scatter_tensor"):
        return None
    found, kind, read = chosen_group(group), _op("reduce_scatter", op, output), reader(input)
    _check_parts("reduce_scatter_tensor", "input", input, "output", output, found)

    def exchange(call: Call) -> None:
        write(output, algorithms.reduce_scatter(call, np.split(read().reshape(-1), call.size), kind))

    return _exchanged("reduce_scatter_tensor", found, [output], async_op, exchange)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Sends each process one tensor of a list, and writes what it sends into another list.

    Args:
        output_tensor_list: for each rank a tensor of the size that it sends.
        input_tensor_list: for each rank the tensor to send.
        group: the group; all processes by default.
        async_op: whether to return immediately.
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_one_dtype(*output_tensor_list, *input_tensor_list)
    if not_in(group, "all_to_all"):
        return None
    found, reads = chosen_group(group), [reader(t) for t in input_tensor_list]
    _check_count("all_to_all", "output_tensor_list", output_tensor_list, found)
    _check_count("all_to_all", "input_tensor_list", input_tensor_list, found)

    def exchange(call: Call) -> None:
        arrays = algorithms.all_to_all(call, [r() for r in reads], [like(t) for t in output_tensor_list])
        for t, array in zip(output_tensor_list, arrays):
            write(t, array)

    return _exchanged("all_to_all", found, list(output_tensor_list), async_op, exchange)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """``all_to_all`` of the parts of one tensor along its first dimension.

    Args:
        output: the tensor to write, in rank order.
        input: the tensor to send.
        output_split_sizes: the number of rows from each rank; equal by default.
        input_split_sizes: the number of rows to each rank, likewise.
        group: the group; all processes by default.
        async_op: whether to return immediately.

    Raises:
        RuntimeError: if the sizes do not add up.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_one_dtype(output, input)
    if not_in(group, "all_to_all_single"):
        return None
    found, read = chosen_group(group), reader(input)
    into = _ends("output", output, output_split_sizes, found)
    sent = _ends("input", input, input_split_sizes, found)

    def exchange(call: Call) -> None:
        arrays = algorithms.all_to_all(call, np.split(read(), sent), np.split(like(output), into))
        write(output, np.concatenate(arrays))

    return _exchanged("all_to_all_single", found, [output], async_op, exchange)


def _ends(name: str, t: Tensor, sizes: Sequence[int] | None, group: ProcessGroup) -> list[int]:
    rows = t.shape[0] if t.dim() else 1
    if not sizes:
        if rows % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [rows // group.size()] * group.size()
    if len(sizes) != group.size():
        raise RuntimeError(f"Number of tensor splits not equal to group size: {name}_split_sizes has {len(sizes)}")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return [int(n) for n in np.cumsum(sizes)[:-1]]


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Waits until all processes of a group have called it.

    Args:
        group: the group; all processes by default.
        async_op: whether to return immediately.
        device_ids: ignored.
        timeout: the timeout; by default that of the group.

    Raises:
        DistBackendError: if some, which are named, time out.
    """
    if not_in(group, "barrier"):
        return None
    return _exchanged("barrier", chosen_group(group), [], async_op, algorithms.barrier, timeout)


def monitored_barrier(
    group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier in which rank 0 names the missing ranks.

    Args:
        group: the group; all processes by default.
        timeout: the timeout of rank 0.
        wait_all_ranks: whether rank 0 names all missing ranks, not only the first.

    Raises:
        RuntimeError: in rank 0, naming the missing ranks; in the others if rank 0 does not answer.
    """
    if not_in(group, "monitored_barrier"):
        return
    found = chosen_group(group)
    token = np.zeros(1, np.uint8)

    def exchange(call: Call) -> None:
        if call.rank != 0:
            call.send(0, token)
            call.take(call.expect(0, np.empty_like(token)))
            return
        missing = []
        for r in range(1, call.size):
            try:
                call.take(call.expect(r, np.empty_like(token)))
            except DistBackendError as error:
                missing.append((found._circle.ranks[r], error))
                if not wait_all_ranks:
                    break
        if missing:
            names = ", ".join(str(r) for r, _ in missing)
            raise DistBackendError(
                f"[Rank 0]: Ranks {names} failed to pass monitoredBarrier in {round(call.patience * 1000)} ms: "
                f"{missing[0][1]}"
            )
        for r in range(1, call.size):
            call.send(r, token)

    _exchanged("monitored_barrier", found, [], False, exchange, timeout)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank on its host.

    Raises:
        RuntimeError: if the environment does not define it.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def _allreduce(group: ProcessGroup, tensors: Any, op: Any = ReduceOp.SUM) -> Work:
    """``all_reduce`` of a tensor, or of the one in a list."""
    (tensor,) = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return all_reduce(tensor, op, group, async_op=True) or Work()


def _barrier(group: ProcessGroup, *_: Any) -> Work:
    """A barrier of the group's processes."""
    return barrier(group, async_op=True) or Work()


for _name, _method in (("allreduce", _allreduce), ("barrier", _barrier)):
    setattr(ProcessGroup, _name, _method)
