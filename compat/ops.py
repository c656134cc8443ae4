"""``torch.ops``: operators by library, ``torch.ops.aten.mm.default`` and those of libraries of the user's own.

Every other name is a library's, so that this module has none of its own but private ones.

Example:
    >>> import compat as torch
    >>> torch.ops.aten.add.Tensor
    <OpOverload(op='aten.add', overload='Tensor')>
"""

from typing import Any as _Any

from compat._core.dispatch.op_namespace import namespace as _namespace
from compat._core.dispatch.overloads import aten


def __getattr__(name: str) -> _Any:
    """The library of a name: ``torch.ops.my`` is there as soon as it is asked for."""
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    found = globals()[name] = _namespace(name)
    return found


__all__ = ["aten"]
