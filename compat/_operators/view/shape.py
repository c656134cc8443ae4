"""Views of another shape: transpose, permute, view, reshape, squeeze, unsqueeze, expand and their variants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compat._core.memory.strides import view_strides
from compat._core.operators.call_errors import call_error
from compat._core.operators.composite import composite
from compat._core.operators.view import Geometry
from compat._core.operators.view_op import view
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.version_counter import VersionCounter, bump_version
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.logical_strides import NOT_A_VIEW, can_view, viewed
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once, size_text, type_text, warn, wrap_dim, wrong_argument, wrong_combination
from compat._core.types.memory_format import contiguous_format
from compat._operators.arguments import check_view_size, missing, size_argument, tensor_argument
from funcgrad.core.errors import explained


def _swapped(x: Geometry, a: int, b: int) -> Geometry:
    size, stride = list(x.size), list(x.stride)
    if size:
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    return x._replace(size=tuple(size), stride=tuple(stride))


@view(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    node="TransposeBackward0", inplace_node="TransposeBackward1", saves="dim0 dim1",
    names="torch.transpose Tensor.transpose torch.swapdims Tensor.swapdims Tensor.transpose_ Tensor.swapdims_ "
    "Tensor.swapaxes_",
    undone="always",
)  # fmt: skip
def transpose(input, dim0, dim1):
    """The tensor with two dimensions swapped.

    Example:
        >>> torch.zeros(2, 3).transpose(0, 1).shape
        torch.Size([3, 2])
    """
    return _swapped(input, dim0, dim1)


@composite("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """The tensor with two dimensions swapped: ``transpose`` under NumPy's name."""
    return transpose(input, axis0, axis1)


@view("t(Tensor(a) self) -> Tensor(a)", node="TBackward0", inplace_node="TBackward1", undone="always")
def t(input):
    """A matrix transposed; a vector unchanged.

    Raises:
        RuntimeError: for more than two dimensions.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).t()
        tensor([[1, 3],
                [2, 4]])
    """
    _check_matrix("t", input.ndim)
    return _swapped(input, 0, input.ndim - 1)


def _check_matrix(name: str, ndim: int) -> None:
    if ndim > 2:
        raise RuntimeError(f"{name}() expects a tensor with <= 2 dimensions, but self is {ndim}D")


@composite("t_(Tensor(a!) self) -> Tensor(a!)", names="Tensor.t_", errors="own")
def _t_in_place(self: Tensor) -> Tensor:
    """``t`` in place; returns the tensor."""
    _check_matrix("t_", self.dim())
    return t.inplace(self)


@view(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    node="PermuteBackward0", saves="dims", static="dims", undone="always",
)  # fmt: skip
def permute(input, *dims):
    """The tensor with its dimensions permuted.

    Example:
        >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
        torch.Size([4, 2, 3])
    """
    if len(dims) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, input.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return input._replace(size=tuple(input.size[d] for d in order), stride=tuple(input.stride[d] for d in order))


def _as_tuple(x: Any) -> tuple[int, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


@composite(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    names="torch.movedim Tensor.movedim torch.moveaxis Tensor.moveaxis",
)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The tensor with dimensions moved to new positions; the others keep their order."""
    source, destination = _as_tuple(source), _as_tuple(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({size_text(source)} dims) should contain the same "
            f"number of dims as destination ({size_text(destination)} dims)"
        )
    n = input.dim()
    old, new = _distinct(source, n, "source"), _distinct(destination, n, "destination")
    rest = iter(d for d in range(n) if d not in old)
    order = [old[new.index(d)] if d in new else next(rest) for d in range(n)]
    return permute(input, order) if n else alias(input)


def _distinct(dims: Sequence[int], n: int, argument: str) -> list[int]:
    wrapped = [wrap_dim(d, n) for d in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{argument}` ({size_text(dims)})")
    return wrapped


def _matrix_transpose(name: str, self: Tensor) -> Tensor:
    if self.dim() == 0:
        instead = "This function is the identity in these cases." if name == "mT" else "Consider using x.conj()."
        warn(f"Tensor.{name} is deprecated on 0-D tensors. {instead}")
        return self
    if self.dim() == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor."
        )
    return transpose(self, -2, -1)


def _reversed(self: Tensor) -> Tensor:
    """The tensor with its dimensions in reverse order, a view; for a matrix, the transpose."""
    if self.dim() == 0:
        Once.warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif self.dim() != 2:
        Once.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permute(self, tuple(range(self.dim() - 1, -1, -1)))


def _adjoint(name: str, self: Tensor) -> Tensor:
    transposed = _matrix_transpose(name, self)
    return transposed.conj() if transposed.is_complex() else transposed


def _hermitian(self: Tensor) -> Tensor:
    """The conjugate transpose."""
    if self.dim() not in (0, 2):
        instead = " For batches of matrices, consider using tensor.mH" if self.dim() > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor.{instead}")
    return self.conj() if self.dim() == 0 else _adjoint("H", self)


function("Tensor.T")(property(_reversed))
function("Tensor.mT")(
    property(lambda self: _matrix_transpose("mT", self), doc="The tensor with its last two dimensions swapped, a view.")
)
function("Tensor.mH")(property(lambda self: _adjoint("mH", self), doc="The conjugate of ``mT``."))
function("Tensor.H")(property(_hermitian))


@composite("adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(input: Tensor) -> Tensor:
    """The tensor with the last two dimensions swapped and conjugated."""
    return _adjoint("adjoint()", input)


# ---------------------------------------------------------------- reshaping


def inferred(size: Sequence[int], numel: int) -> tuple[int, ...]:
    """A size with its -1, if any, inferred.

    Raises:
        RuntimeError: if the size does not have ``numel`` elements, or is ambiguous.
    """
    if min(size, default=0) >= 0 and prod(size) == numel:
        return tuple(size)
    result = list(size)
    hole = None
    for i, n in enumerate(size):
        if n == -1:
            if hole is not None:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {size_text(size)}")
    known = prod(n for n in size if n != -1)
    if hole is not None and known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {size_text(size)} because the unspecified dimension size "
            "-1 can be any value and is ambiguous"
        )
    if known != numel and (hole is None or known == 0 or numel % known):
        error = RuntimeError(f"shape '{size_text(size)}' is invalid for input of size {numel}")
        raise explained(error, "shape-mismatch")
    if hole is not None:
        result[hole] = numel // known
    return tuple(result)


@view(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    node="ViewBackward0", saves="self.sym_sizes", names="", undone="always",
)  # fmt: skip
def view_size(input, *size):
    """The tensor in another shape, without a copy."""
    return _in_shape(input, size)


def _in_shape(input: Any, size: Sequence[int]) -> Any:
    new = inferred(size, prod(input.size))
    stride = view_strides(input.size, input.stride, new)
    if stride is None:
        raise RuntimeError(NOT_A_VIEW)
    return input._replace(size=new, stride=stride)


def _check_divides(quantity: str, n: int, k: int, action: str) -> None:
    if n % k:
        raise RuntimeError(f"self.{quantity} must be divisible by {k} to {action}, but got {n}")


@view("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", node="ViewBackward1", names="")
def view_dtype(input, dtype):
    """The bytes viewed as another dtype."""
    old, new = input.dtype.itemsize, dtype.itemsize
    if input.conj or input.neg:  # also for the same dtype
        kind = "conjugate view tensors" if input.conj else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    if old == new:
        return input._replace(dtype=dtype)
    action = f"view {input.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
    if input.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 to {action}")
    *head, last = input.size
    k = new // old
    if k:
        _check_divides("size(-1)", last, k, action)
        _check_divides("storage_offset()", input.offset, k, action)
    if input.stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to {action}, but got {input.stride[-1]}")
    if old > new:
        k = old // new
        stride = (*[s * k for s in input.stride[:-1]], 1)
        return input._replace(size=(*head, last * k), stride=stride, offset=input.offset * k, dtype=dtype)
    for d, n in enumerate(input.stride[:-1]):
        _check_divides(f"stride({d})", n, k, action)
    stride = (*[s // k for s in input.stride[:-1]], 1)
    return input._replace(size=(*head, last // k), stride=stride, offset=input.offset // k, dtype=dtype)


@composite(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    names="Tensor.view", errors="own",
)  # fmt: skip
def tensor_view(self: Tensor, *size: Any, dtype: Any = None, **named: Any) -> Tensor:
    """A view with another shape or dtype.

    Args:
        size: the shape, with at most one -1; or a dtype, as which the bytes are viewed.

    Raises:
        RuntimeError: if the number of elements differs, or the memory layout would require a copy.

    Example:
        >>> torch.arange(6).view(2, -1)
        tensor([[0, 1, 2],
                [3, 4, 5]])
    """
    if dtype is None and len(size) == 1 and isinstance(size[0], dtypes.dtype):
        dtype = size[0]
    if dtype is not None:
        # A reinterpretation of bytes has no derivative: a view with another dtype is detached.
        detached: Tensor = view_dtype(self.detach(), dtype).detach()
        detached._counter_ = None if mode.inference else detached._counter_ or VersionCounter()
        return detached
    try:
        made: Tensor = view_size(self, *size, **named)
    except TypeError:
        check_view_size(size)
        raise
    return viewed(self, made) if made._layout_.base.traced else made


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", names="Tensor.view_as", errors="own")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of ``other``.

    Example:
        >>> torch.arange(4).view_as(torch.ones(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    made = view_size(self, tensor_argument("view_as", "other", 1, other).shape)
    return viewed(self, made) if made._layout_.base.traced else made


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", names="torch.reshape")
def reshape(input: Tensor, shape: Any) -> Tensor:
    """The tensor in another shape: a view if the memory layout allows it, else a copy.

    Example:
        >>> torch.reshape(torch.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    if not isinstance(shape, (tuple, list)):
        raise wrong_argument("reshape", "shape", 2, "tuple of ints", shape)
    return _reshape(input, shape)


def _reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    new = inferred([n.__index__() for n in shape], input.numel())
    layout = input._layout_
    if not can_view(input, new):
        return unsafe_view(input.clone(memory_format=contiguous_format), new)
    return view_size(input, new) if layout.contiguous else _reshape_alias(input, new)


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", names="Tensor.reshape", errors="own")
def tensor_reshape(self: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The tensor in another shape: a view if the memory layout allows it, else a copy.

    Example:
        >>> torch.arange(4).reshape(2, -1)
        tensor([[0, 1],
                [2, 3]])
    """
    if named:
        if shape or named.keys() != {"shape"}:
            raise call_error("Tensor.reshape", shape, named) or wrong_combination("reshape", shape, named)
        shape = (named["shape"],)
    elif not shape:
        raise missing("reshape", "shape")
    return _reshape(self, size_argument("reshape", "shape", 1, shape))


@view(
    "_reshape_alias(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    node="ReshapeAliasBackward0", saves="self.sym_sizes", names="", undone="always",
)  # fmt: skip
def _reshape_alias(input, *size):
    """``view`` of a noncontiguous tensor, with the node of ``reshape``."""
    stride = view_strides(input.size, input.stride, size)
    assert stride is not None, "a size that needs no copy"
    return input._replace(size=tuple(size), stride=stride)


@view(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    node="UnsafeViewBackward0", saves="self.sym_sizes", names="", undone="always",
)  # fmt: skip
def _unsafe_view(input, *size):
    return _in_shape(input, size)


@composite("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", names="torch._unsafe_view")
def unsafe_view(input: Tensor, size: Sequence[int]) -> Tensor:
    """The tensor in another shape, not as a view and with its own version counter: ``input`` has no other use."""
    made = _unsafe_view(input, tuple(size))
    made._view_ = None
    if made._counter_ is not None:
        made._counter_ = VersionCounter()
    return made


@view(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    node="SqueezeBackward4", saves="dim self.sym_sizes", names="", undone="changed",
)  # fmt: skip
def _squeezed(input, dim):
    return _without(input, (dim,))


def unsafe_squeeze(input: Tensor, dim: int) -> Tensor:
    """The tensor without a dimension of size one, not as a view; its version is bumped as by PyTorch's ``squeeze_``."""
    made = _squeezed(input, dim)
    made._view_ = None
    bump_version(made)
    return made


@composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", names="Tensor.reshape_as", errors="own")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of ``other``.

    Example:
        >>> torch.arange(4).reshape_as(torch.ones(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return reshape(self, tensor_argument("reshape_as", "other", 1, other).shape)


@view("alias(Tensor(a) self) -> Tensor(a)", node="AliasBackward0", names="torch._alias", undone="changed")
def alias(input):
    """A view of the whole tensor."""
    return input


@view(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    node="UnsqueezeBackward0", inplace_node="UnsqueezeBackward1", saves="dim",
    names="torch.unsqueeze Tensor.unsqueeze Tensor.unsqueeze_", static="dim", undone="always",
)  # fmt: skip
def unsqueeze(input, dim):
    """The tensor with a dimension of size one inserted at ``dim``.

    Example:
        >>> torch.zeros(2, 3).unsqueeze(-1).shape
        torch.Size([2, 3, 1])
    """
    d = wrap_dim(dim, input.ndim + 1)
    stride = input.size[d] * input.stride[d] if d < input.ndim else 1
    return input._replace(
        size=(*input.size[:d], 1, *input.size[d:]), stride=(*input.stride[:d], stride, *input.stride[d:])
    )


def _without(x: Geometry, dims: Sequence[int]) -> Geometry:
    keep = [d for d in range(x.ndim) if not (d in dims and x.size[d] == 1)]
    return x._replace(size=tuple(x.size[d] for d in keep), stride=tuple(x.stride[d] for d in keep))


@view(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    node="SqueezeBackward0", inplace_node="SqueezeBackward3", saves="self.sym_sizes", names="", undone="changed",
)  # fmt: skip
def _squeeze_all(input):
    return _without(input, range(input.ndim))


@view(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    node="SqueezeBackward1", inplace_node="SqueezeBackward4", saves="dim self.sym_sizes", names="", undone="changed",
)  # fmt: skip
def _squeeze_dim(input, dim):
    return _without(input, (dim,))


@view(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    node="SqueezeBackward2", inplace_node="SqueezeBackward5", saves="dim self.sym_sizes", names="", undone="changed",
)  # fmt: skip
def _squeeze_dims(input, dim):
    return _without(input, dim)


@composite(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    errors="own",
)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Removes dimensions of size one: all, or those among ``dim``.

    Example:
        >>> torch.zeros(1, 2, 1).squeeze().shape, torch.zeros(1, 2, 1).squeeze(0).shape
        (torch.Size([2]), torch.Size([2, 1]))
    """
    op, args = _squeezing(dim)
    return op(input, *args)


def _squeezing(dim: Any) -> tuple[Any, tuple[Any, ...]]:
    """The overload of ``squeeze`` for ``dim``, and its arguments."""
    if dim is None:
        return _squeeze_all, ()
    return (_squeeze_dims if isinstance(dim, (tuple, list)) else _squeeze_dim), (dim,)


@composite(
    "squeeze_(Tensor(a!) self) -> Tensor(a!)",
    "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
    "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    names="Tensor.squeeze_",
)
def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """``squeeze`` in place; returns the tensor."""
    op, args = _squeezing(dim)
    return op.inplace(self, *args)


# ---------------------------------------------------------------- expanding


@view(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    node="ExpandBackward0", saves="self.sym_sizes", names="Tensor.expand", undone="changed",
)  # fmt: skip
def expand(input, *size, implicit):
    """The tensor broadcast without a copy along dimensions of size one, and new leading ones; -1 keeps a size.

    Example:
        >>> torch.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    shift = len(size) - input.ndim
    if shift < 0:
        raise RuntimeError(
            f"expand({type_text(input.dtype)}{{{size_text(input.size)}}}, size={size_text(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor ({input.ndim})"
        )
    new, stride = list(size), [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        d = i - shift
        have, step = (
            (input.size[d], input.stride[d]) if d >= 0 else (1, new[i + 1] * stride[i + 1] if i + 1 < len(size) else 0)
        )
        if new[i] < 0 and (input.ndim == 0 or (have == 1 and new[i] != -1)):
            raise RuntimeError("numel: integer multiplication overflow")
        if new[i] == -1:
            if d < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({new[i]}) isn't allowed in a leading, non-existing dimension {i}"
                )
            new[i] = have
        if have != new[i]:
            if have != 1 or new[i] < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({new[i]}) must match the existing size ({have}) at "
                    f"non-singleton dimension {i}.  "
                    f"Target sizes: {size_text(size)}.  Tensor sizes: {size_text(input.size)}"
                )
            step = 0
        stride[i] = step
    return input._replace(size=tuple(new), stride=tuple(stride))


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
def broadcast_to(input: Tensor, *size: Any) -> Tensor:
    """``expand`` under NumPy's name.

    Example:
        >>> torch.broadcast_to(torch.ones(3), (2, 3)).shape
        torch.Size([2, 3])
    """
    return expand(input, *size)


@composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", names="Tensor.expand_as", errors="own")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the size of ``other``.

    Example:
        >>> torch.ones(3).expand_as(torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """
    return expand(self, tensor_argument("expand_as", "other", 1, other).shape)
