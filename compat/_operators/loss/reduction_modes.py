"""The reductions of losses, and the deprecated ``size_average`` and ``reduce``."""

from __future__ import annotations

from compat._core.types.errors import warn


def legacy_reduction(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """``"mean"``, ``"sum"`` or ``"none"`` for the deprecated arguments; both are true by default.

    Example:
        >>> legacy_reduction(False, None, emit_warning=False)
        'sum'
    """
    if reduce is False:
        reduction = "none"
    else:
        reduction = "sum" if size_average is False else "mean"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction
