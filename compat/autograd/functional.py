"""``torch.autograd.functional``: derivatives of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.node import overrides_operators
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import enable_grad, is_grad_enabled, set_grad_enabled
from compat.autograd import forward_ad
from compat.autograd._backward import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Grads = tuple[Tensor | None, ...]
_NOT_STRICT = "This is not allowed in strict mode"


def _torch(name: str) -> Any:
    return names_of("torch")[name]


class _Tensors:
    """A tensor, or a tuple of them, normalized to a tuple.

    Attributes:
        tensors: the tuple.
        several: whether it was a tuple.
    """

    def __init__(self, given: Any, what: str, function: str):
        self.several = isinstance(given, tuple)
        self.tensors: tuple[Tensor, ...] = given if self.several else (given,)
        for i, t in enumerate(self.tensors):
            if not isinstance(t, Tensor):
                value = f"value at index {i}" if self.several else f"given {what}"
                raise TypeError(
                    f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {value} has "
                    f"type {type(t)}."
                )

    def like(self, values: Sequence[Any]) -> Any:
        """The values as a tuple if a tuple was given, otherwise the single value."""
        return tuple(values) if self.several else values[0]


def _inputs(given: Any, function: str, create_graph: bool, need_graph: bool = True, what: str = "inputs") -> _Tensors:
    """The arguments of a function as new tensors, distinct from captured ones."""
    found = _Tensors(given, what, function)
    found.tensors = tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph)
        for t in found.tensors
    )
    return found


def _outputs(func: Callable[..., Any], inputs: _Tensors, function: str, strict: bool) -> _Tensors:
    found = _Tensors(func(*inputs.tensors), "outputs of the user-provided function", function)
    for i, out in enumerate(found.tensors):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )
    return found


def _single(func: Callable[..., Any], inputs: _Tensors, function: str, strict: bool) -> _Tensors:
    """The scalar result of a function, for its Hessian."""
    found = _outputs(func, inputs, function, strict)
    if found.several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if found.tensors[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return found


_NEEDS_ONE = "The vector v can only be None if the {} a single Tensor with a single element."


def _vector(v: Any, of: _Tensors, function: str, create_graph: bool, otherwise: str) -> tuple[Tensor, ...] | None:
    """The vector of a product, with a tensor for each tensor of ``of``; None means 1."""
    if v is None:
        if len(of.tensors) != 1 or of.tensors[0].numel() != 1:
            raise RuntimeError(_NEEDS_ONE.format(otherwise))
        return None
    found = _inputs(v, function, create_graph, False, "v").tensors
    if len(found) != len(of.tensors):
        if of.several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(of.tensors)} but got {len(found)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (x, other) in enumerate(zip(found, of.tensors)):
        if x.shape != other.shape:
            entry = f"Entry {i} in " if of.several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {x.shape}.")
    return found


def _gradients(outputs: Sequence[Any], inputs: Sequence[Tensor], cts: Any, create_graph: bool) -> Grads:
    """Gradients, with None for inputs that the outputs do not depend on."""
    cts = [None] * len(outputs) if cts is None else cts
    pairs = [(o, g) for o, g in zip(outputs, cts) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, seeds = zip(*pairs)
    return grad(roots, inputs, list(seeds), retain_graph=True, create_graph=create_graph, allow_unused=True)


def _filled(grads: Grads, like: Sequence[Tensor], strict: bool, create_graph: bool, absent: str, fixed: str) -> list:
    """Gradients with None replaced by zeros.

    Args:
        absent: the error for a missing gradient with ``strict``.
        fixed: the error for a gradient without a derivative with ``strict`` and ``create_graph``.
    """
    found = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(absent.format(i))
            g = _torch("zeros_like")(t)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {fixed} of the user-provided function is independent of input {i}. {_NOT_STRICT} "
                "when create_graph=True."
            )
        found.append(g)
    return found


def _dependent(grads: Sequence[Tensor | None], strict: bool, text: str) -> None:
    """Checks, if ``strict``, that gradients depend on the inputs."""
    for i, g in enumerate(grads if strict else ()):
        if g is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. {_NOT_STRICT}.")
        if not g.requires_grad:
            raise RuntimeError(text.format(i))


_JACOBIAN_FIXED = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)
_HESSIAN_FIXED = (
    "The hessian of the user-provided function with respect to input {} is independent of the input. This is not "
    "allowed in strict mode. You should ensure that your function is thrice differentiable and that the hessian "
    "depends on the inputs."
)
_GRADIENT_FIXED = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
    f"{_NOT_STRICT}."
)
_NO_VALUE = f"The output of the user-provided function is independent of input {{}}. {_NOT_STRICT}."
_NO_SEED = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    f"backward trick to compute forward mode gradients. {_NOT_STRICT}."
)
_NO_JACOBIAN = f"The jacobian of the user-provided function is independent of input {{}}. {_NOT_STRICT}."
_NO_HESSIAN = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    f"{_NOT_STRICT} as it prevents from using the double backward trick to replace forward mode AD."
)


def _detached(tree: Any, create_graph: bool) -> Any:
    """Results, detached unless ``create_graph``."""
    if create_graph:
        return tree
    return tree.detach() if isinstance(tree, Tensor) else tuple(_detached(t, create_graph) for t in tree)


# ---------------------------------------------------------------- products


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of ``func`` and the vector-Jacobian product.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the value's size; optional if the value has one element.
        create_graph: whether the results are differentiable.
        strict: whether to raise an error if a result does not depend on an input, instead of returning zeros.

    Raises:
        RuntimeError: for an incompatible ``v``.

    Example:
        >>> torch.autograd.functional.vjp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.ones(2))
        (tensor([1., 9.]), tensor([2., 6.]))
    """
    with enable_grad():
        given = _inputs(inputs, "vjp", create_graph)
        outputs = _outputs(func, given, "vjp", strict)
        vector = _vector(v, outputs, "vjp", create_graph, "user-provided function returns")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _gradients(outputs.tensors, given.tensors, vector, create_graph)
        found = _filled(grads, given.tensors, strict, create_graph, _NO_VALUE, "jacobian")
    return outputs.like(_detached(outputs.tensors, create_graph)), given.like(_detached(found, create_graph))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of ``func`` and the Jacobian-vector product, by two backward passes.

    Args:
        v: the vector, of the inputs' size; optional if the input has one element.

    The other arguments are those of ``vjp``.

    Example:
        >>> torch.autograd.functional.jvp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.ones(2))
        (tensor([1., 9.]), tensor([2., 6.]))
    """
    with enable_grad():
        given = _inputs(inputs, "jvp", create_graph)
        vector = _vector(v, given, "jvp", create_graph, "input to the user-provided function is")
        outputs = _outputs(func, given, "jvp", strict)
        # The gradient is linear in the seeds: its derivative with respect to them is the product.
        seeds = tuple(_torch("zeros_like")(out).requires_grad_() for out in outputs.tensors)
        grads = _gradients(outputs.tensors, given.tensors, seeds, True)
        _dependent(grads, strict, _GRADIENT_FIXED)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        moved = _gradients(grads, seeds, vector, create_graph)
        found = _filled(moved, outputs.tensors, strict, create_graph, _NO_SEED, "jacobian")
    return outputs.like(_detached(outputs.tensors, create_graph)), outputs.like(_detached(found, create_graph))


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of ``func``, which has one element, and the vector-Hessian product.

    The arguments are those of ``jvp``.

    Example:
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        given = _inputs(inputs, "vhp", create_graph)
        vector = _vector(v, given, "vhp", create_graph, "input to the user-provided function is")
        outputs = _single(func, given, "vhp", strict)
        jacobian = _gradients(outputs.tensors, given.tensors, None, True)
        _dependent(jacobian, strict, _JACOBIAN_FIXED)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _gradients(jacobian, given.tensors, vector, create_graph)
        found = _filled(grads, given.tensors, strict, create_graph, _NO_JACOBIAN, "hessian")
    return outputs.like(_detached(outputs.tensors, create_graph)), given.like(_detached(found, create_graph))


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of ``func``, which has one element, and the Hessian-vector product.

    Equal to ``vhp``, with an additional backward pass. The arguments are those of ``jvp``.

    Example:
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        given = _inputs(inputs, "hvp", create_graph)
        vector = _vector(v, given, "hvp", create_graph, "input to the user-provided function is")
        outputs = _single(func, given, "hvp", strict)
        jacobian = _gradients(outputs.tensors, given.tensors, None, True)
        _dependent(jacobian, strict, _JACOBIAN_FIXED)
        seeds = tuple(_torch("zeros_like")(t).requires_grad_() for t in given.tensors)
        twice = _gradients(jacobian, given.tensors, seeds, True)
        _dependent(jacobian, strict, _HESSIAN_FIXED)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _gradients(twice, seeds, vector, create_graph)
        found = _filled(grads, given.tensors, strict, create_graph, _NO_HESSIAN, "hessian")
    return outputs.like(_detached(outputs.tensors, create_graph)), given.like(_detached(found, create_graph))


# ---------------------------------------------------------------- matrices


def basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The unit vectors of the product space of tensors: the components in each tensor, along a new dimension 0."""
    parts = _construct_standard_basis_for(tensors, [t.numel() for t in tensors]) if tensors else ()
    return [part.reshape(part.shape[0], *t.shape) for part, t in zip(parts, tensors)]


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """The components of ``basis``, flattened.

    Args:
        tensor_numels: the number of elements of each tensor.

    Raises:
        AssertionError: if the numbers of sizes and tensors differ, or there are none.
    """
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            "Expected tensors and tensor_numels to have the same length, but got "
            f"{len(tensors)} and {len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total, start, found = sum(tensor_numels), 0, []
    for t, n in zip(tensors, tensor_numels):
        part = t.detach().new_zeros(total, n)
        part.diagonal(-start).fill_(1)
        start += n
        found.append(part)
    return tuple(found)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func``.

    Args:
        func, inputs, create_graph, strict: as for ``vjp``.
        vectorize: whether to compute all rows in one batched pass.
        strategy: "reverse-mode", by rows, or "forward-mode", by columns, which requires ``vectorize``.

    Returns:
        A tensor of the output's size followed by the input's; a tuple of such tensors for several inputs, and a tuple
        of such tuples for several outputs.

    Raises:
        RuntimeError: for ``strict`` with ``vectorize``, or independent outputs with ``strict``.
        NotImplementedError: for "forward-mode" with ``create_graph`` or without ``vectorize``.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
        tensor([[2., 0.],
                [0., 6.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _columns(func, inputs, strict, vectorize)
    with enable_grad():
        given = _inputs(inputs, "jacobian", create_graph)
        outputs = _outputs(func, given, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        # Transforms cannot trace tensor subclasses that override operators.
        if vectorize and not any(map(overrides_operators, (*given.tensors, *outputs.tensors))):
            rows = _rows_at_once(outputs, given, create_graph)
        else:
            rows = [_rows(i, out, given, create_graph, strict) for i, out in enumerate(outputs.tensors)]
    return outputs.like([given.like(_detached(row, create_graph)) for row in rows])


def _rows(i: int, out: Tensor, inputs: _Tensors, create_graph: bool, strict: bool) -> list[Tensor]:
    """The Jacobian of one output with respect to each input."""
    flat = out.reshape(-1)
    rows = [_gradients((flat[j],), inputs.tensors, None, create_graph) for j in range(out.numel())]
    found = []
    for k, x in enumerate(inputs.tensors):
        column = []
        for row in rows:
            g = row[k]
            if g is None and strict:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {k}. {_NOT_STRICT}."
                )
            if g is not None and strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. {_NOT_STRICT} when "
                    "create_graph=True."
                )
            column.append(_torch("zeros_like")(x) if g is None else g)
        size = (*out.shape, *x.shape)
        found.append(_torch("stack")(column).view(size) if column else x.detach().new_zeros(size))
    return found


def _rows_at_once(outputs: _Tensors, inputs: _Tensors, create_graph: bool) -> list[list[Tensor]]:
    """The Jacobian of each output with respect to each input, by one batched pass."""
    flat = [out.reshape(-1) for out in outputs.tensors]

    def pull(*seeds: Tensor) -> tuple[Tensor, ...]:
        grads = _gradients(flat, inputs.tensors, seeds, create_graph)
        return tuple(_torch("zeros_like")(x) if g is None else g for g, x in zip(grads, inputs.tensors))

    with level_stack.graphs():
        columns = _torch("vmap")(pull)(*basis(flat))
    parts = [c.split([len(out) for out in flat], 0) for c in columns]
    return [
        [part[k].reshape((*out.shape, *x.shape)) for part, x in zip(parts, inputs.tensors)]
        for k, out in enumerate(outputs.tensors)
    ]


def _columns(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by forward mode."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    given = _Tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    outputs: Any = None

    def push(*tangents: Tensor) -> tuple[Tensor, ...]:
        nonlocal outputs
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, t) for x, t in zip(given.tensors, tangents)]
            outputs = _Tensors(func(*duals), "outputs", "jacobian")
            unpacked = [forward_ad.unpack_dual(out) for out in outputs.tensors]
            return tuple(_torch("zeros_like")(p) if t is None else t for p, t in unpacked)

    units = basis(given.tensors)
    if any(map(overrides_operators, given.tensors)):  # which transforms cannot trace
        columns = [push(*[u[i] for u in units]) for i in range(len(units[0]))]
        tangents = [_torch("stack")(column, -1) for column in zip(*columns)]
    else:
        with level_stack.graphs():
            tangents = _torch("vmap")(push, out_dims=-1)(*units)
    counts = [x.numel() for x in given.tensors]
    rows = [
        [c.reshape((*t.shape[:-1], *x.shape)) for c, x in zip(t.split(counts, -1), given.tensors)] for t in tangents
    ]
    if not given.several:
        return outputs.like([row[0] for row in rows])
    # As in PyTorch, lists instead of reverse mode's tuples.
    return rows if outputs.several else rows[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of ``func``, which returns a tensor of one element.

    Args:
        func, inputs, create_graph, strict, vectorize: as for ``jacobian``.
        outer_jacobian_strategy: the strategy for differentiating the gradient.

    Returns:
        A tensor of the input's size, twice; for several inputs, a tuple of tuples.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    given = _Tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs: Tensor) -> Tensor:
        wrapped = _Tensors(xs, "inputs", "hessian")
        return _single(func, wrapped, "hessian", strict).tensors[0].squeeze()

    def gradient(*xs: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple(x.requires_grad_() for x in xs)
        found = jacobian(scalar, xs, create_graph=True)
        _dependent(found, strict, _JACOBIAN_FIXED)
        return found

    rows = jacobian(gradient, given.tensors, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if given.several else rows[0][0]
