"""Hooks that average gradients, in their dtype or a narrower one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.types.dtype import NAMES
from compat._distributed.collectives import all_reduce
from compat._distributed.groups import chosen_group
from compat.nn.parallel._reducer import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Any:
    """Averages a bucket over the processes.

    Args:
        process_group: the group; all processes if None.
        bucket: the gradients.

    Returns:
        A ``Future`` of the average.
    """
    group = chosen_group(process_group)
    flat = bucket.buffer().div_(group.size())
    work = all_reduce(flat, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Any:
    group, buffer = chosen_group(process_group), bucket.buffer()
    work = all_reduce(buffer.to(dtype).div_(group.size()), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0].to(buffer.dtype))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Any:
    """Averages a bucket, rounded to ``float16``; the arguments are those of ``allreduce_hook``."""
    return _compressed(NAMES["float16"], process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Any:
    """Averages a bucket, rounded to ``bfloat16``; the arguments are those of ``allreduce_hook``."""
    return _compressed(NAMES["bfloat16"], process_group, bucket)


def _wrapped(dtype: Any, hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    def compressed(state: Any, bucket: GradBucket) -> Any:
        before = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket).then(lambda done: _first(done.value()).to(before))

    return compressed


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, (list, tuple)) else found


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """Wraps a hook, so that it gets gradients rounded to ``float16``."""
    return _wrapped(NAMES["float16"], hook)


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """Wraps a hook, so that it gets gradients rounded to ``bfloat16``."""
    return _wrapped(NAMES["bfloat16"], hook)
