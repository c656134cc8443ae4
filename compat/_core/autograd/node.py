"""Nodes of the backward graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compat._core.autograd.hooks import Hooks
from compat._core.tensor.tensor import Tensor
from compat._core.types.device import CPU
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import size_text
from compat._core.types.removable_handle import RemovableHandle, register
from compat._core.types.size import Size
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage

#: A node and the number of its output.
Edge = tuple["Node | None", int]
NO_EDGE: Edge = (None, 0)


class GradientEdge(NamedTuple):
    """The edge of a tensor's gradient: a node, and the number of its output."""

    node: Any
    output_nr: int
    ownership_token: Any = None


GradientEdge.__module__ = "compat.autograd.graph"


class Node:
    """A node of the backward graph: computes the gradients of an operation's operands from those of its results.

    Attributes:
        next_functions: for each operand its node and output number; ``(None, 0)`` for operands without a gradient.

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
    #: Whether hooks get its gradients also for operands without an edge, as for custom functions.
    thorough = False
    #: Whether its plan and saved values determine ``apply``, so that a pass can be cached; and whether it saves any.
    swept = False
    saves = False

    def name(self) -> str:
        """PyTorch's name of the node."""
        return type(self).__name__

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's data."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict = {}
            return self._metadata

    def _sequence_nr(self) -> int:
        """The sequence number: later nodes have greater ones."""
        return int(self._sequence)

    def _set_sequence_nr(self, number: int) -> None:
        """Sets the sequence number: nodes with greater ones run first."""
        self._sequence = number

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The gradients of the operands, from those of the results."""
        raise NotImplementedError

    def __call__(self, *grads: Tensor | None, **kwargs: Any) -> Any:
        """The gradients of the operands, from those of the results: one if there is one operand, else a tuple.

        Raises:
            TypeError: if the numbers of gradients and results differ, or a gradient is not a tensor.
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
        """The origins of the last numbers of the operation that a ``swept`` node records.

        Args:
            present: for each incoming gradient, whether it is not None.
            views: the saved tensors that do not cover their storage.

        Returns:
            For each number the index of the node's number, or ``~i`` for the offset of saved tensor ``i``.
        """
        return ()

    def release(self) -> None:
        """Frees the saved tensors; another backward through the node then raises an error."""

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        """The size and dtype of a result's gradient, if known."""
        return None

    def fitted(self, nr: int, grad: Tensor, make_error: Callable[[str], Exception]) -> Tensor:
        """The gradient of a result, converted to the expected size and dtype.

        Args:
            make_error: makes the exception from a description of the problem.
        """
        return fit(grad, self.expects(nr), make_error)

    def program(self) -> Program:
        """Its computation as funcgrad's program: gradients of the operands from those of the results.

        Concrete values, such as those that a custom function saved, are constants of the program.

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
        """Its hooks; creates the object if necessary."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_inputs, grad_outputs)`` after this node ran; a result replaces ``grad_inputs``."""
        return register(self.hooks().post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_outputs)`` before this node runs; a result replaces them."""
        return register(self.hooks().pre, fn)

    def _register_hook_dict(self, hooks: dict) -> None:
        self.hooks().post.update(hooks)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def __dir__(self) -> list[str]:
        """The names of PyTorch's nodes, and attributes that the user has set."""
        own = getattr(self, "__dict__", ())
        return [n for n in object.__dir__(self) if n in own or (n not in _HIDDEN and _is_shown(n))]

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        known = itertools.takewhile(lambda m: m is not None, (self.expects(i) for i in itertools.count()))
        return tuple(InputMetadata(*m) for m in known if m is not None)


#: The slot of ``next_functions`` for the engine, which does not expand a folded node
#: (``compat._operators.nn.expanded_nodes``).
_slot: Any = Node.__dict__["next_functions"]
Node._edges = _slot


class InputMetadata:
    """The metadata of an incoming gradient, which are those of the operation's result."""

    __slots__ = ("shape", "dtype", "device")
    is_nested_tensor = False
    is_cpp_nested_tensor = False

    def __init__(self, shape: Size, dtype: Dtype, device: Device = CPU):
        self.shape, self.dtype, self.device = list(shape), dtype, device


InputMetadata.__module__ = "torch._C._autograd"
InputMetadata.__name__ = InputMetadata.__qualname__ = "_InputMetadata"

#: Attributes that PyTorch's nodes lack.
_HIDDEN = frozenset(
    ["apply", "expects", "fitted", "hooks", "numbers", "places_of_numbers", "plan", "program", "release"]
    + ["saved", "saved_tensor", "saves", "swept", "thorough"]
)
#: Attributes of PyTorch's nodes with a leading underscore, besides saved values.
_SHOWN = frozenset(
    ("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "_materialize_non_diff_grads")
    + ("_forward_cls", "_autograd_function_id", "_compiled_autograd_backward_state", "_is_pure_view")
)


def _is_shown(name: str) -> bool:
    return not name.startswith("_") or name.startswith(("__", "_saved_", "_raw_saved_")) or name in _SHOWN


def overrides_operators(t: Tensor) -> bool:
    """Whether the type of a tensor overrides operations (``compat._core.dispatch.torch_dispatch``)."""
    return t.__class__ is not Tensor and bool(t._overrides_operators_)


def fit(grad: Tensor, expected: tuple[Size, Dtype] | None, make_error: Callable[[str], Exception]) -> Tensor:
    """A gradient in the expected size and dtype: summed over broadcast dimensions, cast if the dtype differs.

    Args:
        make_error: makes the exception from a description of the problem.
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
