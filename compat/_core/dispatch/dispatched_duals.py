"""Forward mode for tensors of types that override operators (``compat._core.dispatch.torch_dispatch``).

Such types intercept the computation of tangents as another operation, ``aten.mul_jvp.default``, of the leaves of the
arguments and their tangents (None for a leaf without one). Its result is the list of the results' tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd import forward_ad
from compat._core.dispatch.overloads import OpOverload
from compat._core.dispatch.overrides import Shown, answer, owners
from compat._core.memory.storage import UntypedStorage
from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_unflatten
from compat._core.tensor.subclass_state import set_state, state_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms import level_stack


class NoMemory(UntypedStorage):
    """The storage of a wrapper, without memory."""

    __slots__ = ()

    def data_ptr(self) -> int:
        """Raises an error, as there is no address.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")


def is_wrapper(t: Tensor) -> bool:
    """Whether a tensor is a wrapper, without memory."""
    storage = t._storage_
    while isinstance(storage, forward_ad.DualStorage):
        storage = storage.primal._storage_
    return isinstance(storage, NoMemory)


def pushing(values: Any) -> bool:
    """Whether some values are dual tensors."""
    return level_stack.state.duals is not None and any(_is_dual(x) for x in tree_leaves(values))


def _is_dual(x: Any) -> bool:
    return isinstance(x, Tensor) and forward_ad.is_dual(x)


def pushed(
    overload: OpOverload, inplace: bool, called: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The result of a call with dual tensors, by subclasses' overrides.

    Args:
        overload, args, kwargs: the intercepted call.
        inplace: whether it writes into its first argument.
        called: the implementation of ``overload``.
    """
    leaves, tree = tree_flatten((tuple(args), kwargs))
    parts = [forward_ad.unpack_dual(x) if _is_dual(x) else (x, None) for x in leaves]
    primals, tangents = [p for p, _ in parts], [t for _, t in parts]

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        given = [p.detach().clone() if inplace and i == 0 else p for i, p in enumerate(primals)]
        duals = [p if t is None else forward_ad.make_dual(p, t) for p, t in zip(given, tangents)]
        args, kwargs = tree_unflatten(duals, tree)
        return [forward_ad.unpack_dual(t).tangent for t in tensors_in(called(*args, **kwargs))]

    own = Shown(f"{overload.overloadpacket.__name__}_jvp", run)
    moved = answer(owners([primals, tangents]), own, run, (primals, tangents), {})
    args, kwargs = tree_unflatten(primals, tree)
    found = answer(owners(primals), overload, called, args, kwargs)
    if inplace:
        _attach(leaves[0], moved[0])
        return found
    results, form = tree_flatten(found)
    places = [i for i, x in enumerate(results) if isinstance(x, Tensor)]
    for i, tangent in zip(places, moved):
        results[i] = twin(results[i]) if any(results[i] is p for p in primals) else results[i]
        _attach(results[i], tangent)
    return tree_unflatten(results, form)


def twin(t: Tensor) -> Tensor:
    """A copy of the tensor object over the same storage, without a ``grad_fn``."""
    made: Tensor = t._of_class_(type(t))
    set_state(made, state_of(t))
    made._node_, made._autograd_state_ = None, None
    return made


def _attach(t: Tensor, tangent: Tensor | None) -> None:
    """Sets a tensor's tangent."""
    storage = t._storage_
    primal = storage.primal if isinstance(storage, forward_ad.DualStorage) else twin(t)
    if tangent is not None:
        made = forward_ad.DualStorage(primal, tangent, level_stack.state.duals)
        t._storage_, t._layout_, t._offset_ = made, made.layout, 0


__all__ = ["is_wrapper", "pushed", "pushing", "twin"]
