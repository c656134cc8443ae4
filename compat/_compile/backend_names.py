"""The names of backends of ``torch.compile``: those of users, and PyTorch's, which all mean XLA.

They are apart from ``compat._dynamo``, which has the graphs that users' backends get: most programs need none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

__all__ = ["list_backends", "lookup_backend", "register_backend"]

#: PyTorch's own names, with their tags.
_BUILT_IN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cudagraphs", "inductor", "openxla", "tvm"), ()),
    **dict.fromkeys(
        ("aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "aot_ts", "eager", "eager_debug",
         "eager_noexcept", "openxla_eval", "pre_dispatch_eager", "ts"), ("debug",)
    ),
}  # fmt: skip
_registered: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Gives a backend a name, for ``torch.compile(backend=name)``.

    Args:
        compiler_fn: maps an ``fx.GraphModule`` and its example inputs to a callable; without it, a decorator.
        name: its name; by default the function's own.
        tags: ``"debug"`` or ``"experimental"`` leave it out of ``list_backends()``.

    Raises:
        AssertionError: if the name is taken.

    Example:
        >>> @torch._dynamo.register_backend
        ... def counting(gm, example_inputs):
        ...     print(len(gm.graph.nodes), "nodes")
        ...     return gm.forward
        >>> torch.compile(lambda x: x.sin() + 1, backend="counting")(torch.zeros(2))
        4 nodes
        tensor([1., 1.])
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"register_backend: a function is expected, not {compiler_fn!r}")
    name = name or compiler_fn.__name__
    if name in _registered or name in _BUILT_IN:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name] = compiler_fn, tuple(tags)
    return compiler_fn


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names accepted for ``backend``: those of registered functions, and PyTorch's, which all mean XLA.

    Args:
        exclude_tags: the tags of those that are left out.
    """
    known = _BUILT_IN | {name: tags for name, (_, tags) in _registered.items()}
    return sorted(name for name, tags in known.items() if not set(tags) & set(exclude_tags or ()))


def registered(name: str) -> Callable[..., Any] | None:
    """The function that a user registered under a name; None for one of PyTorch's.

    Raises:
        InvalidBackend: for an unknown name.
    """
    if name in _registered:
        return _registered[name][0]
    if name not in _BUILT_IN:
        raise import_module("compat._dynamo.exc").InvalidBackend(name)
    return None


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """The function of a name; a function itself.

    Args:
        compiler_fn: the name. One of PyTorch's gives a function that returns the graph's ``forward``, run by XLA.

    Raises:
        InvalidBackend: for an unknown name.
    """
    if not isinstance(compiler_fn, str):
        found: Callable[..., Any] = compiler_fn
        return found
    return registered(compiler_fn) or _eager


def _eager(gm: Any, example_inputs: Any, **options: Any) -> Any:
    return gm.forward
