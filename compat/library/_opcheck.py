"""``opcheck``: tests whether an operation agrees with its schema and kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compat._core.pytree.trees import tree_map
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.tensor.tracing import tensors_in
from compat.autograd import grad
from compat.autograd.gradcheck import gradcheck
from compat.library._operation import AUTOGRAD, IMPLICIT, Operation
from compat.library._registration import operation_of


class OpCheckError(Exception):
    """Raised for an operation that disagrees with its schema or kernels."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Checks an operation of a library on sample arguments.

    Args:
        op: the operation, or the result of ``custom_op``.
        args, kwargs: the arguments of the call.
        test_utils: the checks: "test_schema" (it writes and aliases according to its schema),
            "test_autograd_registration" (its gradients come from a formula, not from the operations of its kernel),
            "test_faketensor" (its kernel for tensors without values gives the shapes of the real one),
            "test_aot_dispatch_dynamic" and "test_aot_dispatch_static" (compiled as a graph, it has the same results
            and gradients), "test_gradcheck" (its gradients are those of finite differences).
        raise_exception: whether a failed check raises.
        atol, rtol: the tolerances for gradients.

    Returns:
        By check, "SUCCESS" or the error.

    Raises:
        OpCheckError: if a check fails, unless ``raise_exception`` is False.

    Example:
        >>> @torch.library.custom_op("docs_check::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> torch.library.opcheck(double, (torch.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    operation, kwargs = operation_of(op), kwargs or {}
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(names) - set(_CHECKS)
    if unknown:
        raise ValueError(f"opcheck: test_utils {sorted(unknown)} are not among {sorted(_CHECKS)}")
    tolerances = {k: v for k, v in (("atol", atol), ("rtol", rtol)) if v is not None}
    found: dict[str, str] = {}
    for name in names:
        try:
            _CHECKS[name](operation, _copied(args), _copied(kwargs), tolerances)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            found[name] = str(error)
    return found


def _copied(tree: Any) -> Any:
    def copy(x: Any) -> Any:
        return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x

    return tree_map(copy, tree)


def _schema(operation: Operation, args: tuple, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    given, named = operation._schema.bind(args, kwargs)
    arguments = list(zip(operation._schema.arguments, (*given, *named.values())))
    before = [[array_of(t.detach()).copy() for t in tensors_in(value)] for _, value in arguments]
    found = operation(*args, **kwargs)
    for (a, value), arrays in zip(arguments, before):
        changed = any(
            not np.array_equal(array_of(t.detach()), old, equal_nan=old.dtype.kind in "fc")
            for t, old in zip(tensors_in(value), arrays)
        )
        if changed and not a.is_write:
            raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    shared = {id(t.untyped_storage()) for _, value in arguments for t in tensors_in(value)}
    for r, t in zip(operation._schema.returns, tensors_in(found)):
        if id(t.untyped_storage()) in shared and "(" not in r.text:
            raise RuntimeError("Output aliases an input, which its schema does not say")


def _registration(operation: Operation, args: tuple, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    if not any(t.requires_grad for t in tensors_in((args, kwargs))):
        return
    if operation.formula is None and operation.owner is None and not {AUTOGRAD, IMPLICIT} & set(operation.kernels):
        raise AssertionError(
            f"{operation.name()}: gradients would be those of whatever its kernel does; register a formula "
            "(torch.library.register_autograd), or the kernel as CompositeImplicitAutograd"
        )


def _without_values(operation: Operation, args: tuple, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    def moved(x: Any) -> Any:
        return x.detach().to("meta") if isinstance(x, Tensor) else x

    real = tensors_in(operation(*args, **kwargs))
    blank = tensors_in(operation(*tree_map(moved, args), **tree_map(moved, kwargs)))
    if len(real) != len(blank):
        raise AssertionError(f"{len(real)} results, but {len(blank)} where there are no values")
    for x, y in zip(real, blank):
        for what in ("shape", "dtype", "stride"):
            have, want = (getattr(t, what)() if what == "stride" else getattr(t, what) for t in (y, x))
            if have != want:
                raise AssertionError(f"{what} {want}, but {have} where there are no values")


def _compiled(operation: Operation, args: tuple, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    from compat._dynamo.backends import ByBackend
    from compat.testing import assert_close

    def call(*given: Any) -> Any:
        return operation(*given, **kwargs)

    whole = {**({"rtol": None, "atol": None} if len(tolerances) == 1 else {}), **tolerances}
    expected = _with_gradients(call, _copied(args))
    found = _with_gradients(ByBackend(call, lambda graph, _: graph, True), _copied(args))
    assert_close(found, expected, equal_nan=True, **whole)


def _with_gradients(call: Callable[..., Any], args: tuple) -> list[Tensor]:
    """The results of a call, the arguments that it may have written, and the gradients of its results."""
    results = list(tensors_in(call(*args)))
    wanted = [t for t in tensors_in(args) if t.is_leaf and t.requires_grad]
    losses = [t.sum() for t in results if t.requires_grad and not t.is_complex()]
    grads = grad(losses, wanted, allow_unused=True) if losses and wanted else ()
    return [*results, *tensors_in(args), *[g for g in grads if g is not None]]


def _gradients(operation: Operation, args: tuple, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    if any(t.requires_grad for t in tensors_in(args)):
        gradcheck(lambda *xs: operation(*xs, **kwargs), args, **tolerances)


_CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _registration,
    "test_faketensor": _without_values,
    "test_aot_dispatch_static": _compiled,
    "test_aot_dispatch_dynamic": _compiled,
    "test_gradcheck": _gradients,
}

__all__ = ["OpCheckError", "opcheck"]
