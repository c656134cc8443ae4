"""``torch._foreach_add`` and others: an operation on each tensor of a list.

The operations are recorded one by one. They run in one window with the surrounding operations, so fusing them here
would gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor import capture_checks
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import wrong_argument
from compat._operators.tensor.foreach_nodes import join

_UNARY = """
    abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal
    round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
"""
_BINARY = ["add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"]
#: Ternary operations, and the name of their number argument.
_TERNARY = {"addcdiv": "value", "addcmul": "value"}
#: The operation for a number operand, if it is a different one.
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _tensors(name: str, position: int, argument: str, given: Any) -> Sequence[Tensor]:
    """An argument that must be a list of tensors.

    Raises:
        TypeError: for another type.
        RuntimeError: for an empty list.
    """
    if not isinstance(given, (list, tuple)):
        raise wrong_argument(name, argument, position, "tuple of Tensors", given)
    for t in given:
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element 0 in argument {position - 1}, but got {type(t).__name__}")
        if t._storage_.born < mode.since:
            capture_checks.let(t)
    if not given:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return given


def _each(first: Sequence[Tensor], other: Any) -> list[Any]:
    """The operand for each tensor of the first list: from another list, or shared.

    Raises:
        RuntimeError: for a list of a different length.
    """
    if not isinstance(other, (list, tuple)):
        return [other] * len(first)
    if len(other) == len(first):
        return list(other)
    if any(isinstance(o, Tensor) for o in other):
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(first)} and {len(other)}")
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _publish(run: Callable[..., Any], name: str, doc: str) -> None:
    run.__name__ = run.__qualname__ = f"_foreach_{name}"
    run.__doc__ = doc + (", in place; returns the list." if name.endswith("_") else ".")
    publish(run, f"torch._foreach_{name}")


def _method(name: str, tensor: Tensor, other: Any) -> Callable[..., Any]:
    """The operation on one tensor and ``other``: for a number possibly another operation, and the result of an
    operation without an in-place variant is copied into the tensor."""
    functional = name.rstrip("_")
    if functional in _OF_NUMBERS and not isinstance(other, Tensor):
        if name == functional and mode.grad and tensor.requires_grad:  # its gradient is halved for ties
            return lambda number: getattr(tensor, name)(names_of("torch")["tensor"](number))
        name = _OF_NUMBERS[functional] + name[len(functional) :]
    method = getattr(tensor, name, None)
    return method if method is not None else lambda *args: tensor.copy_(getattr(tensor, functional)(*args))


def _joined(found: tuple[Tensor, ...], name: str, *more: Any, **given: Any) -> tuple[Tensor, ...]:
    if mode.grad:
        join(found, name, *more, **given)
    return found


def _overload(other: Any) -> tuple[str, dict[str, Any]]:
    """The name of PyTorch's overload for a second operand, and the positions of lists for ``join``."""
    if isinstance(other, Tensor):
        return "Tensor", {"positions": (0, 1), "shared": True}
    if not isinstance(other, (list, tuple)):
        return "Scalar", {"scalar": other}
    if isinstance(other[0], Tensor):
        return "List", {"positions": (0, 1)}
    return "ScalarList", {"scalars": tuple(other)}


def _unary(name: str) -> None:
    def run(self: Sequence[Tensor]) -> Sequence[Tensor]:
        found = tuple(getattr(t, name)() for t in _tensors(f"_foreach_{name}", 1, "self", self))
        return self if name.endswith("_") else _joined(found, name)

    _publish(run, name, f"``{name.rstrip('_')}`` of each tensor")


def _joined_pairs(found: tuple[Tensor, ...], name: str, other: Any) -> tuple[Tensor, ...]:
    overload, more = _overload(other)
    if name == "pow" and "scalars" in more:
        more = {"exponent": more["scalars"]}
    return _joined(found, name, overload, **more)


def _binary(name: str) -> None:
    def run(self: Any, other: Any = None, **more: Any) -> Sequence[Tensor]:
        for alias in ("scalar", "scalars", "exponent"):
            other = more.pop(alias, other)
        if name == "pow" and not isinstance(self, (list, tuple)):
            found = tuple(names_of("torch")["pow"](self, t) for t in _tensors("_foreach_pow", 2, "exponent", other))
            return _joined(found, name, "ScalarAndTensor", positions=(-1,), self=self)
        first = _tensors(f"_foreach_{name}", 1, "self", self)
        found = tuple(_method(name, t, o)(o, **more) for t, o in list(zip(first, _each(first, other))))
        return self if name.endswith("_") else _joined_pairs(found, name, other)

    _publish(run, name, f"``{name.rstrip('_')}`` of each tensor and a number, a tensor, or the element of another list")


def _ternary(name: str, factor: str) -> None:
    def run(
        self: Sequence[Tensor],
        tensor1: Sequence[Tensor],
        tensor2: Sequence[Tensor],
        scalars: Any = 1,
        *,
        value: Any = None,
    ) -> Sequence[Tensor]:
        first = _tensors(f"_foreach_{name}", 1, "self", self)
        scalars = scalars if value is None else value
        overload = _overload(scalars)[0]
        scalars = _each(first, scalars.tolist() if isinstance(scalars, Tensor) else scalars)
        rows = list(zip(first, _each(first, tensor1), _each(first, tensor2), scalars))
        found = tuple(getattr(t, name)(a, b, **{factor: s}) for t, a, b, s in rows)
        return self if name.endswith("_") else _joined(found, name, overload, (0, 1, 2))

    _publish(run, name, f"``{name.rstrip('_')}`` of each tensor and the tensors at its index in two other lists")


def _lerp(name: str) -> None:
    def run(self: Sequence[Tensor], tensors1: Sequence[Tensor], weight: Any) -> Sequence[Tensor]:
        first = _tensors(f"_foreach_{name}", 1, "self", self)
        rows = list(zip(first, _each(first, tensors1), _each(first, weight)))
        found = tuple(getattr(t, name)(end, w) for t, end, w in rows)
        if name.endswith("_"):
            return self
        overload = _overload(weight)[0]
        return _joined(found, name, overload, (0, 1, 2) if overload == "List" else (0, 1))

    _publish(run, name, "The linear interpolation between each tensor and the one at its index in another list")


@composite(
    "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
    names="torch._foreach_copy_",
)
def foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Sequence[Tensor]:
    """Copies each tensor of ``src`` into its counterpart; returns the list."""
    first = _tensors("_foreach_copy_", 1, "self", self)
    for t, s in zip(first, _each(first, _tensors("_foreach_copy_", 2, "src", src))):
        t.copy_(s)
    return self


for _name in _UNARY.split():
    _unary(_name)
    if _name != "clone":
        _unary(f"{_name}_")
_unary("zero_")
for _name in _BINARY:
    _binary(_name)
    _binary(f"{_name}_")
_binary("mm")
for _name, _factor in _TERNARY.items():
    _ternary(_name, _factor)
    _ternary(f"{_name}_", _factor)
_lerp("lerp")
_lerp("lerp_")


@composite(
    "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    names="torch._foreach_norm",
)
def foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of all elements of each tensor.

    Example:
        >>> torch._foreach_norm([torch.tensor([3.0, 4.0])])
        (tensor(5.),)
    """
    norm = names_of("linalg")["vector_norm"]
    found = tuple(norm(t, ord, dtype=dtype) for t in _tensors("_foreach_norm", 1, "self", self))
    return _joined(found, "norm", "Scalar", ord=ord)


@composite("_foreach_max(Tensor[] self) -> Tensor[]", names="torch._foreach_max")
def foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The maximum of each tensor.

    Example:
        >>> torch._foreach_max([torch.tensor([3.0, 4.0])])
        (tensor(4.),)
    """
    return _joined(tuple(t.max() for t in _tensors("_foreach_max", 1, "self", self)), "max")
