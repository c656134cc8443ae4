"""The functions of masked tensors, by name."""

from __future__ import annotations

from typing import Any

from compat import masked
from compat._core.pytree.trees import tree_flatten, tree_map
from compat._core.tensor.overridable_names import without_prefix
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.masked.maskedtensor.core import MaskedTensor, same_mask
from compat.nested._internal.pointwise import POINTWISE
from compat.nested._internal.table_tensor import functions_of

__all__: list[str] = []

by_name = functions_of(MaskedTensor)


def _values(x: Any) -> Any:
    return x.elements if isinstance(x, MaskedTensor) else x


def _mask(x: Any) -> Any:
    return x.mask if isinstance(x, MaskedTensor) else x


@by_name(*POINTWISE, "softmax", "log_softmax")
def pointwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An elementwise function of the values; masks must be equal, and other tensors have none."""
    leaves = tree_flatten((args, kwargs))[0]
    tensors = [x for x in leaves if isinstance(x, MaskedTensor)]
    mask = same_mask(tensors)
    if func.__name__ in ("softmax", "log_softmax"):
        found = getattr(masked, func.__name__)(tensors[0].elements, *args[1:], mask=mask, **kwargs)
    else:
        given, named = tree_map(_values, (args, kwargs))
        found = func(*given, **named)
    if found.shape != mask.shape:
        mask = mask.expand(found.shape)
    return MaskedTensor.of(found, mask)


@by_name("where")
def where(func: Any, condition: Tensor, input: Any, other: Any) -> Any:
    """Values and masks of one tensor where the condition holds, of the other elsewhere; other tensors have no mask."""
    if isinstance(condition, MaskedTensor):
        raise MaskedTensor.unsupported("where")
    choose = names_of("torch")["where"]
    found = choose(condition, _values(input), _values(other))
    mask = choose(condition, *(x.mask if isinstance(x, MaskedTensor) else True for x in (input, other)))
    return MaskedTensor.of(found, mask if mask.shape == found.shape else mask.expand(found.shape))


@by_name("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "norm", "var", "std", "all")
def reduced(func: Any, t: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """A reduction of the specified elements; one that has none is masked."""
    name = without_prefix(func.__name__)
    if name == "all":
        found = names_of("torch")["where"](t.mask, t.elements, True).all(*args, **kwargs)
    elif name == "norm":
        p, *dims = args or (kwargs.pop("p", 2),)
        found = masked.norm(t.elements, p, *dims, mask=t.mask, **kwargs)
    else:
        found = getattr(masked, name)(t.elements, *args, mask=t.mask, **_spelled(name, kwargs))
    where = args[1:] if name == "norm" else args
    dim = kwargs.get("dim", where[0] if where else None)
    keepdim = kwargs.get("keepdim", where[1] if len(where) > 1 else False)
    mask = t.mask.any() if dim is None else _any(t.mask, dim, keepdim)
    return MaskedTensor.of(found, mask if mask.shape == found.shape else mask.expand(found.shape))


def _spelled(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords as the functions of ``torch.masked`` have them."""
    if name in ("var", "std") and "correction" in kwargs:
        rest = {k: v for k, v in kwargs.items() if k != "correction"}
        return rest | {"unbiased": bool(kwargs["correction"])}
    return kwargs


def _any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    for d in sorted(((d % mask.dim()) for d in ((dim,) if isinstance(dim, int) else dim)), reverse=True):
        mask = mask.any(d, keepdim)
    return mask


@by_name(
    "t", "transpose", "permute", "reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "expand",
    "expand_as", "narrow", "select", "__getitem__", "split", "chunk", "unbind", "contiguous", "swapaxes", "movedim",
    "cat", "concat", "stack", "flip", "roll", "repeat", "index_select", "diagonal", "tensor_split", "broadcast_to",
)  # fmt: skip
def moved(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What moves elements, applied to the values and to the mask."""
    values, masks = (func(*given, **named) for given, named in (tree_map(f, (args, kwargs)) for f in (_values, _mask)))
    if isinstance(values, Tensor):
        return MaskedTensor.of(values, masks)
    return type(values)([MaskedTensor.of(v, m) for v, m in zip(values, masks)])


@by_name("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like")
def factory(func: Any, t: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """New values with the same mask."""
    return MaskedTensor.of(func(t.elements.detach(), *args, **kwargs), t.mask)


@by_name("dim", "ndimension", "size", "numel", "nelement", "__len__", "get_device", "is_same_size", "data_ptr")
def queried(func: Any, t: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """What is asked of the values."""
    return func(t.elements, *map(_values, args), **kwargs)


@by_name("to_dense")
def to_dense(func: Any, t: MaskedTensor, **_: Any) -> Any:
    """The tensor itself: its values are dense."""
    return t


@by_name("grad")
def grad(func: Any, outputs: Any, inputs: Any, **kwargs: Any) -> tuple:
    """``torch.autograd.grad``: the gradient with respect to a masked tensor has its mask."""
    given, named = tree_map(_values, ((outputs, inputs), kwargs))
    found = func(*given, **named)
    return tuple(
        MaskedTensor.of(g, t.mask) if isinstance(t, MaskedTensor) and g is not None else g
        for t, g in zip(inputs, found, strict=True)
    )


@by_name("backward")
def backward(func: Any, tensors: Any, **kwargs: Any) -> None:
    """``torch.autograd.backward`` of the values."""
    given, named = tree_map(_values, (tensors, kwargs))
    func(given, **named)


@by_name("masked_select")
def masked_select(func: Any, t: MaskedTensor, mask: Tensor) -> Any:
    """The elements where a mask is True."""
    return MaskedTensor.of(func(t.elements, mask), func(t.mask, mask))
