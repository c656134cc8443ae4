"""``torch.nn``: modules, parameters, functions and initialization."""

from typing import Any as _Any

from compat._core.types.errors import no_attribute as _no_attribute
from compat.nn import attention, common_types, functional, init, modules, parallel, parameter, utils
from compat.nn.parallel import DataParallel
from compat.nn.parameter import Buffer, Parameter
from compat.nn.modules import *


def factory_kwargs(kwargs: dict[str, _Any] | None) -> dict[str, _Any]:
    """The keyword arguments of a module that are passed to the factories of its tensors.

    Args:
        kwargs: ``device``, ``dtype`` and ``memory_format``, alone or as a dictionary named ``factory_kwargs``.

    Raises:
        TypeError: for other names, and for a name that is given both alone and in ``factory_kwargs``.

    Example:
        >>> import compat as torch
        >>> torch.nn.factory_kwargs({"dtype": torch.float64})
        {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    direct = dict(kwargs)
    nested = dict(direct.pop("factory_kwargs", {}))
    unknown = direct.keys() - {"device", "dtype", "memory_format"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    twice = sorted(direct.keys() & nested.keys())
    if twice:
        raise TypeError(f"{twice[0]} specified twice, in {kwargs} and in factory_kwargs")
    return nested | direct


def __getattr__(name: str) -> _Any:
    # Imported on first use, since once they exist every call checks for __torch_function__.
    if name in ("UninitializedBuffer", "UninitializedParameter"):
        return getattr(parameter, name)
    if name == "grad":  # few programs need it
        return functional.grad
    raise _no_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted([*globals(), "UninitializedBuffer", "UninitializedParameter"])
