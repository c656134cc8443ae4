"""Functions of pytrees of tensors, in the form that interpreters take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_map, tree_unflatten
from compat._core.tensor.capture_checks import capturing
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import TensorTracer, array, outside, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.logical_strides import place_as
from compat.autograd.graph import disable_saved_tensors_hooks
from funcgrad.core.tracing import Tracer


def tensors_outside(tree: Any) -> Any:
    """A pytree of tensors, without tracers of transforms that have returned.

    Raises:
        RuntimeError: if a leaf is not a tensor.
    """

    def one(x: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return tensor_of(level_stack.held(outside(array(x)))) if x._storage_.base.traced else x

    return tree_map(one, tree)


_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
    "case."
)


class Flat:
    """A function of pytrees of tensors as a function of flat arrays.

    Args:
        function: a function of the children of a pytree of structure ``tree``.
        leaves: the tensors of the call, whose memory layout the arguments get.
        kind: the kind of the transform.
        name: the name of the transform in messages.
        has_aux: whether ``function`` returns a pair, of which only the first part is the result.

    Attributes:
        out_tree, aux: the structure of the last result, and the auxiliary output.
        written: the indices of the arguments that the function wrote in place, and their new values.
        given: the arguments of the last call to differentiate with respect to in reverse mode.
    """

    def __init__(
        self, function: Any, leaves: Sequence[Tensor], tree: TreeSpec, kind: str, name: str, has_aux: bool = False
    ):
        self.function = function
        self.leaves = leaves
        self.tree = tree
        self.kind = kind
        self.name = name
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None
        self.written: list[tuple[int, Any]] = []
        self.given: list[Tensor] = []

    def __call__(self, *arrays: Any) -> list[Any]:
        interpreter = next((x.interpreter for x in arrays if isinstance(x, Tracer)), None)
        if any(isinstance(getattr(x, "value", None), TensorTracer) for x in arrays):
            level_stack.through(interpreter)
        with self._level() as entered:
            entered.interpreter = interpreter
            given = [place_as(tensor_of(a), x) for a, x in zip(arrays, self.leaves)]
            memory = [(t._storage_, t._storage_.buffer) for t in given]
            if self.kind == "grad":
                entered.given = self.given = [t for t in given if t._storage_.base.traced]
                entered.leaves = [t._storage_ for t in entered.given]
                for t in entered.given:
                    t._rg_, t._node_ = True, None
            result = self.function(*tree_unflatten(given, self.tree))
            if self.has_aux:
                result, self.aux = paired(result, f"{self.name}: output of function f should be a tuple: (output, aux)")
            leaves, self.out_tree = tree_flatten(result)
            self.check(leaves)
            fresh = [not isinstance(outside(a), TensorTracer) for a in arrays]
            written = [(i, storage.buffer) for i, (storage, x) in enumerate(memory) if storage.buffer is not x]
            self.written = [(i, x) for i, x in written if fresh[i]]
            return [array(leaf) for leaf in leaves]

    def write_back(self) -> None:
        """Copies in-place writes of the function to the tensors that it was called with."""
        for i, x in self.written:
            self.leaves[i].copy_(tensor_of(x))

    @contextmanager
    def _level(self) -> Iterator[level_stack.Level]:
        with level_stack.level(self.kind) as entered, capturing():
            if self.kind != "grad":
                yield entered
                return
            with disable_saved_tensors_hooks(_NO_HOOKS):
                yield entered

    def check(self, leaves: Sequence[Any]) -> None:
        """Raises ``RuntimeError`` unless the function returned tensors."""
        if not leaves or (len(leaves) == 1 and leaves[0] is None):
            raise RuntimeError(
                f"{self.name}: Expected f to be a function that has non-empty output (got output = {list(leaves)})"
            )
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"{self.name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
                )

    def wrap(self, arrays: Sequence[Any]) -> Any:
        """Arrays as a pytree of tensors with the structure of the last result."""
        return tree_unflatten([tensor_of(a) for a in arrays], self.out_tree)


def paired(result: Any, message: str) -> tuple[Any, Any]:
    """The parts of the result of a function with ``has_aux``.

    Raises:
        RuntimeError: if it is not a pair.
    """
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{message} if has_aux is True")
    return result
