"""Nodes of the backward graph."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compat._core.memory.strides import Layout
from compat._core.tensor.autograd_state import PASSING, SHARED, Autograd
from compat._core.tensor.tensor import Tensor, autograd_of, from_buffer, wrap
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.device import CPU
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import Once, size_text
from compat._core.types.hooks import HookDict, RemovableHandle, register
from compat._core.types.memory_format import strided
from compat._core.types.size import Size
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage

#: A node and which of its outputs.
Edge = tuple["Node | None", int]
NO_EDGE: Edge = (None, 0)


class GradientEdge(NamedTuple):
    """The edge of a tensor's gradient: a node, and the number of its output."""

    node: Any
    output_nr: int
    ownership_token: Any = None


GradientEdge.__module__ = "compat.autograd.graph"


class Hooks:
    """The hooks of one node.

    Attributes:
        tensor: per output, the hooks of the tensor that is this output.
        retains: per output, a weak reference to the tensor that keeps its gradient.
        pre: hooks on all incoming gradients.
        post: hooks on the gradients it gives, and those that came in.
    """

    __slots__ = ("tensor", "retains", "pre", "post")

    def __init__(self) -> None:
        self.tensor: dict[int, HookDict] = {}
        self.retains: dict[int, weakref.ref] = {}
        self.pre: HookDict = HookDict()
        self.post: HookDict = HookDict()


class Node:
    """A step of the backward pass: gradients of an operation's results in, gradients of its operands out.

    Attributes:
        next_functions: per operand, the node that made it and as which output; ``(None, 0)`` where no gradient goes.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> node = (x * 3).grad_fn
        >>> node.name(), [f.name() for f, _ in node.next_functions if f is not None]
        ('MulBackward0', ['torch::autograd::AccumulateGrad'])
    """

    __slots__ = ("next_functions", "_sequence", "_hooks", "_metadata", "__weakref__")
    next_functions: tuple[Edge, ...]
    _edges: tuple[Edge, ...]
    _sequence: int
    _hooks: Hooks | None
    requires_grad = True
    #: Whether its gradients are there also where they go nowhere: those of a user's function are.
    thorough = False
    #: Whether its ``apply`` is determined by its ``plan`` and saved values; and whether it saves any.
    swept = False
    saves = False

    def name(self) -> str:
        """The name that PyTorch gives it."""
        return type(self).__name__

    @property
    def metadata(self) -> dict:
        """A dictionary for whatever the user wants to note."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict = {}
            return self._metadata

    def _sequence_nr(self) -> int:
        """A number that grows with every node made."""
        return int(self._sequence)

    def _set_sequence_nr(self, number: int) -> None:
        """Changes that number: nodes with greater ones run first."""
        self._sequence = number

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The gradients of the operands, from those of the results."""
        raise NotImplementedError

    def __call__(self, *grads: Tensor | None, **kwargs: Any) -> Any:
        """The gradients of the operands, from those of the results: one if there is one operand, else a tuple.

        Raises:
            TypeError: if there are not as many gradients as results, or one is not a tensor.
        """
        if kwargs:
            raise TypeError("keyword arguments are not supported")
        if len(grads) != len(self._input_metadata):
            raise TypeError(f"expected {len(self._input_metadata)} arguments, got {len(grads)} instead")
        for i, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {i} is not a Variable")
        result = tuple(self.apply(grads))
        return result[0] if len(result) == 1 else result

    def places_of_numbers(self, present: tuple[bool, ...], views: set[int]) -> Sequence[int]:
        """Where the last numbers of the operation that it records come from, if it is ``swept``.

        Args:
            present: for each incoming gradient, whether it is there.
            views: the saved tensors that are not all of their storage.

        Returns:
            For each of them which of the node's numbers it is, or ``~i`` for the offset of saved tensor ``i``.
        """
        return ()

    def release(self) -> None:
        """Releases saved tensors; another backward through this node is then an error."""

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        """The size and dtype of a result's gradient, if known."""
        return None

    def fitted(self, nr: int, grad: Tensor, make_error: Callable[[str], Exception]) -> Tensor:
        """A gradient of a result, in the size and dtype that is expected.

        Args:
            make_error: makes the exception, given what is wrong.
        """
        return fit(grad, self.expects(nr), make_error)

    def program(self) -> Program:
        """Its computation as funcgrad's program: gradients of the operands from those of the results.

        What is known, such as what a custom function saved, stands in it as constants.

        Example:
            >>> import compat as torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> print(x.exp().grad_fn.program())
            exp_backward(a: f32[2], b: f32[2]) {
              c: f32[2] = mul a b
              return c
            }
        """
        known = itertools.takewhile(lambda m: m is not None, (self.expects(i) for i in itertools.count()))
        types = [ArrayType(tuple(m[0]), m[1].numpy) for m in known if m is not None and m[1].numpy is not None]

        def run(*grads: Any) -> list[Any]:
            from compat._core.tensor.tracing import elements, tensor_of

            return [elements(g) for g in self.apply([tensor_of(g) for g in grads]) if g is not None]

        return stage(run, types, name=self.name().rpartition(":")[2], description=self.name())

    # ---------------------------------------------------------------- hooks

    def hooks(self) -> Hooks:
        """Its hooks, with room made for them."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_inputs, grad_outputs)`` after this node ran; its result, if not None, replaces "
        "``grad_inputs``."""
        return register(self.hooks().post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_outputs)`` before this node runs; its result, if not None, replaces them."""
        return register(self.hooks().pre, fn)

    def _register_hook_dict(self, hooks: dict) -> None:
        self.hooks().post.update(hooks)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def __dir__(self) -> list[str]:
        """The names that PyTorch's nodes have, and those that the user gave it."""
        own = getattr(self, "__dict__", ())
        return [n for n in object.__dir__(self) if n in own or (n not in _HIDDEN and _is_shown(n))]

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        known = itertools.takewhile(lambda m: m is not None, (self.expects(i) for i in itertools.count()))
        return tuple(InputMetadata(*m) for m in known if m is not None)


#: The same edges for the engine, which does not expand a folded node
#: (``compat._operators.nn.expanded_nodes``).
_slot: Any = Node.__dict__["next_functions"]
Node._edges = _slot


class InputMetadata:
    """The metadata of an incoming gradient: those of the operation's result."""

    __slots__ = ("shape", "dtype", "device")
    is_nested_tensor = False
    is_cpp_nested_tensor = False

    def __init__(self, shape: Size, dtype: Dtype, device: Device = CPU):
        self.shape, self.dtype, self.device = list(shape), dtype, device


InputMetadata.__module__ = "torch._C._autograd"
InputMetadata.__name__ = InputMetadata.__qualname__ = "_InputMetadata"

#: What nodes have for themselves.
_HIDDEN = frozenset(
    ["apply", "expects", "fitted", "hooks", "numbers", "places_of_numbers", "plan", "program", "release"]
    + ["saved", "saved_tensor", "saves", "swept", "thorough"]
)
#: Attributes of PyTorch's nodes that begin with an underscore, besides saved values.
_SHOWN = frozenset(
    ("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "_materialize_non_diff_grads")
    + ("_forward_cls", "_autograd_function_id", "_compiled_autograd_backward_state", "_is_pure_view")
)


def _is_shown(name: str) -> bool:
    return not name.startswith("_") or name.startswith(("__", "_saved_", "_raw_saved_")) or name in _SHOWN


class AccumulateGrad(Node):
    """Accumulates gradients into the ``grad`` of a leaf.

    Attributes:
        variable: the leaf.
        size: its size when the node was made: gradients of that size come, also once it has another one.
    """

    __slots__ = ("variable", "size")
    variable: Tensor
    size: Size

    next_functions = _edges = ()
    #: It is always the latest, so a leaf's gradient is complete as soon as it can be.
    _sequence = sys.maxsize

    def __init__(self, variable: Tensor):
        self.variable = variable
        self.size = variable._layout_.size
        self._hooks = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def particular(self) -> bool:
        """Whether it expects other gradients than operations give: of the size that its leaf had, or a dtype chosen."""
        meta = self.variable._autograd_state_
        return self.size != self.variable._layout_.size or (meta is not None and meta.grad_dtypes is not None)

    def fitted(self, nr: int, grad: Tensor, make_error: Callable[[str], Exception]) -> Tensor:
        meta = self.variable._autograd_state_
        if meta is None or meta.grad_dtypes is None:
            return super().fitted(nr, grad, make_error)
        return fit(grad, (self.size, meta.grad_dtypes[0] if meta.grad_dtypes else grad.dtype), make_error)

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return (self.size, self.variable._layout_.dtype) if nr == 0 else None

    def program(self) -> Program:
        dtype = self.variable._layout_.dtype.numpy
        assert dtype is not None
        return stage(lambda grad: [grad], [ArrayType(tuple(self.size), dtype)], name="AccumulateGrad")

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        grad = grads[0]
        variable = self.variable
        meta = autograd_of(variable)
        if grad is None or not variable._rg_:
            pass  # nothing came, or it is not wanted any more; its hooks are called all the same
        elif variable._node_ is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        elif meta.grad is None:
            del grad  # other references than the list's count
            meta.grad = _owned(variable, grads)
            if isinstance(grads, list) and self._hooks is not None and self._hooks.post:
                grads[0] = meta.grad.detach()  # it was taken over: changes of ``grad`` are seen in it
        else:
            if mode.grad or (meta.grad.__class__ is not Tensor and meta.grad.layout is not grad.layout):
                meta.grad = added(meta.grad, grad)
            else:
                meta.grad.add_(grad)
            if meta.grad._layout_.stride != variable._layout_.stride and mode.lays_out:
                _check_layout(meta.grad, variable)
        if meta.post_accumulate:
            for hook in list(meta.post_accumulate.values()):
                given = hook(variable)
                if isinstance(given, Tensor):
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
                if given is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(given).__name__}'")
        return ()


def added(a: Tensor, b: Tensor) -> Tensor:
    """Two gradients together; a sparse one is added to a dense one."""
    return b + a if has_say(a) and a.is_sparse and not b.is_sparse else a + b


def _owned(variable: Tensor, grads: Sequence[Any]) -> Tensor:
    """A gradient with memory of its own, laid out as its variable if that is gapless, else row-major.

    Buffers are never changed, so one that holds just this gradient need not be copied. The memory itself is handed on
    as in PyTorch: a gradient without other references, and one that backward was given and came here by
    views alone.

    Args:
        grads: a list of the incoming gradient.
    """
    from compat._core.memory.strides import contiguous_strides

    alone = sys.getrefcount(grads[0]) == 2  # the list, and the argument just now
    grad: Tensor = grads[0]
    layout = variable._layout_
    stride = layout.stride if layout.dense else contiguous_strides(layout.size)
    if has_say(grad) and grad.layout is not strided:
        whole = not grad.is_sparse or (grad._values().is_contiguous() and grad._indices().is_contiguous())
        return grad.detach() if alone and whole else grad.clone()
    if has_say(grad):
        return grad.detach() if grad.stride() == stride else grad.clone()
    found = grad._layout_
    whole = found.whole and not found.conj and not found.neg and found.base.device is layout.base.device
    if grad._view_ is PASSING and mode.task.hands_over(grad):
        if all(n < 2 or a == b for n, a, b in zip(found.size, found.stride, stride)):
            grad._view_ = SHARED
            return grad
    if not mode.grad and alone and not mode.lays_out:
        return grad.detach()
    if not mode.grad and whole and (found.stride == stride if found.size == layout.size else _obeys(found, layout)):
        storage = grad._storage_
        if storage.base.traced and level_stack.state.duals is not None:
            return grad.detach()  # a tangent that it has is not kept
        return wrap(storage, found) if alone and grad._view_ is None else from_buffer(storage.buffer, found)
    return variable.detach().new_empty_strided(layout.size, stride, dtype=grad.dtype).copy_(grad)


def _check_layout(grad: Tensor, variable: Tensor) -> None:
    """Warns of a gradient that is not laid out as its leaf's would be, once."""
    if has_say(grad) or _obeys(grad._layout_, variable._layout_):
        return
    Once.warn(
        "grad and param do not obey the gradient layout contract. This is not an error, but may impair performance.\n"
        f"grad.sizes() = {size_text(grad.shape)}, strides() = {size_text(grad.stride())}\n"
        f"param.sizes() = {size_text(variable.shape)}, strides() = {size_text(variable.stride())}",
        key="gradient layout contract",
    )


def _obeys(found: Layout, layout: Layout) -> bool:
    """Whether a gradient of another size than its leaf's lies as PyTorch takes it over: it looks along the gradient's
    dimensions. Where it does not, copying it to the leaf's layout raises an error."""
    if not layout.dense:
        return found.contiguous
    return all(n == 1 or a == b for n, a, b in zip(found.size, found.stride, layout.stride))


def has_say(t: Tensor) -> bool:
    """Whether the type of a tensor overrides operations (``compat._core.dispatch.torch_dispatch``)."""
    return t.__class__ is not Tensor and bool(t._has_say_)


AccumulateGrad.__module__ = "builtins"


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The node that accumulates a leaf's gradient; the same one as long as somebody holds it."""
    meta = leaf._autograd_state_
    if meta is None:
        meta = leaf._autograd_state_ = Autograd()
    elif meta.accumulator is not None:
        found = meta.accumulator()
        if found is not None:
            return found
    node = AccumulateGrad(leaf)
    meta.accumulator = weakref.ref(node)
    return node


def leaf_edge(t: Tensor) -> Edge:
    """The edge to a leaf's accumulator."""
    view = t._view_
    if (
        view is not None
        and view.base is not None
        and view.base.requires_grad
        and not (t._autograd_state_ and t._autograd_state_.own)
    ):
        # A view made without recording: its base is what requires grad, and no gradient can reach that.
        return NO_EDGE
    return (accumulator(t), 0)


def edge_of(t: Tensor) -> Edge:
    """The gradient edge of a tensor."""
    if not t.requires_grad:
        return NO_EDGE
    node = t.grad_fn
    return leaf_edge(t) if node is None else (node, t._nr_)


def fit(grad: Tensor, expected: tuple[Size, Dtype] | None, make_error: Callable[[str], Exception]) -> Tensor:
    """A gradient in its tensor's size and dtype: summed over broadcast dimensions, cast if the dtype differs.

    Args:
        make_error: makes the exception, given what is wrong.
    """
    if expected is None:
        return grad
    size, dtype = expected
    if grad.shape != size:
        shift = len(grad.shape) - len(size)
        if shift < 0 or any(n not in (1, m) for n, m in zip(size, grad.shape[shift:])):
            raise make_error(f"got {size_text(grad.shape)} but expected shape compatible with {size_text(size)}")
        grad = grad.sum_to_size(size)
    if grad.dtype is not dtype:
        grad = (grad.real if grad.dtype.is_complex and not dtype.is_complex else grad).to(dtype)
    return grad
