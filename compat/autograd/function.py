"""Operations with a backward of the user's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from compat.autograd.node import NO_EDGE, Node, edge_of, fit, next_sequence
from compat.autograd.saved import save, save_result, unpack
from compat.dtypes import FLOATING
from compat.dtypes import dtype as Dtype
from compat.errors import FREED
from compat.grad_mode import mode, no_grad
from compat.size import Size
from compat.tensor import SHARED, Tensor, View


class FunctionCtx:
    """What ``forward`` leaves for ``backward``: saved tensors, and any attribute.

    Attributes:
        needs_input_grad: per argument of ``apply``, whether its gradient will be asked for.
        saved_tensors: the tensors given to ``save_for_backward``.
    """

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for ``backward``; an in-place change of one is noticed there."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for ``jvp``."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which arguments ``forward`` changed in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which results have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros, rather than None, for results that nothing depends on."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """The node of one call of a ``Function``; it is that call's ``ctx``, too."""

    _function: type[Function]

    def __init__(self) -> None:
        self.next_functions = ()
        self._sequence = next_sequence()
        self._hooks = None
        self.saved: tuple | None = ()
        self._results: list[tuple[Size, Dtype] | None] = []
        self._tensor_arguments: list[int] = []
        self._count = 0

    @property
    def saved_tensors(self) -> tuple:
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple(unpack(entry, self) for entry in self.saved)

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return self._results[nr] if nr < len(self._results) else None

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        given = list(grads) + [None] * (len(self._results) - len(grads))
        if self.materialize_grads:
            given = [self._zeros(nr) if g is None else g for nr, g in enumerate(given)]
        found = self._backward()(self, *given)
        found = found if isinstance(found, tuple | list) else (found,)
        if len(found) > self._count and all(g is None for g in found[self._count :]):
            found = found[: self._count]
        if len(found) != self._count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {self._count}, got "
                f"{len(found)})"
            )
        results: list[Tensor | None] = []
        for argument, (following, nr) in zip(self._tensor_arguments, self.next_functions):
            results.append(self._checked(found[argument], following, nr, len(results)))
        return results

    def _checked(self, grad: Any, following: Node | None, nr: int, place: int) -> Tensor | None:
        if grad is None or following is None:
            return None
        if not isinstance(grad, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        complain = lambda what: RuntimeError(
            f"Function {self.name()} returned an invalid gradient at index {place} - {what}"
        )
        return fit(grad, following.expects(nr), complain)

    def _zeros(self, nr: int) -> Tensor | None:
        if self._results[nr] is None:
            return None
        from compat.registry import names_of

        size, dtype = self._results[nr]  # type: ignore[misc]
        return names_of("torch")["zeros"](size, dtype=dtype)

    def _backward(self) -> Callable[..., Any]:
        function = self._function
        own, vjp = function.backward is not Function.backward, function.vjp is not Function.vjp
        if own and vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return function.vjp if vjp else function.backward


class _FunctionMeta(type):
    """Gives each ``Function`` the class of its nodes."""

    def __init__(cls, name: str, bases: tuple, namespace: dict):
        super().__init__(name, bases, namespace)
        node = type(f"{name}Backward", (FunctionNode,), {"_function": cls, "__module__": "torch.autograd.function"})
        cls._backward_cls = node


class Function(metaclass=_FunctionMeta):
    """An operation whose backward is given, not derived.

    Subclass it with static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)``, and call ``apply``.

    Example:
        >>> import compat as torch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.ones(2, requires_grad=True)
        >>> Double.apply(x).grad_fn.name()
        'DoubleBackward'
    """

    _backward_cls: type[FunctionNode]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd function with "
            "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Prepares ``ctx``, where ``forward`` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Computes the gradients of the arguments from those of the results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it "
            "with backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grads: Any) -> Any:
        """Another name for ``backward``."""
        return Function.backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs ``forward`` and records ``backward``."""
        ctx = cls._backward_cls()
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        recorded = bool(mode.grad) and any(ctx.needs_input_grad)
        if recorded:
            ctx.next_functions = tuple(edge_of(args[i]) for i in tensors)
        else:
            ctx.next_functions = tuple(NO_EDGE for _ in tensors)
        ctx._tensor_arguments, ctx._count = tensors, len(args)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
        several = isinstance(output, tuple)
        results = [_result(ctx, nr, o, args, recorded) for nr, o in enumerate(output if several else (output,))]
        _keep(ctx, results, recorded)
        return tuple(results) if several else results[0]


def _among(t: Any, tensors: Sequence[Any]) -> bool:
    return any(t is other for other in tensors)


def _result(ctx: FunctionNode, nr: int, output: Any, args: Sequence[Any], recorded: bool) -> Any:
    """One result of ``forward``, in its place in the graph."""
    if not isinstance(output, Tensor):
        ctx._results.append(None)
        return output
    ctx._results.append((output.shape, output.dtype))
    dirty = _among(output, getattr(ctx, "dirty_tensors", ()))
    if dirty:
        if output.is_leaf and output.requires_grad and recorded:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        output._counter.version += 1
    differentiable = (
        recorded and output.dtype.category >= FLOATING and not _among(output, getattr(ctx, "non_differentiable", ()))
    )
    if not dirty and _among(output, args):
        with no_grad():
            output = output.view_as(output)
    if not differentiable:
        return output if dirty or not output.requires_grad else output.detach()
    if dirty:
        output._rebase_history(ctx, nr)
        return output
    output._rg, output._node, output._nr = True, ctx, nr
    view = output._view
    if view is not None and view is not SHARED and view.base is not None:
        output._view = View(view.base, output._counter.version, "function")
    return output


def _keep(ctx: FunctionNode, results: Sequence[Any], recorded: bool) -> None:
    """Turns what ``save_for_backward`` was given into what the node keeps."""
    wanted = ctx.__dict__.pop("to_save", ())
    entries = []
    for i, t in enumerate(wanted):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
            )
        place = next((nr for nr, r in enumerate(results) if r is t), None) if t is not None else None
        entries.append(save_result(t, place) if recorded and place is not None and t is not None else save(t))
    ctx.saved = tuple(entries)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Declares that a ``backward`` cannot be differentiated itself; trying to is an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        if not mode.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return found
        several = isinstance(found, tuple)
        values = found if several else (found,)
        stop = _NotTwice()
        stop.next_functions = tuple(edge_of(g) for g in grads if isinstance(g, Tensor))
        for nr, value in enumerate(values):
            if isinstance(value, Tensor):
                value._rg, value._node, value._nr = True, stop, nr
        return values if several else values[0]

    return wrapper


class _NotTwice(Node):
    __slots__ = ()

    def __init__(self) -> None:
        self._sequence = next_sequence()
        self._hooks = None

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_NotTwice.__name__ = _NotTwice.__qualname__ = "Error"
_NotTwice.__module__ = "builtins"
