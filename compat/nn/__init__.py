"""``torch.nn``: modules, parameters, functions and initialization."""

from typing import Any as _Any

from compat._core.types.errors import no_attribute as _no_attribute
from compat.nn import attention, common_types, functional, init, modules, parallel, parameter, utils
from compat.nn.parallel import DataParallel
from compat.nn.parameter import Buffer, Parameter
from compat.nn.modules import *


def __getattr__(name: str) -> _Any:
    # These override functions of tensors, which costs a little from then on.
    if name in ("UninitializedBuffer", "UninitializedParameter"):
        return getattr(parameter, name)
    if name == "grad":  # few programs need it
        return functional.grad
    raise _no_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted([*globals(), "UninitializedBuffer", "UninitializedParameter"])
