"""Public names: the names that a user of ``compat`` and ``funcgrad`` can write, and their values."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compat import _absent as stubs
from tools.docs.operators import published

#: Modules of compat that PyTorch does not have, with compat's name.
OURS = ("compat.runtime", "compat.install", "compat.utils.einops")
#: Modules from which users do not import, as their contents have other public addresses.
INTERNAL = ("compat.nn.common_types",)
#: The packages of funcgrad by the names that users write.
FUNCGRAD = {
    "funcgrad": "funcgrad", "funcgrad.numpy": "funcgrad.numpy", "funcgrad.numpy.linalg": "funcgrad.linalg",
    "funcgrad.fft": "funcgrad.fft", "funcgrad.lax": "funcgrad.lax", "funcgrad.lax.linalg": "funcgrad.lax.linalg",
    "funcgrad.nn": "funcgrad.nn",
    "funcgrad.nn.initializers": "funcgrad.initializers", "funcgrad.random": "funcgrad.random",
    "funcgrad.special": "funcgrad.special", "funcgrad.scipy.linalg": "funcgrad.scipy.linalg",
    "funcgrad.scipy.signal": "funcgrad.scipy.signal", "funcgrad.scipy.integrate": "funcgrad.scipy.integrate",
    "funcgrad.parallel": "funcgrad.parallel", "funcgrad.core.trees": "funcgrad.trees",
    "funcgrad.transforms.checkpoint_policies": "funcgrad.checkpoint_policies",
    "funcgrad.tools.debug": "funcgrad.debug", "funcgrad.tools.extend": "funcgrad.extend",
    "funcgrad.tools.flatten_util": "funcgrad.flatten_util", "funcgrad.tools.test_util": "funcgrad.tools.test_util",
    "funcgrad.tools.costs": "funcgrad.tools.costs", "funcgrad.tools.drawing": "funcgrad.drawing",
    "funcgrad.tools.export": "funcgrad.tools.export", "funcgrad.interop": "funcgrad.interop",
    **{
        f"funcgrad.scipy.stats.{name}": f"funcgrad.scipy.stats.{name}"
        for name in (
            "norm", "t", "gamma", "beta", "chi2", "poisson", "expon", "uniform", "laplace", "dirichlet",
            "multivariate_normal",
        )
    },
    "funcgrad.scipy.stats": "funcgrad.scipy.stats",
}  # fmt: skip
#: The same packages by their names in NumPy, SciPy and JAX.
ALSO = {
    "funcgrad.numpy.linalg": "funcgrad.numpy.linalg", "funcgrad.fft": "funcgrad.numpy.fft",
    "funcgrad.special": "funcgrad.scipy.special", "funcgrad.nn.initializers": "funcgrad.nn.initializers",
}  # fmt: skip


#: Names that modules of funcgrad import for their own use.
_CORE = ("funcgrad.core.", "funcgrad.primitives.", "funcgrad.interpreters.", "funcgrad.runtime.")


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
        address: as users write it: ``torch.nn.functional.relu``.
        value: the object.
        module: the module, or the class, that has it.
    """

    address: str
    value: Any
    module: Any

    @property
    def place(self) -> str:
        return self.address.rpartition(".")[0]

    @property
    def last(self) -> str:
        return self.address.rpartition(".")[2]


def label(module: str) -> str:
    """The name of a module of compat for users: PyTorch's name, unless PyTorch does not have it."""
    return module if module.startswith(OURS) else "torch" + module.removeprefix("compat")


def public_names() -> list[Name]:
    """Every public callable of both packages, and the methods and attributes of ``Tensor``."""
    compat = importlib.import_module("compat")
    modules = list(_modules(compat))  # some publish methods of tensors
    found = [Name(f"torch.{n}", v, compat) for n, v in _members(compat)]
    found += [Name(f"torch.Tensor.{n}", v, compat.Tensor) for n, v in _attributes(compat.Tensor)]
    for module in modules:
        found += [Name(f"{label(module.__name__)}.{n}", v, module) for n, v in _members(module)]
    for path, shown in FUNCGRAD.items():
        module = importlib.import_module(path)
        found += [Name(f"{s}.{n}", v, module) for n, v in _members(module) for s in (shown, ALSO.get(path)) if s]
    return found + list(_at_home(found, modules))


def _at_home(found: list[Name], modules: list[types.ModuleType]) -> Iterator[Name]:
    """Classes by their ``__module__``, which pickles name, where another file defines them."""
    named, public = {n.address for n in found}, {m.__name__: m for m in modules}
    for value in {id(n.value): n.value for n in found if isinstance(n.value, type)}.values():
        home, last = public.get(value.__module__.replace("torch", "compat", 1)), value.__name__
        if home is None or last.startswith("_") or vars(home).get(last) is not value:
            continue
        if (address := f"{label(home.__name__)}.{last}") not in named:
            yield Name(address, value, home)


def constants() -> list[Name]:
    """The dtypes, layouts and numbers of ``torch``."""
    compat = importlib.import_module("compat")
    kinds = (compat.dtype, compat.layout, compat.memory_format, float)
    return [Name(f"torch.{n}", v, compat) for n, v in sorted(vars(compat).items()) if isinstance(v, kinds)]


def _modules(package: types.ModuleType) -> Iterator[types.ModuleType]:
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if not private and not info.name.startswith(INTERNAL):
            try:
                yield importlib.import_module(info.name)
            except ModuleNotFoundError as missing:  # an optional package that is not installed
                if (missing.name or "").partition(".")[0] in ("compat", "funcgrad"):
                    raise


def _members(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    listed = getattr(module, "__all__", None)
    for name in sorted({*(dir(module) if listed is None else listed), *published(module.__name__)}):
        value = None if name.startswith("_") else getattr(module, name, None)
        if not callable(value) or isinstance(value, types.ModuleType):
            continue
        if name in published(module.__name__) or _belongs(value, module, listed is not None):
            yield name, value


def _belongs(value: Any, module: types.ModuleType, listed: bool) -> bool:
    """Whether a module publishes a name, rather than importing it for its own code."""
    home = str(getattr(value, "__module__", "") or type(value).__module__)
    root = home.partition(".")[0]
    if isinstance(value, types.GenericAlias) or root == "typing":
        return False
    if listed:
        return True
    if module.__name__ == "compat":
        return root in ("compat", "torch", "funcgrad", "jax") and home != "compat._core.types.errors"
    if module.__name__ in FUNCGRAD and hasattr(module, "__path__"):
        return root in ("jax", "numpy") or (root == "funcgrad" and not home.startswith(_CORE))
    if module.__name__ == "compat.cuda":
        return root in ("compat", "torch") and not home.startswith("compat._core.")
    if home == stubs.__name__:  # the replacement for absent accelerators
        return value not in vars(stubs).values()
    same = {home, home.replace("torch", "compat", 1)} & {module.__name__}
    within = hasattr(module, "__path__") and home.replace("torch", "compat", 1).startswith(f"{module.__name__}.")
    return bool(same or within)


def _attributes(kind: type) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(kind, name) if name == "as_subclass" else getattr(kind, name)
