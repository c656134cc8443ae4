"""What is not there, such as accelerators: what scripts ask of it before they go on without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusing(
    name: str, error: type[Exception], text: str, why: str = "the accelerator is not there"
) -> Callable[..., Any]:
    """A function that raises, as PyTorch's does where what it needs is not there."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises ``{error.__name__}``: {why}."
    return refuse


def answering(name: str, make: Callable[[], Any], meaning: str) -> Callable[..., Any]:
    """A function that answers the same whatever it is asked about."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        return make()

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"Whatever is asked about: {meaning}."
    return answer
