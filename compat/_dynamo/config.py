"""``torch._dynamo.config``: settings that are accepted and ignored."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

cache_size_limit = 8
recompile_limit = 8
accumulated_cache_size_limit = 256
suppress_errors = False
verbose = False
automatic_dynamic_shapes = True
assume_static_by_default = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
optimize_ddp = True


@contextmanager
def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
    """Sets settings for the time of a ``with`` block, or of a decorated function.

    Args:
        arg1, arg2: a name and its value, or a dictionary of them.
        kwargs: or values by name.
    """
    changes = kwargs if arg1 is None else {arg1: arg2} if isinstance(arg1, str) else arg1
    unknown = next((name for name in changes if name not in globals()), None)
    if unknown is not None:
        raise AttributeError(f"torch._dynamo.config.{unknown} does not exist")
    before = {name: globals()[name] for name in changes}
    globals().update(changes)
    try:
        yield
    finally:
        globals().update(before)
