"""Custom functions inside transforms: ``vmap``, ``grad``, ``jvp``, dual numbers, ``jit``.

The innermost transform among the arguments calls the rule that the user defined for it with the values of the next
outer level, at which the function is applied again. So each transform uses the user's derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from compat._core.autograd.node import fit
from compat._core.autograd.saved_variable import save
from compat._core.memory import strided_access
from compat._core.pytree.trees import broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, elements, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import enable_grad
from compat._core.types.dtype import FLOATING
from compat.autograd._function_results import NOT_RETURNED, check_saved, contains
from funcgrad import custom_vjp
from funcgrad.core.tracing import Interpreter, Tracer
from funcgrad.interpreters.batching import Batching, BatchTracer
from funcgrad.interpreters.forward import Forward, ForwardTracer

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
_NOT_A_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."

_NOT_A_VIEW_OF_TANGENT = (
    "A custom Function is returning a view but the jvp is not returning a view of the {} grad input."
)


class VmapInfo(NamedTuple):
    """The argument of a ``vmap`` method: the batch size and how random numbers are drawn."""

    batch_size: int
    randomness: str


def apply_traced(cls: Any, args: tuple) -> Any:
    """``cls.apply`` where an argument is traced.

    Raises:
        RuntimeError: if the function has no rule for the transform.
    """
    call = _Call(cls, args)
    tracers = [x for x in call.arrays if isinstance(x, Tracer)]
    innermost = max((x.interpreter for x in tracers), key=lambda interpreter: interpreter.level)
    call.set_needs_input_grad(innermost)
    if isinstance(innermost, Batching) and level_stack.state.graphs:  # batched gradients: operators batch ``forward``
        return cls._apply_recorded_(args, cls._run_forward_)
    if isinstance(innermost, Batching) and cls._has_vmap_():
        return _vmapped(call, innermost)
    if isinstance(innermost, Batching) and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    if innermost is level_stack.state.duals:
        return cls._apply_recorded_(args, partial(forward_dual, cls))
    if isinstance(innermost, Forward):
        return _jvp(call, innermost)
    operation = custom_vjp(call.function)
    operation.defvjp(call.forward, call.backward, materialize=False)
    found = operation(*call.arrays)
    if isinstance(innermost, Batching) and any(t._version for t in call.given):
        raise RuntimeError(NOT_RETURNED)  # the written argument is a copy, of one batch element
    return call.results(found, f"{cls.__name__}GeneratedBackward")


class _Call:
    """One call of a function, as a function of arrays.

    Attributes:
        ctx: the context for the user's rules.
        leaves, tree: the arguments, which may be containers of tensors.
        indices: the indices of the tensors among the leaves.
        arrays: the elements of these tensors.
        given: the tensors of the last call of the user's function, with separate storages.
    """

    def __init__(self, cls: Any, args: tuple):
        self.cls = cls
        self.args = args
        self.ctx = cls._backward_cls()
        self.leaves, self.tree = tree_flatten(args)
        self.indices = [i for i, x in enumerate(self.leaves) if isinstance(x, Tensor)]
        self.arrays = [array(self.leaves[i]) for i in self.indices]
        self.given: list[Tensor] = []
        self.is_tuple = False
        self.outputs: list[Any] = []

    def arguments(self, arrays: Sequence[Any]) -> tuple:
        """The arguments with the elements of the tensors replaced."""
        leaves = list(self.leaves)
        self.given = [_detached(tensor_of(x)) for x in arrays]
        for index, t in zip(self.indices, self.given):
            leaves[index] = t
        return self._with_leaves(leaves)

    def _with_leaves(self, leaves: Sequence[Any]) -> tuple:
        """The arguments with the leaves replaced."""
        filled: tuple = tree_unflatten(leaves, self.tree)
        return filled

    def _of_tensors(self, found: Sequence[Any]) -> list[Any]:
        """The entries for the tensors of a sequence with an entry, a tree or None for each argument."""
        leaves: list[Any] = []
        for x, argument in zip(found, self.args):
            count = len(tree_leaves(argument))
            leaves += [None] * count if x is None else [x] if isinstance(argument, Tensor) else tree_leaves(x)
        return [leaves[i] for i in self.indices]

    def set_needs_input_grad(self, innermost: Interpreter) -> None:
        """Sets ``ctx.needs_input_grad`` by the innermost transform and the outer ones."""
        needs = [False] * len(self.leaves)
        for index, x in zip(self.indices, self.arrays):
            needs[index] = self.leaves[index].dtype.category >= FLOATING and _differentiated(x, innermost)
        self.ctx.needs_input_grad = tuple(any(tree_leaves(n)) for n in self._with_leaves(needs))

    def unwrap(self, output: Any) -> list[Any]:
        """The arrays of a result; its structure and other objects are stored."""
        self.is_tuple = isinstance(output, tuple)
        self.outputs = list(output) if self.is_tuple else [output]
        return [array(o) for o in self.outputs if isinstance(o, Tensor)]

    def results(self, arrays: Sequence[Any], node: str | None = None) -> Any:
        """The result of the call, with the arrays as tensors.

        Args:
            node: the name of their node, if one is created.
        """
        tensors = [tensor_of(x) for x in arrays]
        for t, x in zip(tensors, arrays):
            if t._storage_.base.traced:
                level_stack.mark(t, x, node)
        remaining = iter(tensors)
        results = [self.result(o, next(remaining)) if isinstance(o, Tensor) else o for o in self.outputs]
        return tuple(results) if self.is_tuple else results[0]

    def result(self, output: Any, found: Tensor) -> Tensor:
        """The tensor to return for a result of the function: the argument itself, if the function wrote into it.

        Args:
            output: the result within the function.
            found: the result at the outer level.
        """
        for index, t in zip(self.indices, self.given):
            if output is t and t._version:
                written: Tensor = self.leaves[index].copy_(found)
                return written
        return found

    # ---------------------------------------------------------------- rules

    def function(self, *arrays: Any) -> list[Any]:
        """The results, without saved tensors."""
        args = self.arguments(arrays)
        if self.separate:
            return self.unwrap(self.cls.forward(*args))
        return self.unwrap(self.cls.forward(self.ctx, *args))

    @property
    def separate(self) -> bool:
        """Whether ``forward`` does not take ``ctx``."""
        separate: bool = self.cls._has_setup_context_()
        return separate

    def _applied(self, args: tuple) -> Any:
        """The function's result; ``setup_context`` gets it without a node."""
        if not self.separate:
            return self.cls.forward(self.ctx, *args)
        output = self.cls.apply(*args)
        for o in output if isinstance(output, tuple) else (output,):
            if isinstance(o, Tensor) and o._storage_.base.traced and not contains(o, args):
                o._rg_, o._node_ = False, None
        self.cls.setup_context(self.ctx, args, output)
        return output

    def forward(self, *arrays: Any) -> tuple[list[Any], list[Any]]:
        """The results, and the saved tensors."""
        args = self.arguments(arrays)
        with enable_grad():
            output = self._applied(args)
        saved = self.ctx.to_save or ()
        self._absent = [t is None for t in saved]
        return self.unwrap(output), [array(t) for t in saved if t is not None]

    def backward(self, kept: Sequence[Any], cotangents: Sequence[Any]) -> tuple:
        """The gradients of the tensors among the arguments."""
        ctx, saved, cts = self.ctx, iter(kept), iter(cotangents)
        ctx.saved = tuple(None if absent else save(tensor_of(next(saved))) for absent in self._absent)
        grads = [self._cotangent(o, next(cts)) if isinstance(o, Tensor) else None for o in self.outputs]
        ctx.saved_for_forward = None
        ctx._count = len(self.args)
        found = ctx._counted(ctx._backward()(ctx, *grads))
        tensors = [self.leaves[index] for index in self.indices]
        return tuple(self._grad_array(i, x, g) for i, (x, g) in enumerate(zip(tensors, self._of_tensors(found))))

    def _grad_array(self, i: int, argument: Tensor, grad: Tensor | None) -> Any:
        """The elements of the gradient with respect to the ``i``-th tensor, or None."""
        if grad is None or argument.dtype.category < FLOATING:
            return None
        name = f"{self.cls.__name__}GeneratedBackward"
        make_error = lambda what: RuntimeError(f"Function {name} returned an invalid gradient at index {i} - {what}")
        return array(fit(grad, (argument.shape, argument.dtype), make_error))

    def _cotangent(self, output: Tensor, ct: Any) -> Tensor | None:
        if ct is not None:
            return tensor_of(ct)
        return output.detach().new_zeros(output.shape) if self.ctx._materialize else None

    def jvp_arrays(self, arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results, and their tangents, None for zero."""
        args = self.arguments(arrays)
        with enable_grad():
            output = self._applied(args)
            differentiable: list[Any] = [None] * len(self.leaves)
            for index, t in zip(self.indices, tangents):
                differentiable[index] = self._tangent(self.leaves[index], t)
            found = self.cls.jvp(self.ctx, *self._with_leaves(differentiable))
        values = self.unwrap(output)
        pushed = found if isinstance(found, tuple) else (found,)
        if len(pushed) != len(self.outputs):
            raise RuntimeError(
                f"{self.cls.__name__}: jvp returned an incorrect number of tangents (expected {len(self.outputs)}, "
                f"got {len(pushed)})"
            )
        kept = [(o, t) for o, t in zip(self.outputs, pushed) if isinstance(o, Tensor)]
        return values, [None if t is None else _like(t, o) for o, t in kept]

    def _tangent(self, arg: Tensor, t: Any) -> Tensor | None:
        if t is not None:
            return _detached(tensor_of(t))
        return arg.new_zeros(arg.shape) if self.ctx._materialize and arg.dtype.category >= FLOATING else None


def _detached(t: Tensor) -> Tensor:
    """A tensor that may be written: a copy of a lifted leaf, which is the user's tensor."""
    return t.clone() if t._rg_ and t._node_ is None and level_stack.state.levels else t


def _differentiated(x: Any, innermost: Interpreter) -> bool:
    """Whether the innermost transform, or for ``vmap`` an outer one, differentiates a value."""
    if not isinstance(innermost, Batching):
        return isinstance(x, Tracer) and x.interpreter is innermost
    while isinstance(x, BatchTracer):
        x = x.value
    return isinstance(x, Tracer)


def _like(tangent: Tensor, output: Tensor) -> Any:
    """The elements of a tangent.

    Raises:
        RuntimeError: if its size is not that of its result.
    """
    if tangent.shape != output.shape:
        raise RuntimeError(
            f"jvp returned a tangent of size {list(tangent.shape)} for a result of size {list(output.shape)}"
        )
    return array(tangent)


def _check_tangents(outputs: tuple, found: tuple) -> None:
    """Raises ``RuntimeError`` unless ``jvp`` returned a tensor or None for each output."""
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(found)})"
        )
    for i, t in enumerate(found):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")


def forward_dual(cls: Any, ctx: Any, args: tuple) -> Any:
    """The result of ``forward`` on dual numbers, with the tangents that ``jvp`` returns.

    Raises:
        RuntimeError: if ``jvp`` returns invalid tangents.
    """
    from compat._core.autograd.forward_ad import make_dual, set_fwd_grad_enabled, unpack_dual

    tangents = [unpack_dual(a).tangent if isinstance(a, Tensor) else None for a in args]
    memory = [(t._storage_, t._storage_.buffer) for t in tangents if t is not None]
    output = cls._run_forward_(ctx, args)
    for storage, buffer in memory:  # writing into a dual wrote its tangent, too
        if storage.buffer is not buffer:
            storage.write(buffer)
    outputs = output if isinstance(output, tuple) else (output,)
    for i, a in enumerate(args):
        if tangents[i] is None and isinstance(a, Tensor) and a.dtype.category >= FLOATING and ctx._materialize:
            tangents[i] = a.detach().new_zeros(a.shape)
    versions = {id(t): t._version for t in tangents if t is not None}
    with set_fwd_grad_enabled(False):
        found = cls.jvp(ctx, *tangents)
    found = found if isinstance(found, tuple) else (found,)
    _check_tangents(outputs, found)
    if cls._has_setup_context_():
        check_saved(ctx, outputs, args, ctx.dirty_tensors or ())
    results = []
    for i, (o, t) in enumerate(zip(outputs, found)):
        if t is None:
            results.append(o)
        elif contains(o, ctx.dirty_tensors or ()):
            if not contains(t, tangents) or t._version == versions[id(t)]:
                raise RuntimeError(_NOT_IN_PLACE)
            dual = make_dual(unpack_dual(o).primal.clone(), unpack_dual(t).primal.clone())
            o._storage_.write(strided_access.write(o._storage_.buffer, o._layout_, o._offset_, elements(dual)))
            results.append(o)
        else:
            _check_tangent(cls, ctx, i, o, t, args, tangents)
            results.append(make_dual(unpack_dual(o).primal, unpack_dual(t).primal))
    # Marked and saved tensors are compared by identity.
    for name in ("to_save", "non_differentiable", "dirty_tensors"):
        marked = getattr(ctx, name)
        if marked:
            given = {id(o): r for o, r in zip(outputs, results)}
            setattr(ctx, name, tuple(given.get(id(m), m) for m in marked))
    return tuple(results) if isinstance(output, tuple) else results[0]


def _check_tangent(
    cls: Any, ctx: Any, i: int, output: Any, tangent: Tensor, args: tuple, given: Sequence[Tensor | None]
) -> None:
    """Raises ``RuntimeError`` for a tangent that a result cannot have."""
    from compat._core.autograd.forward_ad import DualStorage

    differentiable = isinstance(output, Tensor) and output.dtype.category >= FLOATING
    if not differentiable or contains(output, ctx.non_differentiable or ()):
        raise RuntimeError(
            f"The jvp of {cls.__name__} returned a tangent at index {i}, where forward returned what has none. You "
            "should return None at that position instead."
        )
    if not (contains(output, args) or output._is_view()):
        return
    if not tangent._is_view():
        raise RuntimeError(_NOT_A_VIEW)
    for a, seen in zip(args, given):
        if seen is None or not (output is a or output._base is a or (a._base is not None and output._base is a._base)):
            continue
        storage = a._storage_
        itself = isinstance(storage, DualStorage) and storage.dual is not None and storage.dual() is a
        if tangent._base is not (seen if seen._base is None else seen._base):
            raise RuntimeError(_NOT_A_VIEW_OF_TANGENT.format("given" if itself else "same base as the given"))


def _jvp(call: _Call, interpreter: Forward) -> Any:
    own_tracers = [x if isinstance(x, ForwardTracer) and x.interpreter is interpreter else None for x in call.arrays]
    primals = [x if m is None else m.primal for x, m in zip(call.arrays, own_tracers)]
    outs, tangents = call.jvp_arrays(primals, [None if m is None else m.tangent for m in own_tracers])
    return call.results([o if t is None else ForwardTracer(interpreter, o, t) for o, t in zip(outs, tangents)])


def _vmapped(call: _Call, interpreter: Batching) -> Any:
    """The results of the user's ``vmap``."""
    cls = call.cls
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {_MORE}"
        )
    own_tracers = [isinstance(x, BatchTracer) and x.interpreter is interpreter for x in call.arrays]
    in_dims: list[int | None] = [None] * len(call.leaves)
    for index, x, m in zip(call.indices, call.arrays, own_tracers):
        in_dims[index] = x.dim if m else None
    lowered = call.arguments([x.value if m else x for x, m in zip(call.arrays, own_tracers)])
    randomness = next((e.randomness for e in level_stack.state.levels if e.interpreter is interpreter), "error")
    found = cls.vmap(VmapInfo(interpreter.size, randomness), call._with_leaves(in_dims), *lowered)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got a {type(found)} instead"
        )
    outs, tree = tree_flatten(found[0])
    dims = broadcast_to_and_flatten(found[1], tree)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={found[1]} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(found[1])[1]} but output has structure {tree}. {_MORE}"
        )
    wrapped = [
        call.result(o, tensor_of(BatchTracer(interpreter, array(o), d % o.dim())))
        if d is not None and isinstance(o, Tensor)
        else o
        for o, d in zip(outs, dims)
    ]
    return tree_unflatten(wrapped, tree)
