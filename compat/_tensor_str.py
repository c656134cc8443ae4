"""``torch._tensor_str``: parts of tensors' ``repr``, for packages whose own classes print like tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._operators.tensor.format import (
    array_text,
    get_printoptions,
    options,
    printoptions,
    set_printoptions,
    with_suffixes,
)

#: The print options.
PRINT_OPTS = options

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Any, indent: int) -> str:
    """A tensor's values in brackets.

    Args:
        indent: the indentation of the lines after the first.
    """
    return array_text(self.detach().numpy(), indent)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor's values, with suffixes and the closing bracket."""
    return with_suffixes(tensor_str, suffixes, indent, force_newline)
