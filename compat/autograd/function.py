"""Custom autograd functions."""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import accumulator, edge_of
from compat._core.autograd.anomaly_mode import record_stack
from compat._core.autograd.node import NO_EDGE, InputMetadata, Node
from compat._core.autograd.saved_variable import SavedTensor, unpack
from compat._core.memory.meta import in_transform
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode, next_sequence, no_grad
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import float32
from compat._core.types.errors import FREED
from compat._core.types.size import Size
from compat.autograd._function_results import connect_results, save_tensors

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

_LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)
_MIXED = (
    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false.  "
    "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
)

_NOT_SEPARATE = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)

_TWICE = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
    "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
)


class FunctionCtx:
    """The context that ``forward`` passes to ``backward``: saved tensors, and any attributes.

    Attributes:
        needs_input_grad: for each argument of ``apply``, whether its gradient is needed.
        saved_tensors: the tensors given to ``save_for_backward``.
    """

    needs_input_grad: tuple[bool, ...]
    to_save: tuple | None
    saved_for_forward: tuple | None
    dirty_tensors: tuple | None
    non_differentiable: tuple | None
    materialize_grads: bool

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for ``backward``, which raises an error if they were changed in place."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for ``jvp``.

        Raises:
            AssertionError: if one is neither a tensor nor None.
        """
        for t in tensors:
            if not (isinstance(t, Tensor) or t is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Marks arguments that ``forward`` modifies in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Marks results without a gradient."""
        self.non_differentiable = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Has no effect; deprecated."""
        text = (
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked"
        )
        warnings.warn(text, FutureWarning, stacklevel=2)

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether ``backward`` receives zeros instead of None for results that nothing depends on."""
        self.materialize_grads = value


#: The name in objects pickled by earlier versions of PyTorch.
_ContextMethodMixin = FunctionCtx


class WriteOnly:
    """A boolean of ``ctx`` that users can set but not read.

    Args:
        name: the name of the attribute that stores it.
    """

    def __init__(self, name: str):
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.public = name

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        if ctx is None:
            return self
        raise AttributeError(f"attribute '{self.public}' of 'torch._C._FunctionBase' objects is not readable")

    def __set__(self, ctx: Any, value: bool) -> None:
        if not isinstance(value, bool):
            setter = f"set_{self.public.removeprefix('_is_')}"
            raise TypeError(f"{setter} received an invalid combination of arguments - got (), but expected (bool)")
        setattr(ctx, self.name, value)


class BackwardCFunction(Node, FunctionCtx):
    """The node of one call of a ``Function``, which is also its ``ctx``.

    Its attributes are slots, so that ``__dict__`` contains only the user's.
    """

    __slots__ = (
        ("needs_input_grad", "to_save", "saved_for_forward", "dirty_tensors", "non_differentiable")
        + ("_materialize_non_diff_grads", "_materialize", "_pure_view", "_once")
        + ("saved", "_results", "_tensor_arguments", "_count")
    )
    _forward_cls: type[Function]
    _autograd_function_id: int
    _compiled_autograd_backward_state = None
    thorough = True
    saved: tuple | None
    materialize_grads = WriteOnly("_materialize")
    _is_pure_view = WriteOnly("_pure_view")

    def __init__(self) -> None:
        self.next_functions = self.needs_input_grad = self.saved = ()
        self._sequence = next_sequence()
        self._hooks = self.to_save = self.saved_for_forward = self.dirty_tensors = self.non_differentiable = None
        self._materialize = self._materialize_non_diff_grads = True
        self._pure_view = False
        #: Whether the saved tensors can be read only once; None after that.
        self._once: bool | None = False
        #: Per result, its size, dtype, and whether it is differentiable; None for other objects.
        self._results: list[tuple[Size, Dtype, bool] | None] = []
        self._tensor_arguments: list[int] = []
        self._count = 0

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to ``save_for_backward``.

        Raises:
            RuntimeError: if they were freed, or modified in place.
        """
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self._once is None:
            raise RuntimeError(_TWICE)
        if self.saved is None:
            raise RuntimeError(FREED)
        found = tuple(unpack(entry, self) for entry in self.saved)
        if self._once:
            self.saved, self._once = (), None
        return found

    @property
    def saved_variables(self) -> tuple:
        """A deprecated alias of ``saved_tensors``."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple:
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple(SavedTensor._of(self, i) for i in range(len(self.saved)))

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        known = self._results[nr] if nr < len(self._results) else None
        return None if known is None else known[:2]

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        # Includes results that are not tensors, for which hooks get None.
        return tuple(InputMetadata(*(known[:2] if known else (Size(()), float32))) for known in self._results)

    def release(self) -> None:
        self.saved = None

    def maybe_clear_saved_tensors(self) -> None:
        """Frees the saved tensors, if a backward pass that does not retain the graph is running."""
        if mode.task is not None and not mode.task.keep_graph:
            self.release()

    def __call__(self, *grads: Tensor | None, **kwargs: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        given = list(grads) + [None] * (len(self._results) - len(grads))
        if self._materialize:
            given = [self._zeros(nr) if g is None else g for nr, g in enumerate(given)]
        if not self._forward_cls.boxed_grads_call:
            found = self._counted(self._backward()(self, *given))
        else:
            if isinstance(grads, list) and not (self._hooks and self._hooks.post):
                grads.clear()  # ``backward`` has the only references
            found = self._counted(self.apply_boxed(given))
        results: list[Tensor | None] = []
        for argument, (following, nr) in zip(self._tensor_arguments, self.next_functions):
            results.append(self._fitting(found[argument], following, nr, len(results)))
        return results

    def _counted(self, found: Any) -> Sequence[Any]:
        """The results of ``backward``, one per argument; additional ones must be None."""
        found = found if isinstance(found, (tuple, list)) else (found,)
        if len(found) > self._count and all(g is None for g in found[self._count :]):
            found = found[: self._count]
        if len(found) != self._count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {self._count}, got "
                f"{len(found)})"
            )
        return found

    def _fitting(self, grad: Any, following: Node | None, nr: int, index: int) -> Tensor | None:
        if grad is None:
            return None
        if not isinstance(grad, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        if following is None:
            return grad  # for callers that inspect its result
        make_error = lambda what: RuntimeError(
            f"Function {self.name()} returned an invalid gradient at index {index} - {what}"
        )
        expected = following.expects(nr)
        if expected is not None and grad.dtype.is_complex and not expected[1].is_complex:
            raise RuntimeError(_MIXED)
        return following.fitted(nr, grad, make_error)

    def _zeros(self, nr: int) -> Tensor | None:
        known = self._results[nr]
        if known is None or not (known[2] or self._materialize_non_diff_grads):
            return None
        from compat._core.tensor.registry import names_of

        zeros: Tensor = names_of("torch")["zeros"](known[0], dtype=known[1])
        return zeros

    def apply_boxed(self, *args: Any) -> Any:
        """Calls ``backward`` with a list of the gradients, which it may clear."""
        return self._backward()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Calls ``jvp``."""
        return self._forward_cls.jvp(self, *args)

    def _backward(self) -> Callable[..., Any]:
        """The user's ``backward``, or ``vjp``."""
        function = self._forward_cls
        has_backward, has_vjp = function.backward is not Function.backward, function.vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return function.vjp if has_vjp else function.backward


BackwardCFunction.__module__ = "torch.autograd.function"


_function_ids = itertools.count()


class FunctionMeta(type):
    """Creates the node class of each ``Function``."""

    def __init__(cls, name: str, bases: tuple, namespace: dict):
        super().__init__(name, bases, namespace)
        attributes: dict[str, Any] = {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        attributes |= {"__slots__": (), "_autograd_function_id": next(_function_ids)}
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), attributes)


class Function(metaclass=FunctionMeta):
    """A custom autograd function.

    Subclass it with static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)``, and call ``apply``.

    Attributes:
        generate_vmap_rule: whether ``vmap`` batches ``forward`` and ``backward``, instead of calling a method ``vmap``.
        clear_saved_tensors_on_access: whether ``saved_tensors`` are freed when ``backward`` reads them.
        boxed_grads_call: whether ``backward`` takes a list of gradients, from which it can remove gradients to free
            them.

    Example:
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

    _backward_cls: type[BackwardCFunction]
    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any):
        text = (
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch."
        )
        warnings.warn(text, DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_LEGACY)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Prepares ``ctx``, if ``forward`` does not take it."""
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
        """An alias of ``backward``."""
        return Function.backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Computes the results for a batch; returns them and their batch dimensions."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs ``forward`` and records ``backward``."""
        if cls._has_setup_context_() or kwargs:
            args = _bind_arguments(cls, args, kwargs)
        if level_stack.state.levels and not level_stack.state.graphs and not cls._has_setup_context_():
            raise RuntimeError(_NOT_SEPARATE)
        given = tree_leaves(args) if level_stack.state.levels else args
        if any(isinstance(a, Tensor) and a._layout_.base.traced and in_transform(a._storage_.buffer) for a in given):
            from compat.autograd._function_transforms import apply_traced

            return apply_traced(cls, args)
        return cls._apply_recorded_(args, cls._run_forward_)

    @classmethod
    def _has_setup_context_(cls) -> bool:
        """Whether ``setup_context`` is defined, so that ``forward`` does not take ``ctx``."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _has_vmap_(cls) -> bool:
        """Whether the function defines ``vmap``."""
        return cls.vmap is not Function.vmap

    @classmethod
    def _run_forward_(cls, ctx: Any, args: tuple) -> Any:
        """The result of ``forward``; prepares ``ctx``."""
        forward, mode.forward = mode.forward, False
        try:
            with no_grad():
                if not cls._has_setup_context_():
                    return cls.forward(ctx, *args)
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
                return output
        finally:
            mode.forward = forward

    @classmethod
    def _apply_recorded_(cls, args: tuple, run: Callable[[Any, tuple], Any]) -> Any:
        """The result, connected to the graph.

        Args:
            run: a function that returns the result of ``forward``, and prepares ``ctx``.
        """
        ctx = cls._backward_cls()
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.needs_input_grad = needs = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        recorded = bool(mode.grad) and True in needs
        ctx.next_functions = tuple([edge_of(args[i]) for i in tensors] if recorded else [NO_EDGE] * len(tensors))
        ctx._tensor_arguments, ctx._count, ctx._once = tensors, len(args), cls.clear_saved_tensors_on_access
        if recorded and mode.anomaly:
            record_stack(ctx)
        output = run(ctx, args)
        several = isinstance(output, tuple)
        outputs = output if several else (output,)
        results = connect_results(ctx, outputs, args, recorded, cls._has_setup_context_())
        save_tensors(ctx, results, args, recorded)
        return tuple(results) if several else results[0]


def _unexpected(name: str) -> TypeError:
    return TypeError(f"forward() got an unexpected keyword argument '{name}'")


def _bind_arguments(cls: type[Function], args: tuple, kwargs: dict[str, Any]) -> tuple:
    """The arguments by position, and with defaults if ``forward`` does not take ``ctx``.

    Raises:
        TypeError: if they do not match ``forward``.
    """
    signature = inspect.signature(cls.forward)
    if not cls._has_setup_context_():
        return _by_position(
            [p.name for p in list(signature.parameters.values())[1:] if p.kind in _POSITIONAL], args, kwargs
        )
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(str(error)) from None
    bound.apply_defaults()
    if bound.kwargs:
        named = {name: x for name, x in bound.kwargs.items() if isinstance(x, Tensor)}
        if named and any(entered.kind == "vmap" for entered in level_stack.state.levels):
            raise NotImplementedError(
                "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
                f"autograd.Function. Got: {named}"
            )
        raise _unexpected(next(iter(bound.kwargs)))
    return bound.args


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _by_position(names: list[str], args: tuple, kwargs: dict[str, Any]) -> tuple:
    """Keyword arguments appended to positional ones, of which none may be missing in between.

    Args:
        names: the names of the parameters.

    Raises:
        TypeError: for an unknown, repeated or missing argument.
    """
    for name in kwargs:
        if name not in names:
            raise _unexpected(name)
        if names.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    end = max(names.index(name) for name in kwargs) + 1
    for index, name in list(enumerate(names))[len(args) : end]:
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {index})")
    return (*args, *[kwargs[name] for name in names[len(args) : end]])


class InplaceFunction(Function):
    """A ``Function`` with an option ``inplace``; deprecated.

    Args:
        inplace: whether it works in place.
    """

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Declares that a ``backward`` is not differentiable; differentiating it raises ``RuntimeError``."""
    return with_twice_error(
        backward, "trying to differentiate twice a function that was marked with @once_differentiable"
    )


def with_twice_error(backward: Callable[..., Any], message: str, always: bool = False) -> Callable[..., Any]:
    """A ``backward`` whose differentiation raises ``RuntimeError`` with a message.

    Args:
        always: whether it does so even if no incoming gradient requires grad.
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        if not mode.grad or not (always or any(isinstance(g, Tensor) and g.requires_grad for g in grads)):
            return found
        several = isinstance(found, tuple)
        return tuple(_with_error_node(found, message)) if several else _with_error_node((found,), message)[0]

    return wrapper


def _with_error_node(values: Sequence[Any], message: str) -> list[Any]:
    """Aliases of the values, with a node whose backward raises an error."""
    # Its edges lead to new leaves, so that no gradient reaches the inputs.
    leaves = [v.detach().requires_grad_() if isinstance(v, Tensor) else v for v in values]
    stop = Error(message)
    stop.next_functions = tuple((accumulator(t), 0) if isinstance(t, Tensor) else NO_EDGE for t in leaves)
    results = [v.detach() if isinstance(v, Tensor) else v for v in values]
    for nr, value in enumerate(results):
        if isinstance(value, Tensor):
            value._rg_, value._node_, value._nr_ = True, stop, nr
    return results


class Error(Node):
    """A node whose backward raises an error.

    Args:
        text: the message of the error.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        self._sequence = next_sequence()
        self._hooks = None

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(self._text)


Error.__module__ = "builtins"
