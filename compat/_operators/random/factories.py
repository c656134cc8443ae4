"""Factories of random tensors: ``rand``, ``randn``, ``randint``, ``randperm`` and their ``_like`` variants."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from compat._core.memory.strides import contiguous_layout, dense_layout, preserved_strides
from compat._core.operators.composite import OPTIONS, composite
from compat._core.random.generator import engine_of
from compat._core.tensor.tensor import Tensor, refresh
from compat._core.types import dtype as dtypes
from compat._core.types.device import available, place
from compat._core.types.device import device as Device
from compat._core.types.errors import wrong_argument
from compat._operators import samplers
from compat._operators.create.factories import allocation_error, check_options, with_grad
from compat._operators.random.inplace import UNIFORM, fill, number
from compat._operators.random.vmap_random import Draw, has_contiguous_elements, random_tensor


def size_of(name: str, given: tuple, position: int = 1) -> tuple[int, ...]:
    """The size that a factory got as integers, or as one sequence of them.

    Raises:
        TypeError: for a value that is not an integer.
        RuntimeError: for a negative one.
    """
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    for n in given:
        if n.__class__ is not int and (isinstance(n, bool) or not hasattr(n, "__index__")):
            raise wrong_argument(name, "size", position, "tuple of ints", n)
    size = tuple([n.__index__() for n in given])
    if size and min(size) < 0:
        negative = next(n for n in size if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(size)}")
    return size


class Options:
    """The keyword arguments that factories share.

    Args:
        function: the name of the factory in messages.
        out: a tensor to write the result into.
        dtype, device, requires_grad, memory_format: those of the result.
        layout: must be ``torch.strided``.
        pin_memory, names: ignored.
    """

    def __init__(
        self,
        function: str,
        *,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
        names: Any = None,
        **unknown: Any,
    ):
        for name in unknown:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        self.function = function
        self.out = out
        self.dtype = dtype = dtypes.wanted(function, dtype)
        self.requires_grad = requires_grad
        self.memory_format = memory_format
        self.device = None if device is None else available(device)
        check_options(out, dtype, device, layout)

    def tensor(self, size: tuple[int, ...], draw: Draw, default: dtypes.dtype) -> Tensor:
        """A contiguous tensor of random numbers, or ``out`` filled with them."""
        if self.out is not None:
            if tuple(self.out.shape) != size:
                self.out.resize_(size)
            return fill(self.out, draw, UNIFORM)
        dtype = self.dtype or default
        assert dtype.numpy is not None
        try:
            t = random_tensor(draw, contiguous_layout(size, dtype, device=place(self.device)))
        except (MemoryError, OverflowError, ValueError) as error:
            raise allocation_error(size, dtype, error) from None
        return with_grad(t, self.requires_grad)

    def tensor_like(self, t: Any, draw: Draw) -> Tensor:
        """A tensor of random numbers in the size and memory order of ``t``."""
        if self.memory_format is not None and getattr(self.memory_format, "_name", "") != "preserve_format":
            empty = (
                t.detach()
                .new_empty(t.shape, dtype=self.dtype, device=self.device)
                .contiguous(memory_format=self.memory_format)
            )
            return fill(empty, draw, UNIFORM)
        return with_grad(random_like(t, draw, self.dtype or t.dtype, self.device), self.requires_grad)


def random_like(
    t: Tensor, draw: Draw, dtype: dtypes.dtype, device: Device | None = None, *, sequential: bool = False
) -> Tensor:
    """A tensor of random numbers in the memory order of ``t``.

    Args:
        sequential: whether to draw one batch element of ``vmap`` after the other even if they are interleaved in ``t``.
    """
    if t._view_ is not None:
        refresh(t)
    size, stride = tuple(t._layout_.size), t._layout_.stride
    assert dtype.numpy is not None
    layout = dense_layout(size, preserved_strides(size, stride), dtype, device=device or t.device)
    return random_tensor(draw, layout, None if sequential else t)


@composite(
    f"rand.generator(SymInt[] size, *, Generator? generator, {OPTIONS}) -> Tensor",
    f"rand(SymInt[] size, *, {OPTIONS}) -> Tensor",
    names="torch.rand", out="own",
)  # fmt: skip
def rand(*size: Any, generator: Any = None, **options: Any) -> Tensor:
    """A tensor of uniform numbers from ``[0, 1)``.

    Args:
        size: integers, or one sequence of them.
        generator: the random number generator; the default one if omitted.
        options: ``out``, ``dtype``, ``device``, ``requires_grad``, ...

    Example:
        >>> torch.rand(2, 3).shape
        torch.Size([2, 3])
    """
    return _of_size("rand", samplers.uniform, size, generator, options)


@composite(
    f"randn.generator(SymInt[] size, *, Generator? generator, {OPTIONS}) -> Tensor",
    f"randn(SymInt[] size, *, {OPTIONS}) -> Tensor",
    names="torch.randn", out="own",
)  # fmt: skip
def randn(*size: Any, generator: Any = None, **options: Any) -> Tensor:
    """A tensor of standard normal numbers; the arguments are those of ``rand``.

    Example:
        >>> torch.randn(2, 3).shape
        torch.Size([2, 3])
    """
    return _of_size("randn", samplers.normal, size, generator, options)


def _of_size(name: str, sampler: Any, size: tuple, generator: Any, options: dict[str, Any]) -> Tensor:
    if "size" in options:
        size += (options.pop("size"),)
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    engine = engine_of(name, generator)
    parsed = size_of(name, size)
    return Options(name, **options).tensor(parsed, partial(sampler, engine), dtypes.get_default_dtype())


@composite(
    "randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    names="torch.randint", out="own",
)  # fmt: skip
def randint(*args: Any, generator: Any = None, **named: Any) -> Tensor:
    """A tensor of integers: ``randint(high, size)`` from ``[0, high)``, or ``randint(low, high, size)``.

    Args:
        generator: the random number generator; the default one if omitted.
        named: ``low``, ``high`` and ``size`` by name; ``out``, ``dtype``, ``device``, ``requires_grad``, ...

    Raises:
        RuntimeError: if there are no integers between the bounds, or the dtype cannot hold them.

    Example:
        >>> torch.randint(3, 10, (2, 2), generator=torch.Generator().manual_seed(0))
        tensor([[7, 6],
                [3, 5]])
    """
    size = args[-1] if args and isinstance(args[-1], (tuple, list)) else None
    bounds = args if size is None else args[:-1]
    given = {k: named.pop(k) for k in ("low", "high", "size") if k in named}
    if size is not None:
        given["size"] = size
    given |= dict(zip(("low", "high") if len(bounds) == 2 or "high" in given else ("high",), bounds))
    if len(bounds) > 2 or "high" not in given or "size" not in given:
        if len(args) >= 2 and "size" not in given:
            raise wrong_argument("randint", "size", len(args), "tuple of ints", args[-1])
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"randint() received an invalid combination of arguments - got ({got}), wanted high and size")
    low = number("randint", "low", 1, given.get("low", 0), "int")
    high = number("randint", "high", 1 + ("low" in given), given["high"], "int")
    engine = engine_of("randint", generator)
    draw = lambda n, dtype: samplers.random(engine, n, dtype, int(low), int(high))
    return Options("randint", **named).tensor(size_of("randint", (given["size"],)), draw, dtypes.int64)


@composite(
    "randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    names="torch.randperm", out="own",
)  # fmt: skip
def randperm(n: int, *, generator: Any = None, **options: Any) -> Tensor:
    """The integers below ``n`` in random order.

    Raises:
        RuntimeError: for a negative ``n``, or one that the dtype cannot hold.

    Example:
        >>> torch.randperm(4, generator=torch.Generator().manual_seed(0))
        tensor([0, 1, 3, 2])
    """
    engine = engine_of("randperm", generator)
    n = number("randperm", "n", 1, n, "int")
    parsed = Options("randperm", **options)

    def draw(count: int, dtype: Any) -> Any:
        return np.concatenate([samplers.permutation(engine, int(n), dtype) for _ in range(count // n if n else 1)])

    return parsed.tensor((int(n),), draw, dtypes.int64)


@composite(
    f"rand_like.generator(Tensor self, *, Generator? generator, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    f"rand_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    names="torch.rand_like",
)
def rand_like(input: Tensor, *, generator: Any = None, **options: Any) -> Tensor:
    """A tensor of uniform numbers from ``[0, 1)``, of the size, dtype and memory order of ``input``.

    Example:
        >>> torch.rand_like(torch.zeros(2, 3)).shape
        torch.Size([2, 3])
    """
    engine = engine_of("rand_like", generator)
    return Options("rand_like", **options).tensor_like(input, lambda n, dtype: samplers.uniform(engine, n, dtype))


@composite(
    f"randn_like.generator(Tensor self, *, Generator? generator, {OPTIONS}, MemoryFormat? memory_format=None) "
    "-> Tensor",
    f"randn_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    names="torch.randn_like",
)
def randn_like(input: Tensor, *, generator: Any = None, **options: Any) -> Tensor:
    """A tensor of standard normal numbers, of the size, dtype and memory order of ``input``.

    Example:
        >>> torch.randn_like(torch.zeros(2, 3)).shape
        torch.Size([2, 3])
    """
    engine = engine_of("randn_like", generator)
    contiguous = not isinstance(input, Tensor) or (
        preserved_strides(tuple(input.shape), input.stride())
        == contiguous_layout(tuple(input.shape), input.dtype).stride
        and has_contiguous_elements(input)
    )
    draw = lambda n, dtype: samplers.normal(engine, n, dtype, contiguous=contiguous)
    return Options("randn_like", **options).tensor_like(input, draw)


@composite(
    f"randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, {OPTIONS}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, {OPTIONS}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    f"randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, {OPTIONS}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    f"randint_like.Tensor(Tensor self, Tensor high, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    f"randint_like.generator(Tensor self, SymInt high, *, Generator? generator, {OPTIONS}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    f"randint_like(Tensor self, SymInt high, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    names="torch.randint_like",
)
def randint_like(input: Tensor, *bounds: int, generator: Any = None, **named: Any) -> Tensor:
    """A tensor of integers from ``[0, high)`` or ``[low, high)``, of the size, dtype and memory order of ``input``.

    Example:
        >>> torch.randint_like(torch.zeros(2, 3), 10).shape
        torch.Size([2, 3])
    """
    given = {k: named.pop(k) for k in ("low", "high") if k in named}
    given |= dict(zip(("low", "high") if len(bounds) == 2 or "high" in given else ("high",), bounds))
    if "high" not in given or len(bounds) > 2:
        raise TypeError(f"randint_like() takes high, or low and high, but {len(bounds)} numbers were given")
    low, high = (int(number("randint_like", k, 2, given.get(k, 0), "int")) for k in ("low", "high"))
    engine = engine_of("randint_like", generator)
    return Options("randint_like", **named).tensor_like(
        input, lambda n, dtype: samplers.random(engine, n, dtype, low, high)
    )
