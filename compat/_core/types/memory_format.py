"""Layout and memory-format constants: ``torch.strided``, ``torch.channels_last`` and the others."""

from __future__ import annotations

from typing import Any


class _Constant:
    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Constant):
    """The layout of a tensor: ``torch.strided``, or one of the sparse ones."""

    __module__ = "compat"

    __slots__ = ()


class memory_format(_Constant):
    """The order of a tensor's dimensions in memory."""

    __module__ = "compat"

    __slots__ = ()


strided = layout("strided")
jagged = layout("jagged")
#: The layouts by name, including those that programs only compare with.
LAYOUTS = {"strided": strided, "jagged": jagged}
LAYOUTS |= {name: layout(name) for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")}
LAYOUTS["_mkldnn"] = layout("_mkldnn")
globals().update(LAYOUTS)  # unpickling finds them by name


def scalar_layout_name(wanted: Any) -> str:
    """The C++ name of a layout, used in messages.

    Example:
        >>> scalar_layout_name(strided), scalar_layout_name(LAYOUTS["sparse_csr"])
        ('Strided', 'SparseCsr')
    """
    name: str = wanted._name.removesuffix("_coo")
    return "".join(part.capitalize() for part in name.split("_"))


def is_strided(wanted: Any) -> bool:
    """Whether the layout of a new tensor is strided: by default, and ``jagged`` for sizes that are not ragged."""
    return wanted is None or wanted is strided or wanted is jagged


def check_strided(wanted: Any) -> None:
    """Checks that the layout of a new tensor is strided.

    Raises:
        NotImplementedError: for a sparse layout, and oneDNN's.

    Example:
        >>> check_strided(strided)
        >>> check_strided(LAYOUTS["sparse_coo"])
        Traceback (most recent call last):
        NotImplementedError: this makes no tensors of layout torch.sparse_coo
    """
    if not is_strided(wanted):
        raise NotImplementedError(f"this makes no tensors of layout {wanted}")


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
