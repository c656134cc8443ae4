"""The public functions ``backward`` and ``grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from compat._core.autograd.accumulate_grad import AccumulateGrad, accumulator, edge_of
from compat._core.autograd.engine import run_backward
from compat._core.autograd.node import NO_EDGE, Edge, GradientEdge, Node, overrides_operators
from compat._core.dispatch.dispatcher import layers
from compat._core.operators.recall import recalled
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import handle_torch_function, has_torch_function
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types.device import CPU
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import Once, leading, warn
from compat._core.types.size import Size

Tensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]

_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


def _roots(x: Any) -> tuple:
    """One or several tensors or gradient edges, as a tuple."""
    return (x,) if isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def _device_of(node: Node) -> Device:
    """The device of a node's results; the CPU for a node without a plan."""
    if isinstance(node, AccumulateGrad):
        return node.variable.device
    plan = getattr(node, "plan", None)
    device: Device = CPU if plan is None else plan.device
    return device


def _ones(size: Size, dtype: Dtype, device: Device) -> Tensor:
    ones: Tensor = names_of("torch")["ones"](size, dtype=dtype, device=device)
    return ones


_known_ones = recalled(_ones)


class _Root(NamedTuple):
    """A root of backward: a tensor, or a gradient edge."""

    edge: Edge
    size: Size
    dtype: Dtype
    device: Device

    @classmethod
    def of(cls, given: Tensor | GradientEdge) -> _Root:
        if not isinstance(given, GradientEdge):
            if not isinstance(given, Tensor):
                raise AssertionError("Expected output to be a torch.Tensor")
            edge = edge_of(given) if given.grad_fn is None else (given._node_, given._nr_)
            return cls(edge, given.shape, given.dtype, given.device)
        expected = given.node.expects(given.output_nr)
        if expected is None:
            raise IndexError("tuple index out of range")
        size, dtype = expected
        return cls((given.node, given.output_nr), size, dtype, _device_of(given.node))

    def gradient(self, i: int, grad: Any, root: Tensor | GradientEdge) -> Tensor | None:
        """The gradient with respect to the root: the given one, or 1 for a scalar."""
        if isinstance(grad, Tensor):
            return self._checked(i, grad)
        if grad is not None:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        if self.edge[0] is None:
            return None
        if prod(self.size) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if self.dtype.is_complex:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {self.dtype}")
        if isinstance(root, Tensor) and (mode.watched or overrides_operators(root)):
            ones: Tensor = names_of("torch")["ones_like"](root)
            return ones
        return (_ones if layers else _known_ones)(self.size, self.dtype, self.device)

    def _checked(self, i: int, grad: Tensor) -> Tensor:
        if grad.shape != self.size:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of "
                f"{self.size}."
            )
        if grad.dtype.is_complex != self.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {self.dtype}."
            )
        if grad.device is not self.device:
            raise RuntimeError(f"invalid gradient at index {i} - expected device {self.device} but got {grad.device}")
        return grad if grad.dtype is self.dtype else grad.to(self.dtype)


def _roots_and_grads(roots: Sequence[Any], given: Sequence[Any]) -> tuple[list[Edge], list[Tensor | None]]:
    """The edges of the roots, and the gradients with respect to them.

    Raises:
        RuntimeError: if a root does not require grad, or a gradient is missing or incompatible.
    """
    if len(given) < len(roots):  # additional gradients are ignored
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    known = [_Root.of(r) for r in roots]
    grads = [r.gradient(i, g, root) for i, (r, g, root) in enumerate(zip(known, given, roots))]
    for i, root in enumerate(known):
        if root.edge[0] is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    return [r.edge for r in known], grads


@leading
def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``grad`` of the leaves that they were computed from.

    Args:
        tensors: the tensors to differentiate.
        grad_tensors: the gradient with respect to each of ``tensors``; optional for scalars.
        retain_graph: whether nodes keep their saved tensors for another backward; by default ``create_graph``.
        create_graph: whether to record the backward pass, so that it can be differentiated.
        inputs: the tensors whose ``grad`` changes; by default all leaves.

    Raises:
        RuntimeError: if a tensor does not require grad, or a gradient is missing or incompatible.
    """
    if has_torch_function(relevant := _roots(tensors) + (() if inputs is None else _roots(inputs))):
        named: dict[str, Any] = {"grad_tensors": grad_tensors, "retain_graph": retain_graph}
        named |= {"create_graph": create_graph, "inputs": None if inputs is None else _roots(inputs)}
        handle_torch_function(backward, relevant, _roots(tensors), **named)
        return
    level_stack.refuse("backward")
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                "only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _roots(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _roots(tensors)
    given = [None] * len(roots) if grad_tensors is None else _roots(grad_tensors)
    edges, grads = _roots_and_grads(roots, given)
    if create_graph:
        Once.warn(_CYCLE)
    targets = None
    if inputs is not None:
        targets = []
        for t in inputs:
            if isinstance(t, Tensor):
                t.retain_grad()  # has no effect on a leaf
            targets.append(_input_edge(t))
    keep = create_graph if retain_graph is None else retain_graph
    run_backward(edges, grads, keep_graph=keep, create_graph=create_graph, inputs=targets)


def as_tuple(given: Any) -> tuple:
    """A value, or the elements of a tuple or list, as a tuple."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _input_edge(t: Tensor | GradientEdge) -> Edge:
    if isinstance(t, GradientEdge):
        return (t.node, t.output_nr)
    if not isinstance(t, Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    if not t.requires_grad:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    # The accumulator of a leaf is freed if no recorded node has an edge to it.
    if t.grad_fn is None and (
        t._autograd_state_ is None or t._autograd_state_.accumulator is None or t._autograd_state_.accumulator() is None
    ):
        return (accumulator(t), 0)
    return edge_of(t)


@leading
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of ``outputs`` with respect to ``inputs``; no ``grad`` attribute changes.

    Args:
        outputs, inputs: tensors.
        grad_outputs: the gradient with respect to each output; optional for scalars.
        retain_graph, create_graph: as for ``backward``.
        only_inputs: ignored, with a warning for False.
        allow_unused: whether to return None for inputs that the outputs do not depend on, instead of raising an error.
        is_grads_batched: whether ``grad_outputs`` have a leading batch dimension, whose elements one backward pass
            differentiates.
        materialize_grads: whether to return zeros instead of None; implies ``allow_unused``.

    Example:
        >>> import compat as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> torch.autograd.grad(x**2, x)
        (tensor(6.),)
    """
    relevant = as_tuple(outputs) + as_tuple(inputs)
    if has_torch_function(relevant):
        overridden: tuple = handle_torch_function(
            grad, relevant, as_tuple(outputs), as_tuple(inputs), retain_graph=retain_graph, create_graph=create_graph,
            only_inputs=only_inputs, allow_unused=allow_unused, is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads, grad_outputs=grad_outputs,
        )  # fmt: skip
        return overridden
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    roots, targets = _roots(outputs), _roots(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = [None] * len(roots) if grad_outputs is None else list(_roots(grad_outputs))
    if level_stack.state.graphs:
        _check_not_vmapped(roots, "output")
        _check_not_vmapped(targets, "input")

    keep_graph = create_graph if retain_graph is None else retain_graph

    def vjp(*grads: Tensor | None, keeps: bool = False) -> list[Tensor | None]:
        unused = bool(allow_unused or materialize_grads)
        return _vjp(roots, targets, grads, keep_graph or keeps, create_graph, unused)

    found = _batched_vjp(vjp, roots, given) if is_grads_batched else vjp(*given)
    for i, (t, g) in enumerate(zip(targets, found)):
        if g is None and materialize_grads:
            if isinstance(t, GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            found[i] = names_of("torch")["zeros_like"](t).requires_grad_(create_graph)
    return tuple(found)


def _vjp(
    roots: tuple,
    targets: tuple,
    given: Sequence[Tensor | None],
    keep_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    """The gradients of ``roots`` with respect to ``targets``.

    Raises:
        RuntimeError: if one of them has no gradient, without ``allow_unused``.
    """
    edges, grads = _roots_and_grads(roots, given)
    found = run_backward(
        edges,
        grads,
        keep_graph=keep_graph,
        create_graph=create_graph,
        inputs=[_input_edge(t) for t in targets],
        accumulate=False,
    )
    for i, g in enumerate(found):
        if g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    return found


def _check_not_vmapped(tensors: Sequence[Any], what: str) -> None:
    """Raises ``RuntimeError`` if ``vmap`` batches one of the outputs or inputs."""
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and vmap_checks.maps(t._storage_.buffer):
            raise RuntimeError(
                "torch.autograd.grad(outputs, inputs, grad_outputs) called inside torch.vmap. We do not support the "
                f"case where any {what}s are vmapped tensors ({what} {i} is being vmapped over). Please call "
                "autograd.grad() outside torch.vmap or file a bug report with your use case."
            )


def _batched_vjp(vjp: Callable[..., list[Tensor | None]], roots: tuple, given: list) -> list[Tensor | None]:
    """``vjp`` of gradients batched along their leading dimension, in one pass, by ``torch.vmap``."""
    for i, (root, g) in enumerate(zip(map(_Root.of, roots), given)):
        if isinstance(g, Tensor) and g.shape[1:] != root.size:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {g.shape[2:]} and output[{i}] "
                f"has a shape of {root.size}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    if any(isinstance(t, Tensor) and overrides_operators(t) for t in (*roots, *given)):
        return _looped_vjp(vjp, given)
    indices: list[int] = []

    def present(*grads: Tensor | None) -> list[Tensor]:
        found = vjp(*grads)
        indices.extend(i for i, g in enumerate(found) if g is not None)
        count.append(len(found))
        return [g for g in found if g is not None]

    count: list[int] = []
    in_dims = tuple(None if g is None else 0 for g in given)
    with level_stack.graphs():
        columns = names_of("torch")["vmap"](present, in_dims)(*given)
    found: list[Tensor | None] = [None] * count[0]
    for i, column in zip(indices, columns):
        found[i] = column
    return found


def _looped_vjp(vjp: Callable[..., list[Tensor | None]], given: list) -> list[Tensor | None]:
    """``_batched_vjp`` for tensors of subclasses that override operators, which transforms cannot trace."""
    count = next(len(g) for g in given if g is not None)
    rows = [vjp(*[None if g is None else g[i] for g in given], keeps=i + 1 < count) for i in range(count)]
    return [None if column[0] is None else names_of("torch")["stack"](list(column)) for column in zip(*rows)]


@function("Tensor.backward")
def tensor_backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Adds the gradients of this tensor to the ``grad`` of the leaves that it was computed from.

    Args:
        gradient: the gradient with respect to this tensor; optional for a scalar.
        retain_graph: whether nodes keep their saved tensors for another backward; by default ``create_graph``.
        create_graph: whether to record the backward pass, so that it can be differentiated.
        inputs: the tensors whose ``grad`` changes; by default all leaves.

    Example:
        >>> import compat as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


__all__ = ["NO_EDGE", "backward", "grad", "mode"]
