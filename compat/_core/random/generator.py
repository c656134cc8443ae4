"""Random streams, ``torch.Generator``, with their seeds and states; ``torch.manual_seed`` and ``torch.random``.

Each ``Generator`` is a stream; ``default_generator`` is the one that functions use by default, for all devices. The
numbers are PyTorch's CPU numbers, bit for bit (``compat._operators.samplers``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from compat._core.random.engine import DEFAULT_SEED, Engine
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.device import accelerators
from compat._core.types.device import device as Device

#: Called before each draw: by traces, which must record the operation that draws.
watchers: list[Callable[[], None]] = []

__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "watchers",
]  # fmt: skip


class Generator:
    """A stream of random numbers.

    Args:
        device: ``"cpu"`` or an accelerator, to which the numbers, which are the CPU's, are moved.

    Attributes:
        engine: the engine that draws.
        device: the device of the numbers.

    Raises:
        RuntimeError: for another device.

    Example:
        >>> import compat as torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.rand(2, generator=generator)
        tensor([0.4963, 0.7682])
    """

    __slots__ = ("__weakref__", "_engine", "device")
    __module__ = "torch._C"

    def __init__(self, device: Any = "cpu"):
        self.device = Device(device)
        if self.device.type != "cpu" and not accelerators(self.device.type):
            raise RuntimeError(f"Device type {self.device.type} is not supported for torch.Generator() api.")
        self._engine = Engine(DEFAULT_SEED)

    @property
    def engine(self) -> Engine:
        """The engine; every use of it draws, so watchers are called."""
        for watcher in watchers:
            watcher()
        return self._engine

    def manual_seed(self, seed: int) -> Generator:
        """Restarts the stream from a seed; returns the generator.

        Args:
            seed: in ``[-2**63, 2**64)``; negative ones wrap.

        Raises:
            RuntimeError: if it is not an integer.
            ValueError: if it is out of range.
        """
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._engine.seed(seed.__index__())
        return self

    def seed(self) -> int:
        """Restarts the stream from a seed of the operating system; returns the seed."""
        return self._engine.seed_from_entropy()

    def initial_seed(self) -> int:
        """The seed from which it started."""
        return self._engine.initial_seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes."""
        return from_array(self._engine.get_state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Sets the state to one that ``get_state`` returned; returns the generator.

        Raises:
            TypeError: if it is not a tensor of bytes.
            RuntimeError: if it is not a state.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self._engine.set_state(array_of(new_state))
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        made = Generator()
        made._engine = self._engine.clone()
        return made

    def __reduce__(self) -> tuple:
        return _restored, (self._engine.get_state(),)

    def __deepcopy__(self, memo: dict) -> Generator:
        return self.clone_state()


def _restored(state: Any) -> Generator:
    made = Generator()
    made._engine.set_state(state)
    return made


publish(Generator, "torch.Generator")

#: The stream of all functions called without ``generator``.
default_generator = Generator()
publish(default_generator, "torch.default_generator")


def engine_of(name: str, generator: Any) -> Engine:
    """The engine of a generator; for None, of the default one.

    Raises:
        TypeError: if it is not a generator; the message names the function ``name``.
    """
    if generator is None:
        return default_generator.engine
    if not isinstance(generator, Generator):
        raise TypeError(f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator.engine


@function("torch.manual_seed")
def manual_seed(seed: Any) -> Generator:
    """Seeds the default generator; returns it.

    Example:
        >>> import compat as torch
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


@function("torch.seed")
def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return default_generator.seed()


@function("torch.initial_seed")
def initial_seed() -> int:
    """The seed from which the default generator started."""
    return default_generator.initial_seed()


@function("torch.get_rng_state")
def get_rng_state() -> Tensor:
    """The state of the default generator as a tensor of bytes."""
    return default_generator.get_state()


@function("torch.set_rng_state")
def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the default generator to one that ``get_rng_state`` returned."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: Any = None, **names: Any) -> Iterator[None]:
    """Context that restores the state of the default generator at its end.

    Args:
        devices, device_type: ignored; all devices have one default generator.
        enabled: False makes it do nothing.

    Example:
        >>> import compat as torch
        >>> with torch.random.fork_rng():
        ...     inside = torch.rand(1)
        >>> bool(torch.rand(1) == inside)
        True
    """
    if not enabled:
        yield
        return
    with default_generator._engine.fork():
        yield
