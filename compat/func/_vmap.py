"""``vmap``: vectorizing a function over a batch dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat._core.pytree.trees import TreeSpec, broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_unflatten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.logical_strides import place_as
from compat._operators.shape.cat_stack import cat
from compat.func._aliasing import view_of, view_of_batch
from funcgrad import runtime
from funcgrad.core.errors import explained
from funcgrad.core.tracing import running
from funcgrad.interpreters.batching import Batching, BatchTracer, at_axis

#: Runs ``vmap`` if a program has replaced functions of ``torch._functorch.vmap``; set by ``compat._functorch.vmap``.
_replaced_steps: Callable[..., Any] | None = None


def set_replaced_steps(run: Callable[..., Any] | None) -> None:
    """Sets the function that runs ``vmap`` with replaced functions of ``torch._functorch.vmap``; None for none."""
    global _replaced_steps
    _replaced_steps = run


@function("torch.vmap")
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """``func`` vectorized over a dimension of its arguments.

    Args:
        func: a function of one batch element.
        in_dims: the batch dimension of the arguments, an int or None (not batched), or a tuple with one for each
            argument, nested like the arguments.
        out_dims: the batch dimension of the results, nested likewise; None for results that are not batched.
        randomness: the random numbers of batch elements: "same", "different", or "error" if ``func`` must not draw any.
        chunk_size: the maximum number of batch elements that are computed together.

    Raises:
        ValueError: if ``in_dims`` or ``out_dims`` do not match the arguments or results, or sizes differ.

    Example:
        >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(func, out_dims)
        if chunk_size is None and _replaced_steps is not None:
            return _replaced_steps(func, in_dims, out_dims, randomness, args, kwargs)
        mapped = Mapped(func, in_dims, out_dims, randomness, args, kwargs)
        if chunk_size is None:
            return mapped.run(mapped.leaves, mapped.size)
        return mapped.run_in_chunks(chunk_size)

    return wrapper


def name_of(func: Any) -> str:
    """The name of a function in messages."""
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


def _check_out_dims(func: Any, out_dims: Any) -> None:
    for d in () if isinstance(out_dims, int) else tree_leaves(out_dims):
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )


class _Argument(NamedTuple):
    """A batched argument, its batch dimension, and the batch element that the function gets."""

    original: Tensor
    dim: int
    element: Tensor
    storage: Any
    buffer: Any
    layout: Any

    @classmethod
    def of(cls, original: Tensor, element: Tensor, dim: int) -> _Argument:
        """The argument, with the storage and layout of its element before the function runs."""
        storage = element._storage_
        return cls(original, dim, element, storage, storage.buffer, element._layout_)


class Mapped:
    """One call of a vectorized function.

    Attributes:
        leaves, tree: its arguments.
        dims: the batch dimension of each leaf; None if it is not batched.
        size: the number of batch elements.
        allows_negative_dims: whether dimensions of arguments may be negative.
    """

    allows_negative_dims = True

    def __init__(self, func: Any, in_dims: Any, out_dims: Any, randomness: str, args: tuple, kwargs: dict[str, Any]):
        self.func = func
        self.out_dims = out_dims
        self.randomness = randomness
        self.kwargs = kwargs
        self.name = self.named(func)
        self._check_arguments(in_dims, args)
        self.leaves, self.tree = tree_flatten(args)
        self.dims = self._dims(in_dims)
        sizes = [x.shape[d] for x, d in zip(self.leaves, self.dims) if d is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if len(set(sizes)) != 1:
            message = (
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
                "mapped dimension"
            )
            raise explained(ValueError(message), "vmap-axes")
        self.size = sizes[0]

    def named(self, func: Any) -> str:
        """The name of the function in messages."""
        return name_of(func)

    def _check_arguments(self, in_dims: Any, args: tuple) -> None:
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially "
                f"nested) tuple matching the structure of inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                "vmap over a function with no inputs. The latter is unsupported."
            )

    def _dims(self, in_dims: Any) -> list[int | None]:
        name = f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>)"
        dims = broadcast_to_and_flatten(in_dims, self.tree)
        if dims is None:
            raise ValueError(
                f"{name}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{tree_flatten(in_dims)[1]} but inputs has structure {self.tree}."
            )
        for i, (x, d) in enumerate(zip(self.leaves, dims)):
            if d is None:
                continue
            if not isinstance(d, int):
                raise ValueError(
                    f"{name}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
                )
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"{name}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                    "non-Tensor arguments, please use None as the respective in_dim"
                )
            first, bound = (-x.dim(), f"-{x.dim()}") if self.allows_negative_dims else (0, "0")
            if not first <= d < x.dim():
                raise ValueError(
                    f"{name}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} "
                    f"so expected in_dim to satisfy {bound} <= in_dim < {x.dim()}."
                )
            dims[i] = d % x.dim()
        return dims

    # ---------------------------------------------------------------- running

    def run(self, leaves: Sequence[Any], size: int) -> Any:
        """The results for ``size`` batch elements."""
        batch = Batch(Batching(size), self.name)
        with mapping(batch, self.randomness):
            given = [x if d is None else batch.add(x, d) for x, d in zip(leaves, self.dims)]
            result = self.func(*tree_unflatten(given, self.tree), **self.kwargs)
            outs, tree = tree_flatten(result)
            dims = self.result_dims_of(result, tree)
            batch.write_back()
            placed = [batch.remove(x, dim) for x, dim in zip(outs, dims)]
        return tree_unflatten(placed, tree)

    def run_in_chunks(self, chunk_size: int) -> Any:
        """The results for all batch elements, chunk by chunk."""
        from compat import random

        before = random.get_rng_state() if self.randomness == "same" else None
        parts: list[list] = []
        tree: Any = None
        for start in range(0, self.size, chunk_size):
            n = min(chunk_size, self.size - start)
            selected = [x if d is None else x.narrow(d, start, n) for x, d in zip(self.leaves, self.dims)]
            if before is not None:
                random.set_rng_state(before)
            found, tree = tree_flatten(self.run(selected, n))
            parts.append(found)
        dims = broadcast_to_and_flatten(self.out_dims, tree)
        assert dims is not None
        return tree_unflatten([cat(list(xs), dim=d) for xs, d in zip(zip(*parts), dims)], tree)

    def result_dims_of(self, result: Any, tree: TreeSpec) -> list[int | None]:
        """The batch dimension of each leaf of the result."""
        return result_dims(self.name, self.out_dims, result, tree)


def result_dims(name: str, out_dims: Any, result: Any, tree: TreeSpec) -> list[int | None]:
    """The batch dimension of each leaf of a function's result.

    Raises:
        ValueError: if ``out_dims`` does not match the result.
    """
    if isinstance(result, Tensor):
        single = out_dims[0] if isinstance(out_dims, tuple) and len(out_dims) == 1 else out_dims
        dims = [single] if single is None or isinstance(single, int) else None
    else:
        dims = broadcast_to_and_flatten(out_dims, tree)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {tree}."
        )
    return dims


def _check_dim(x: Tensor, dim: int) -> None:
    if not -x.dim() - 1 <= dim <= x.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-x.dim() - 1}, {x.dim()}], but got {dim})"
        )


class Batch:
    """A running ``vmap``.

    Attributes:
        interpreter: the interpreter of its operations.
        name: the name of the function in messages.
        arguments: the batched arguments.
        batched_storages: the batched memory of results, by their storages.
    """

    def __init__(self, interpreter: Batching, name: str):
        self.interpreter = interpreter
        self.name = name
        self.arguments: list[_Argument] = []
        self.batched_storages: dict[Any, Tensor] = {}

    def add(self, t: Tensor, dim: int) -> Tensor:
        """An argument as one batch element."""
        element = place_as(tensor_of(BatchTracer(self.interpreter, array(t), dim)), t, dim)
        self.arguments.append(_Argument.of(t, element, dim))
        return element

    def write_back(self) -> None:
        """Writes in-place changes of batch elements back to the arguments."""
        for a in self.arguments:
            if a.storage.buffer is not a.buffer:
                value, found = unbatched(self.interpreter, tensor_of(a.storage.buffer))
                a.original.copy_(tensor_of(at_axis(value, found, a.dim, self.interpreter.size)))

    def remove(self, x: Any, dim: int | None) -> Any:
        """A result with the batch in dimension ``dim``; None for a result that is not batched."""
        back = self._as_argument_view(x, dim)
        return self._moved_result(x, dim) if back is None else back

    def _as_argument_view(self, x: Any, dim: int | None) -> Any:
        """A result that is an argument, or a view of one, as a view of the batched argument; None for other results."""
        if not isinstance(x, Tensor) or dim is None:
            return None
        _check_dim(x, dim)
        out_dim = dim % (x.dim() + 1)
        unchanged = [a for a in self.arguments if a.element._layout_ is a.layout]
        views = (view_of(a.original, a.dim, a.element, x, out_dim) for a in unchanged)
        return next((view for view in views if view is not None), None)

    def _moved_result(self, x: Any, dim: int | None) -> Any:
        """A result with its batch dimension moved to its position in ``out_dims``."""
        if not isinstance(x, Tensor):
            if dim is None:
                return x
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(x)}. Did you mean to "
                "set out_dims= to None for output?"
            )
        value, found = unbatched(self.interpreter, x)
        if dim is None:
            if found is not None:
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when out_dim is None"
                )
            return x
        out_dim = dim % (x.dim() + 1)
        if found is None:
            shape = tuple(x.shape)
            return x.unsqueeze(out_dim).expand(*shape[:out_dim], self.interpreter.size, *shape[out_dim:])
        whole = self._whole(x)
        view = None if whole is None else view_of_batch(whole, x, out_dim)
        return tensor_of(at_axis(value, found, out_dim, self.interpreter.size)) if view is None else view

    def _whole(self, x: Tensor) -> Tensor | None:
        """The batched memory of a result, batch dimension first; None for memory that this ``vmap`` does not batch."""
        storage: Any = x._storage_
        detached = isinstance(storage, level_stack.DetachedStorage) and storage.forward
        if detached:
            storage = storage.under
        buffer = runtime.ready(storage.buffer)
        if isinstance(storage, level_stack.DetachedStorage) or not (
            isinstance(buffer, BatchTracer) and buffer.interpreter is self.interpreter
        ):
            return None
        if storage not in self.batched_storages:
            self.batched_storages[storage] = tensor_of(at_axis(buffer.value, buffer.dim, 0, self.interpreter.size))
        return self.batched_storages[storage].detach() if detached else self.batched_storages[storage]


@contextmanager
def mapping(batch: Batch, randomness: str) -> Iterator[None]:
    """Runs the body inside a ``vmap``."""
    with running(batch.interpreter), level_stack.level("vmap", randomness) as entered:
        entered.interpreter, entered.batch = batch.interpreter, batch
        yield


def unbatched(interpreter: Batching, t: Tensor) -> tuple[Any, int | None]:
    """The array of all batch elements of a tensor, and its batch dimension; None if it is not batched."""
    x = array(t)
    return (x.value, x.dim) if isinstance(x, BatchTracer) and x.interpreter is interpreter else (x, None)
