"""Gradients averaged over processes in buckets, during the backward pass.

Buckets contain parameters in reverse order, which approximates the order in which backward computes gradients. When
all gradients of a bucket are computed, a thread of the group sums the bucket over the processes, while the backward
pass continues; at its end the averages are written into ``grad``. Buckets are exchanged in order, so that all
processes exchange the same ones. The deferred operations of the backward pass run bucket by bucket.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import AccumulateGrad, LeafGrads
from compat._core.autograd.engine import queue_callback
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode, no_grad
from compat._distributed import collectives
from compat._distributed.groups import ProcessGroup
from compat.futures import Future

#: The first bucket is small, so that communication starts early.
FIRST_BUCKET = 1 << 20


class GradBucket:
    """Gradients that are reduced together, as passed to communication hooks."""

    def __init__(self, index: int, last: bool, buffer: Tensor, params: Sequence[Tensor]):
        self._index, self._last, self._buffer, self._params = index, last, buffer, list(params)

    def index(self) -> int:
        """The index of the bucket, in the order of communication."""
        return self._index

    def buffer(self) -> Tensor:
        """The flattened and concatenated gradients."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The part of the buffer of each parameter, in its shape."""
        return list(split(self._buffer, self._params))

    def parameters(self) -> list[Tensor]:
        """The parameters of the gradients."""
        return list(self._params)

    def is_last(self) -> bool:
        """Whether it is the last bucket."""
        return self._last


def split(flat: Tensor, like: Sequence[Tensor]) -> Iterator[Tensor]:
    """Splits a 1-d tensor into views with the shapes of the tensors ``like``."""
    start = 0
    for t in like:
        yield flat[start : start + t.numel()].view(t.shape)
        start += t.numel()


def bucketed(params: Sequence[Tensor], limit: int, first: int) -> list[list[int]]:
    """Assigns parameters, from the last to the first, to buckets of one dtype and device.

    Args:
        limit, first: the sizes in bytes at which a bucket and the first bucket are full.
    """
    full: list[list[int]] = []
    unfilled: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    for i in reversed(range(len(params))):
        kind = params[i].dtype, params[i].device
        unfilled.setdefault(kind, []).append(i)
        sizes[kind] = sizes.get(kind, 0) + params[i].numel() * params[i].element_size()
        if sizes[kind] >= (limit if full else min(first, limit)):
            full.append(unfilled.pop(kind))
            del sizes[kind]
    return full + list(unfilled.values())


class Reducer:
    """Averages the gradients of some parameters.

    Args:
        params: parameters that require gradients, with their names.
        group: the process group.
        limit: the approximate size of a bucket in bytes.
        find_unused: whether forward passes may leave parameters unused.
        as_view: whether gradients become views of the buckets, instead of copies.
    """

    def __init__(
        self, params: Sequence[tuple[str, Tensor]], group: ProcessGroup, limit: int, find_unused: bool, as_view: bool
    ):
        self.names, self.params = [name for name, _ in params], [p for _, p in params]
        self.group, self.find_unused, self.as_view = group, find_unused, as_view
        self.buckets = bucketed(self.params, limit, FIRST_BUCKET)
        self.bucket_of = {i: b for b, indices in enumerate(self.buckets) for i in indices}
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.state: Any = None
        self.enabled = True
        self._expecting = False
        self._reset()
        self._handles = [
            p.register_post_accumulate_grad_hook(_hook(weakref.ref(self), i)) for i, p in enumerate(self.params)
        ]

    def _reset(self) -> None:
        self._ready: set[int] = set()
        self._unused: set[int] = set()
        self._launched = 0
        self._pending: list[tuple[GradBucket, Any]] = []
        self._used_work: Any = None
        self._used: Any = None
        self._grads: LeafGrads | None = None

    # ---------------------------------------------------------------- before the backward pass

    def check_finished(self) -> None:
        """Checks that all gradients of the last backward pass were computed.

        Raises:
            RuntimeError: if not; the message names the parameters.
        """
        if not self._expecting or not self._ready - self._unused:
            return
        missing = [i for i in range(len(self.params)) if i not in self._ready]
        if not missing:
            return
        names = ", ".join(self.names[i] for i in missing)
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. You can enable unused "
            "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
            f"participate in calculating loss. \nParameters which did not receive grad for rank {self.group.rank()}: "
            f"{names}\nParameter indices which did not receive grad for rank {self.group.rank()}: "
            f"{' '.join(map(str, missing))}"
        )

    def prepare(self, outputs: Any) -> None:
        """Prepares for the backward pass from the outputs of a forward pass."""
        self._reset()
        self._expecting = True
        if self.find_unused:
            reached = _leaves(tensors_in(outputs))
            self._unused = {i for i, p in enumerate(self.params) if id(p) not in reached}

    # ---------------------------------------------------------------- during the backward pass

    def mark_ready(self, i: int) -> None:
        """Marks the gradient of a parameter as accumulated, and reduces the buckets that are complete."""
        if not self.enabled or not self._expecting:
            return
        if i in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. Parameter at index {i} with name {self.names[i]} has "
                "been marked as ready twice: it is used in several backward passes of one forward pass."
            )
        self._grads = None if mode.task is None else mode.task.grads
        self._ready.add(i)
        self._ready |= self._unused
        while self._launched < len(self.buckets) and self._ready.issuperset(self.buckets[self._launched]):
            self._launch(self._launched)
            self._launched += 1
        if self._launched == len(self.buckets):
            self._exchange_used()
            queue_callback(self._finish)

    def _launch(self, b: int) -> None:
        params = [self.params[i] for i in self.buckets[b]]
        torch = names_of("torch")
        with no_grad():
            grads = [
                (torch["zeros_like"](p) if grad is None or i in self._unused else grad).reshape(-1)
                for i, p, grad in zip(self.buckets[b], params, map(self._grad, params))
            ]
            flat = torch["cat"](grads) if len(grads) > 1 else grads[0].clone()
            bucket = GradBucket(b, b == len(self.buckets) - 1, flat, params)
            if self.hook is not None:
                self._pending.append((bucket, self.hook(self.state, bucket)))
                return
            flat /= self.group.size()
            work = collectives.all_reduce(flat, group=self.group, async_op=True)
        self._pending.append((bucket, work))

    def _exchange_used(self) -> None:
        """Determines the parameters that no process has used, whose gradients do not change."""
        if not self.find_unused:
            return
        self._used = names_of("torch")["tensor"]([int(i not in self._unused) for i in range(len(self.params))])
        self._used_work = collectives.all_reduce(self._used, group=self.group, async_op=True)

    def _finish(self) -> None:
        """Waits for the buckets and writes the averages, at the end of the backward pass."""
        self._expecting = False
        used = [True] * len(self.params)
        if self._used_work is not None:
            self._used_work.wait()
            used = [bool(n) for n in self._used.tolist()]
        with no_grad():
            for bucket, pending in self._pending:
                result = pending.wait()
                if isinstance(pending, Future):
                    bucket.set_buffer(result[0] if isinstance(result, (list, tuple)) else result)
                parts = split(bucket.buffer(), bucket.parameters())
                for i, part in zip(self.buckets[bucket.index()], parts):
                    self._write(self.params[i], part, used[i])
        self._pending = []

    def _write(self, param: Tensor, average: Tensor, used: bool) -> None:
        if not used:
            return
        grad = self._grad(param)
        if grad is not None and not self.as_view:
            grad.copy_(average)
            return
        average = average if self.as_view else average.clone()
        if self._grads is None:
            param.grad = average
        else:
            self._grads.put(param, average)

    def _grad(self, param: Tensor) -> Tensor | None:
        """The gradient of a parameter, where the backward pass accumulates it."""
        return param.grad if self._grads is None else self._grads.get(param)

    def remove(self) -> None:
        """Removes the hooks of the parameters."""
        for handle in self._handles:
            handle.remove()


def _hook(reducer: Callable[[], Reducer | None], i: int) -> Callable[[Tensor], None]:
    def mark_ready(_: Tensor) -> None:
        target = reducer()
        if target is not None:
            target.mark_ready(i)

    return mark_ready


def _leaves(outputs: Sequence[Tensor]) -> set[int]:
    """The ids of the leaves that a backward pass from some tensors reaches."""
    found = {id(t) for t in outputs if t.grad_fn is None and t.requires_grad}
    stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if isinstance(node, AccumulateGrad):
            found.add(id(node.variable))
        for following, _ in node._edges:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    return found
