"""A pure-functional autodiff core: functions traced into a small IR, transformed by its own rules, executed by XLA.

Transforms: ``grad``, ``value_and_grad``, ``vjp``, ``jvp``, ``linearize``, ``linear_transpose``, ``jacfwd``, ``jacrev``,
``hessian``, ``hvp``, ``elementwise_grad``, ``make_ggnvp``, ``multigrad_dict``, ``vmap`` (with collectives such as
``psum``), ``jit``, ``checkpoint`` (also ``remat``); custom derivative rules: ``custom_jvp``, ``custom_vjp``,
``stop_gradient``, and ``funcgrad.extend``; functions as programs: ``trace``, ``eval_shape``, ``closure_convert``,
``export``. Control flow under ``jit``: the loops ``scan``, ``fori_loop``, ``while_loop``, ``map`` and
``associative_scan``, the branches ``cond`` and ``switch``. Array functions are in ``funcgrad.numpy`` and
``funcgrad.scipy``, XLA's operations under JAX's names in ``funcgrad.lax``, neural network functions in ``funcgrad.nn``,
random numbers in ``funcgrad.random``, pytree functions in ``funcgrad.trees``, multi-device programs in
``funcgrad.parallel``, and conversion from and to JAX functions in ``funcgrad.interop``.
"""

from collections.abc import Callable as _Callable
from importlib import import_module as _import

import lazy_loader as _lazy

from funcgrad import runtime
from funcgrad.core import collector as _collector, ir as _ir, traceback as _traceback

__version__ = "0.1.0"
# The stub ``__init__.pyi`` lists the public names; their modules are imported lazily.
_find, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
#: Public modules that are in folders.
_MODULES = {
    "checkpoint_policies": "transforms", "costs": "tools", "debug": "tools", "drawing": "tools", "extend": "tools",
    "flatten_util": "tools", "initializers": "nn", "layers": "nn", "trees": "core",
}  # fmt: skip


def __getattr__(name: str) -> object:
    _collector.import_lasting("funcgrad.numpy")  # installs the operators of tracers
    folder = _MODULES.get(name)
    globals()[name] = found = _find(name) if folder is None else _import(f"funcgrad.{folder}.{name}")
    return found


def _view(name: str, module: str) -> _Callable[[_ir.Program], object]:
    """A method of programs whose module is imported at the first access, and then replaces this object."""

    def view(program: _ir.Program) -> object:
        _import(module)
        return _ir.view(name)(program)

    return view


for _name, _module in (("cost", "costs"), ("dot", "drawing"), ("svg", "drawing")):
    _ir.set_view(_name, _view(_name, f"funcgrad.tools.{_module}"))

_collector.imported()
_traceback.install()
