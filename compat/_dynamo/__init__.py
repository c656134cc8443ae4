"""``torch._dynamo``: those of its names that scripts use."""

from typing import Any

from compat._compile import compile as _compile
from compat._compile.breaks import graph_break
from compat._dynamo import config, decorators, eval_frame, exc, utils
from compat._dynamo.backends import explain
from compat._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from compat._dynamo.decorators import (
    disallow_in_graph,
    dont_skip_tracing,
    forbid_in_graph,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    nonstrict_trace,
    patch_dynamo_config,
    run,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from compat._dynamo.eval_frame import OptimizedModule, is_dynamo_supported
from compat.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset, set_stance

reset_code_caches = reset


def optimize(backend: Any = "inductor", *, nopython: bool = False, **kwargs: Any) -> Any:
    """A decorator that compiles: ``torch.compile`` under its first name.

    Args:
        backend: as for ``torch.compile``.
        nopython: whether a call that is not one graph raises.
        kwargs: ``dynamic`` and ``disable``, as for ``torch.compile``; others are ignored.

    Example:
        >>> torch._dynamo.optimize("eager")(lambda x: x + 1)(torch.ones(2))
        tensor([2., 2.])
    """
    known = {name: kwargs[name] for name in ("dynamic", "disable") if name in kwargs}
    return _compile(backend=backend, fullgraph=nopython, **known)


def optimize_assert(backend: Any = "inductor", **kwargs: Any) -> Any:
    """``optimize`` with ``nopython=True``."""
    return optimize(backend, nopython=True, **kwargs)


__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "decorators", "disable",
    "disallow_in_graph", "dont_skip_tracing", "eval_frame", "exc", "explain", "forbid_in_graph", "graph_break",
    "is_compiling", "is_dynamo_supported", "list_backends", "lookup_backend", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert",
    "patch_dynamo_config", "register_backend", "reset", "reset_code_caches", "run", "set_stance", "skip_frame",
    "step_unsupported", "substitute_in_graph", "utils",
]  # fmt: skip
