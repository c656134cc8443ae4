"""``functorch``: the deprecated name of ``torch.func``'s transforms, which warn when called.

Besides, ``make_functional`` and its variants, which split a module into a function and its parameters, and which
``torch.func.functional_call`` and ``torch.func.stack_module_state`` replace.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from compat import func, torch_version
from compat.func._functorch import stateless
from compat.func._functorch.stateless import FunctionalModule, FunctionalModuleWithBuffers

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp",
    "vmap",
]  # fmt: skip

__version__ = torch_version.__version__

_F = TypeVar("_F", bound=Callable[..., Any])


def _deprecated(name: str, now: str, function: _F) -> _F:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= "
            f"2.3. Please use `{now}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration "
            "guide for more details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


vmap = _deprecated("vmap", "torch.vmap", func.vmap)
grad = _deprecated("grad", "torch.func.grad", func.grad)
grad_and_value = _deprecated("grad_and_value", "torch.func.grad_and_value", func.grad_and_value)
vjp = _deprecated("vjp", "torch.func.vjp", func.vjp)
jvp = _deprecated("jvp", "torch.func.jvp", func.jvp)
jacrev = _deprecated("jacrev", "torch.func.jacrev", func.jacrev)
jacfwd = _deprecated("jacfwd", "torch.func.jacfwd", func.jacfwd)
hessian = _deprecated("hessian", "torch.func.hessian", func.hessian)
functionalize = _deprecated("functionalize", "torch.func.functionalize", func.functionalize)
make_functional = _deprecated("make_functional", "torch.func.functional_call", stateless.make_functional)
make_functional_with_buffers = _deprecated(
    "make_functional_with_buffers", "torch.func.functional_call", stateless.make_functional_with_buffers
)
combine_state_for_ensemble = _deprecated(
    "combine_state_for_ensemble", "torch.func.stack_module_state", stateless.combine_state_for_ensemble
)
