"""Results of a custom function's ``forward``, connected to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.rebase_history import rebase_checked
from compat._core.autograd.saved_variable import save, save_result
from compat._core.tensor.autograd_state import SHARED, View
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.dtype import FLOATING
from compat._core.types.errors import warn

_LEAF = "a leaf Variable that requires grad has been used in an in-place operation."
NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
    "modified inplace must all be outputs of the Function."
)
_NOT_AN_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
    "passed to ctx.mark_dirty()."
)
_VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
_PURE_VIEW = (
    "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if you need to "
    "support more."
)
_SAVED_INPUT = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
    "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup "
    "ctx inside the forward function itself."
)


def contains(t: Any, tensors: Sequence[Any]) -> bool:
    """Whether one of ``tensors`` is ``t`` itself."""
    for other in tensors:  # noqa: SIM110  # not a generator: calls of custom functions pass here several times
        if t is other:
            return True
    return False


def connect_results(ctx: Any, outputs: Sequence[Any], args: Sequence[Any], recorded: bool, separate: bool) -> list[Any]:
    """Connects the results of ``forward`` to the graph, and records their metadata in ``ctx``.

    Args:
        recorded: whether ``ctx`` is a node of the graph.
        separate: whether ``setup_context`` prepared it.

    Raises:
        RuntimeError: if marked tensors are inconsistent with the results.
    """
    dirty = _marked(ctx, "dirty_tensors", "mark_dirty can only accept variables, but argument ")
    fixed = _marked(ctx, "non_differentiable", "mark_non_differentiable only accepts variable arguments, but got ")
    for t in dirty:
        if not contains(t, outputs):
            raise RuntimeError(NOT_RETURNED)
    for t in dirty:
        bump_version(t)
    if separate:
        check_saved(ctx, outputs, args, dirty)
    results = []
    for nr, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            ctx._results.append(None)
            results.append(output)
            continue
        differentiable = recorded and output.dtype.category >= FLOATING and not contains(output, fixed)
        ctx._results.append((output.shape, output.dtype, differentiable))
        changed = contains(output, dirty)
        if changed and differentiable:
            results.append(_rebased(ctx, nr, output, args, len(outputs)))
        elif changed:
            results.append(output.detach() if output.requires_grad and contains(output, args) else output)
        else:
            results.append(_connected(ctx, nr, output, args, differentiable))
    _forbid_inplace(ctx, outputs, results, dirty)
    return results


def check_saved(ctx: Any, outputs: Sequence[Any], args: Sequence[Any], dirty: Sequence[Tensor] = ()) -> None:
    """Checks that ``setup_context`` did not save arguments that are returned unchanged.

    Raises:
        RuntimeError: if not.
    """
    for t in (*(ctx.to_save or ()), *(ctx.saved_for_forward or ())):
        if isinstance(t, Tensor) and contains(t, outputs) and contains(t, args) and not contains(t, dirty):
            raise RuntimeError(_SAVED_INPUT)


def _marked(ctx: Any, name: str, message: str) -> tuple[Tensor, ...]:
    """Removes and returns the tensors given to one of ``ctx``'s methods."""
    tensors = getattr(ctx, name)
    if not tensors:
        return ()
    setattr(ctx, name, None)
    if not all(isinstance(t, Tensor) for t in tensors):
        raise RuntimeError(message)
    return tensors


def _rebased(ctx: Any, nr: int, output: Tensor, args: Sequence[Any], count: int) -> Tensor:
    """Rebases the history of a tensor that ``forward`` changed in place."""
    if output._base is not None and count > 1:
        raise RuntimeError(_VIEW_AND_MORE)
    if output._rg_ and output._node_ is None:
        raise RuntimeError(_LEAF)
    if not contains(output, args):
        warn(_NOT_AN_INPUT)
    elif output._autograd_state_ is not None:
        output._autograd_state_.grad = None  # the gradient of the previous value
    rebase_checked(output, ctx, nr)
    return output


def _connected(ctx: Any, nr: int, output: Tensor, args: Sequence[Any], differentiable: bool) -> Tensor:
    """Connects a result that is not a dirty argument."""
    given = contains(output, args)
    if not differentiable:
        if given:
            # The argument keeps its node, so the result is an alias.
            return output.detach() if output.requires_grad else _view(output)
        if output.requires_grad and output._base is None:
            output.detach_()
        return output
    if given:
        output = _view(output)
    output._rg_, output._node_, output._nr_ = True, ctx, nr
    if output._view_ is not None and output._view_.base is not None:
        output._view_.version = output._counter_.version
    return output


def _view(t: Tensor) -> Tensor:
    with no_grad():
        view: Tensor = t.view_as(t)
    return view


def _forbid_inplace(ctx: Any, outputs: Sequence[Any], results: Sequence[Any], dirty: Sequence[Tensor]) -> None:
    """Forbids in-place operations on results that are views, since they would bypass the function's ``backward``."""
    several = len(results) > 1 and sum(known is not None and known[2] for known in ctx._results) > 1
    if ctx._pure_view and (several or len(ctx._tensor_arguments) > 1):
        raise RuntimeError(_PURE_VIEW)
    for output, result in zip(outputs, results):
        if not isinstance(result, Tensor):
            continue
        view = result._view_
        if view is None or view is SHARED or view.base is None:
            continue
        if several:
            result._view_ = View(view.base, view.version, "multiple", view.steps)
        elif not contains(output, dirty):
            result._view_ = View(view.base, view.version, "" if ctx._pure_view else "function", view.steps)


def save_tensors(ctx: Any, results: Sequence[Any], args: Sequence[Any], recorded: bool) -> None:
    """Saves the tensors of ``save_for_backward``, if ``ctx`` is a node of the graph.

    Raises:
        TypeError: if one of them is neither a tensor nor None.
    """
    tensors, ctx.to_save, ctx.saved_for_forward = (ctx.to_save or ()) if recorded else (), None, None
    if not tensors:
        ctx.saved = ()
        return
    entries = []
    for i, t in enumerate(tensors):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
            )
        index = next((nr for nr, r in enumerate(results) if r is t), None) if t is not None else None
        is_result = index is not None and t is not None and t._node_ is ctx
        entries.append(save_result(t, index) if is_result else save(t))  # type: ignore[arg-type]
    ctx.saved = tuple(entries)
