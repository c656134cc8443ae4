"""Nested tensors of layout ``torch.strided``: lists of tensors whose sizes may differ in any dimension.

Their graph is that of the component tensors, to which elementwise functions are applied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.types.errors import Once, refusal, wrap_dim
from compat._core.types.memory_format import strided
from compat._core.types.size import Size
from compat.nested._internal.nested_tensor import Nested, functions_of
from compat.nested._internal.pointwise import POINTWISE


class StridedNestedTensor(Nested):
    """A list of tensors; see ``torch.nested.nested_tensor``.

    Attributes:
        tensors: the component tensors, in their graph.
    """

    parts = ("tensors",)
    layout = strided
    tensors: tuple[Tensor, ...]

    def _first(self) -> Tensor:
        return next((t for t in self.tensors if t.requires_grad), self.tensors[0] if self.tensors else _NOTHING)

    @classmethod
    def unsupported(cls, name: str) -> Exception:
        """The error of a function without an entry."""
        return refusal(f"aten::{name}", "NestedTensorCPU")

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension of the same size in all components.

        Raises:
            RuntimeError: for other dimensions, and without ``dim``.
        """
        if dim is None:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
        dim = dim % self.dim()
        found = {t.shape[dim - 1] for t in self.tensors} if dim else {len(self.tensors)}
        if len(found) > 1:
            raise RuntimeError(
                f"Given dimension {dim} is irregular and does not have a size." if dim else "the batch has one size"
            )
        return found.pop()

    @property
    def shape(self) -> Size:
        """Not defined.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")

    def dim(self) -> int:
        """The number of dimensions."""
        return self.tensors[0].dim() + 1 if self.tensors else 1

    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all components."""
        return sum(t.numel() for t in self.tensors)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether all components are contiguous."""
        return all(t.is_contiguous() for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def _grad(self) -> Any:
        found = [t.grad for t in self.tensors]
        if all(g is None for g in found):
            return None
        zeros = names_of("torch")["zeros_like"]
        return nested_of([zeros(t) if g is None else g for t, g in zip(self.tensors, found)])

    def _set_grad(self, new: Any) -> None:
        for i, t in enumerate(self.tensors):
            t.grad = None if new is None else new.tensors[i]

    grad = property(_grad, _set_grad, doc="A nested tensor of the components' gradients.")

    def detach(self) -> Any:
        """A nested tensor of the detached components."""
        return nested_of([t.detach() for t in self.tensors])

    data = property(detach, doc="A nested tensor of the detached components.")

    def _text(self) -> str:
        shown = [str(t.detach().requires_grad_(self.requires_grad)) for t in self.tensors]
        inner = ",".join("\n  " + text.replace("\n", "\n  ") for text in shown) or "\n"
        suffix = ", requires_grad=True" if self.requires_grad and self.is_leaf else ""
        if self.grad_fn is not None:
            suffix = f", grad_fn=<{type(self.grad_fn).__name__}>"
        return f"nested_tensor([{inner}\n]{suffix})"


StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"
StridedNestedTensor.__module__ = "torch"

#: The values of a tensor without components.
_NOTHING = from_array(np.zeros(0, np.float32))

by_name = functions_of(StridedNestedTensor)


def nested_of(tensors: Sequence[Tensor]) -> StridedNestedTensor:
    """A nested tensor of tensors, in their graph."""
    Once.warn(
        "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend "
        "specifying layout=torch.jagged when constructing a nested tensor, as this layout receives active development, "
        "has better operator coverage, and works with torch.compile."
    )
    first = tensors[0] if tensors else _NOTHING
    kind, where = first.dtype, first.device
    if any(t.dim() != tensors[0].dim() for t in tensors):
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension. Found dimension "
            f"{next(t.dim() for t in tensors if t.dim() != tensors[0].dim())} for Tensor at index "
            f"{next(i for i, t in enumerate(tensors) if t.dim() != tensors[0].dim())} and dimension {tensors[0].dim()} "
            "for Tensor at index 0."
        )
    largest = [max(n) for n in zip(*[t.shape for t in tensors])]
    return StridedNestedTensor.of_parts((len(tensors), *largest), kind, where, tensors=tuple(tensors))


_MAPPED = ("linear", "layer_norm", "relu", "embedding", "zeros_like", "ones_like", "empty_like", "contiguous")


@by_name(*POINTWISE, *_MAPPED)
def map_components(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A function applied to each component."""
    first = next(a for a in (*args, *kwargs.values()) if isinstance(a, StridedNestedTensor))
    for other in (*args, *kwargs.values()):
        if isinstance(other, StridedNestedTensor):
            _check_sizes(func.__name__.strip("_"), first, other)
    at = lambda a, i: a.tensors[i] if isinstance(a, StridedNestedTensor) else a
    found = [
        func(*[at(a, i) for a in args], **{name: at(a, i) for name, a in kwargs.items()}) for i in range(len(first))
    ]
    return nested_of(found)


def _check_sizes(name: str, a: StridedNestedTensor, b: StridedNestedTensor) -> None:
    if [t.shape for t in a.tensors] != [t.shape for t in b.tensors]:
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")


@by_name("matmul", "bmm", "__matmul__")
def matmul(func: Any, a: Any, b: Any) -> Any:
    """Products of the components of two nested tensors, or of components with dense matrices."""
    first = a if isinstance(a, StridedNestedTensor) else b
    at = lambda t, i: t.tensors[i] if isinstance(t, StridedNestedTensor) else t if t.dim() < 3 else t[i]
    return nested_of([at(a, i).matmul(at(b, i)) for i in range(len(first))])


@by_name("softmax", "log_softmax")
def softmax(func: Any, t: StridedNestedTensor, dim: int, *args: Any, **named: Any) -> Any:
    """A softmax of each component along a dimension."""
    dim = dim % t.dim()
    if dim == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return nested_of([func(x, dim - 1, *args, **named) for x in t.tensors])


@by_name("transpose")
def transpose(func: Any, t: StridedNestedTensor, dim0: int, dim1: int) -> Any:
    """Exchanges two dimensions of each component."""
    dim0, dim1 = dim0 % t.dim(), dim1 % t.dim()
    if dim0 != dim1 and 0 in (dim0, dim1):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return nested_of([x.transpose(dim0 - 1, dim1 - 1) for x in t.tensors] if dim0 != dim1 else t.tensors)


@by_name("reshape", "view")
def reshape(func: Any, t: StridedNestedTensor, *shape: Any, **named: Any) -> Any:
    """Reshapes each component. A -1 stands for the component's own size in that dimension."""
    name = func.__name__
    given = named.get("shape", named.get("size", shape))
    sizes = list(given[0] if len(given) == 1 and not isinstance(given[0], int) else given)
    if sizes[0] != len(t) and len(t):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    if any(n < -1 for n in sizes):
        raise RuntimeError(f"invalid shape dimension {next(n for n in sizes if n < -1)}")
    kept = [d for d, n in enumerate(sizes) if n == -1]
    if any(d >= t.dim() for d in kept):
        raise RuntimeError("nested tensor does not infer shape")
    if len(sizes) > t.dim() and len(kept) > 1:
        raise RuntimeError("only one dimension can be inferred")
    found = []
    for x in t.tensors:
        wanted = [x.shape[d - 1] if n == -1 else n for d, n in enumerate(sizes)][1:]
        if math.prod(wanted) != x.numel():
            raise RuntimeError(f"shape '{sizes}' is invalid for input of size {x.numel()}")
        found.append(getattr(x, name)(wanted))
    return nested_of(found)


@by_name("reshape_as")
def reshape_as(func: Any, t: Any, other: Any) -> Any:
    """Reshapes each component to the size of the other tensor's."""
    if not isinstance(other, StridedNestedTensor):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if not isinstance(t, StridedNestedTensor):
        sizes = zip(*[x.shape for x in other.tensors], strict=True)
        return t.reshape(len(other), *(n[0] if len(set(n)) == 1 else -1 for n in sizes))
    if len(t) != len(other):
        raise RuntimeError("reshape: For now nested reshape cannot change or infer the implicit batch dimension")
    return nested_of([x.reshape(y.shape) for x, y in zip(t.tensors, other.tensors, strict=True)])


@by_name("view_as")
def view_as(func: Any, t: Any, other: Any) -> Any:
    """A view in the size of the other tensor; these tensors have none."""
    return t.view(other.size())


@by_name("flatten")
def flatten(func: Any, t: StridedNestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The tensor itself; dimensions cannot be merged, as the size of one may differ between components."""
    start, end = wrap_dim(start_dim, t.dim()), wrap_dim(end_dim, t.dim())
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start != end:
        t.size()  # raises, as these tensors have no sizes
    return t


@by_name("squeeze", "unsqueeze")
def squeeze(func: Any, t: StridedNestedTensor, dim: Any = None) -> Any:
    """Removes or inserts a dimension of size 1 of each component."""
    name = func.__name__
    report = "if you need this feature, please open an issue on github describing your use case."
    if dim is None:
        raise RuntimeError(
            f"{name}(): For nested tensors, squeeze without the dim argument is not supported at the moment, however "
            f"you can use squeeze(Tensor self, int dim) instead {report}"
        )
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    wrapped = sorted(wrap_dim(d, t.dim() + (name == "unsqueeze")) for d in dims)
    if 0 in wrapped:
        raise RuntimeError(
            f"{name}(): For nested tensors, {name[:-1]}ing dimension 0 is not supported at the moment {report}"
        )
    found = list(t.tensors)
    for d in reversed(wrapped):
        found = [getattr(x, name)(d - 1) for x in found]
    return nested_of(found)


@by_name("unbind")
def unbind(func: Any, t: StridedNestedTensor, dim: int = 0) -> Any:
    """The components."""
    if dim % t.dim() != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return t.tensors


@by_name("__iter__")
def iterated(func: Any, t: StridedNestedTensor) -> Any:
    """The components."""
    return iter(t.tensors)


@by_name("__getitem__", "select")
def subscript(func: Any, t: StridedNestedTensor, *index: Any) -> Any:
    """A component, or a part of one."""
    if func.__name__ == "select":
        if index[0] != 0:
            raise RuntimeError("select(): only supported for nested tensors on dim=0")
        return t.tensors[index[1]]
    given = index[0] if isinstance(index[0], tuple) else index
    if not isinstance(given[0], int):
        raise RuntimeError("slice(): not supported for nested tensors on dim=0")
    found = t.tensors[given[0]]
    return found[given[1:]] if len(given) > 1 else found


@by_name("sum")
def total(func: Any, t: StridedNestedTensor, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
    """The sum of all elements, or the sums of each component along the last dimension."""
    if dim is None:
        torch = names_of("torch")
        return torch["stack"]([x.sum(**named) for x in t.tensors]).sum()
    dim = dim[0] if isinstance(dim, (tuple, list)) else dim
    if dim % t.dim() != t.dim() - 1:
        raise RuntimeError("NestedTensor only allows reduction across the last dimension")
    return nested_of([x.sum(-1, keepdim=keepdim, **named) for x in t.tensors])


@by_name("to_padded_tensor")
def to_padded_tensor(func: Any, t: StridedNestedTensor, padding: float, output_size: Any = None) -> Any:
    """A dense tensor of the padded components."""
    torch = names_of("torch")
    wanted = list(t._layout_.size[1:]) if output_size is None else list(output_size[1:])
    found = []
    for x in t.tensors:
        around = [n for size, have in zip(reversed(wanted), reversed(x.shape)) for n in (0, size - have)]
        if any(n < 0 for n in around):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        found.append(
            torch["constant_pad_nd"](x, around, padding) if math.prod(x.shape) else x.new_full(wanted, padding)
        )
    return torch["stack"](found)


@by_name("zero_", "fill_")
def filled(func: Any, target: StridedNestedTensor, *args: Any) -> Any:
    """Fills all elements."""
    for x in target.tensors:
        func(x, *args)
    return target


@by_name("chunk")
def chunk(func: Any, t: StridedNestedTensor, chunks: int, dim: int = 0) -> Any:
    """Chunks of each component along the last dimension."""
    if dim % t.dim() != t.dim() - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    return tuple(nested_of(parts) for parts in zip(*[x.chunk(chunks, -1) for x in t.tensors]))


@by_name("requires_grad_")
def requires_grad_(func: Any, t: StridedNestedTensor, requires_grad: bool = True) -> Any:
    """Sets whether gradients are computed."""
    for x in t.tensors:
        x.requires_grad_(requires_grad)
    return t
