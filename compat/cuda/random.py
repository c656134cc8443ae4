"""``torch.cuda.random``: all devices share the CPU's random generator.

So a program draws the same numbers on every device. Without a GPU, nothing is seeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat._core.random import generator
from compat._core.tensor.tensor import Tensor
from compat.cuda._devices import check_available, device_count, is_available

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seeds the generator, if there is a GPU.

    Raises:
        ValueError: for an invalid seed.
    """
    seed = int(seed)
    if is_available():
        generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seeds the generator from the operating system, if there is a GPU."""
    if is_available():
        generator.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed.

    Raises:
        AssertionError: if there is no GPU.
    """
    check_available()
    return generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the generator.

    Raises:
        AssertionError: if there is no GPU.
    """
    check_available()
    return generator.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The state for each GPU."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Sets the state of the generator, if there is a GPU."""
    if is_available():
        generator.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets the state of the generator to the first given one, if there is a GPU."""
    for state in list(new_states)[:1]:
        set_rng_state(state)
