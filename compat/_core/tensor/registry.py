"""The registry of public names.

A module that defines an operator publishes it under PyTorch's names; ``compat.__init__`` and the public modules look
names up here. An index of names allows modules of operators to be imported at the first access to one of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from types import FunctionType
from typing import Any

from compat._core.tensor.overridable_names import of_function
from compat._core.tensor.tensor import Tensor, later
from funcgrad.core.collector import import_lasting

_PACKAGE = __name__.partition(".")[0]
#: The packages of the modules that make the functions of operators.
_OPERATORS = (f"{_PACKAGE}._operators.", f"{_PACKAGE}._core.operators.")
#: The address of the methods and attributes of tensors.
_TENSOR = "Tensor"
#: By address and name, the module that publishes the name and is not imported yet.
_later: dict[str, dict[str, str]] = {}
_modules: list[str] = []
#: The first address and name of each public function.
_addresses: dict[Callable[..., Any], tuple[str, str]] = {}
#: The modules that define the functions which have the names of their addresses.
_definitions: dict[Callable[..., Any], str] = {}
#: Public functions that ``not_overridable`` marks.
_not_overridable: set[Callable[..., Any]] = set()
#: The functions published since the installation last gave them PyTorch's names (``compat._shown_names``), and their
#: wrappers.
unnamed: list[Callable[..., Any]] = []
#: Functions that replace a value before it is published: ``(value, address, name) -> value``.
publishing: list[Callable[[Any, str, str], Any]] = []
#: Functions that replace a public object where programs find it, not in ``names_of``, which the library itself reads.
exposing: list[Callable[[Any, str, str], Any]] = []


class Names(dict[str, Any]):
    """The public objects of an address, by name. Reading a name imports its module."""

    def __init__(self, place: str):
        super().__init__()
        self._own: dict[str, Any] = {}
        self._later = _later.setdefault(place, {})

    def __missing__(self, name: str) -> Any:
        module = self._later.get(name)
        if module is None:
            raise KeyError(name)
        import_lasting(module)
        return dict.__getitem__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self._later

    def __iter__(self) -> Iterator[str]:
        load_all()
        return dict.__iter__(self)

    def keys(self) -> Any:
        load_all()
        return dict.keys(self)

    def items(self) -> Any:
        load_all()
        return dict.items(self)

    def put(self, name: str, own: Any, made: Any) -> None:
        """Publishes ``made``, the replacement of ``own``."""
        self._own[name] = own
        self[name] = made

    def loaded_under(self, name: str) -> Any:
        """The object published under a name, before replacements; None if its module is not imported."""
        return self._own.get(name)

    def loaded(self) -> dict[str, Any]:
        """The names published by the imported modules."""
        return dict(dict.items(self))

    def names(self) -> set[str]:
        """The names, whether their modules are imported or not."""
        return {*dict.keys(self), *self._later}


_public: dict[str, Names] = {}


class _Later:
    """A descriptor of a tensor attribute whose module is not imported yet."""

    def __init__(self, name: str, module: str):
        self.name, self.module = name, module

    def __get__(self, t: Tensor | None, kind: type) -> Any:
        found = self._load()
        # Not getattr(t, name): under super() in a subclass's method, that would be the subclass's method once more.
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, t, kind)

    def __set__(self, t: Tensor, value: Any) -> None:
        self._load()
        setattr(t, self.name, value)

    def _load(self) -> Any:
        import_lasting(self.module)
        found = vars(Tensor)[self.name]
        if found is self:
            raise ImportError(f"{self.module} does not publish Tensor.{self.name}, as the index of operators says")
        return found


def index(package: str) -> None:
    """Reads the index of names from a package's ``names.txt``, which ``tools/index_names.py`` writes.

    A line such as ``_operators.pointwise.arithmetic Tensor add add_`` has a module, an address, and names there.
    """
    lines = files(package).joinpath("names.txt")
    for line in lines.read_text(encoding="utf-8").splitlines():
        module, place, *names = line.split()
        module = f"{package}.{module}"
        if not _modules or _modules[-1] != module:
            _modules.append(module)
        _later.setdefault(place, {}).update(dict.fromkeys(names, module))
        if place == _TENSOR:
            for name in names:
                setattr(Tensor, name, _Later(name, module))


def load_all() -> None:
    """Imports all modules of operators: for code that lists or changes all operators."""
    while _modules:
        import_lasting(_modules.pop())


#: Short addresses for declarations.
SHORT = {"F": "nn.functional", "C": "_C"}


def publish(value: Any, *names: str) -> Any:
    """Makes ``value`` public under dotted names, ``"torch.add"``, ``"Tensor.add"``, ``"F.relu"``, ``"linalg.inv"``;
    returns it.

    Raises:
        ValueError: if another value has one of the names.
    """
    published: dict[Callable[..., Any], str] = {}
    for name in names:
        place, _, last = name.rpartition(".")
        place = SHORT.get(place, place)
        table = names_of(place)
        if table.loaded_under(last) not in (None, value):
            raise ValueError(f"publish: {place}.{last} is already {table[last]!r}")
        made = value
        for make in publishing:
            made = make(made, place, last)
        table.put(last, value, made)
        if isinstance(made, FunctionType):
            unnamed.append(made)
            if place != _TENSOR:
                if _addresses.setdefault(made, (place, last)) == (place, last):
                    made.__name__ = of_function(f"{place}.{last}")  # it is pickled by its qualified name
            if published.get(made, _TENSOR).startswith(_TENSOR):
                published[made] = f"{place}.{last}"
    for made, address in published.items():
        _name_by_address(made, address)
    for name in names:
        place, _, last = name.rpartition(".")
        if place == _TENSOR and not _is_patched(last):
            setattr(Tensor, last, exposed(names_of(place)[last], place, last))
    return value


def _name_by_address(made: Callable[..., Any], address: str) -> None:
    """Gives a function of a module of operators the module and the name under which programs find it: functions are
    pickled by these."""
    if not made.__module__.startswith(_OPERATORS):
        return
    _definitions[made] = made.__module__
    place, _, name = address.rpartition(".")
    if place == _TENSOR:
        made.__module__, made.__qualname__ = _PACKAGE, address
    else:
        made.__module__ = _PACKAGE if place == "torch" else f"{_PACKAGE}.{place}"
        made.__qualname__ = name


def _is_patched(name: str) -> bool:
    """Whether a program has replaced an attribute of tensors before its module was imported; it keeps its own."""
    return name in _later[_TENSOR] and not isinstance(vars(Tensor).get(name), _Later)


def defining_module(function: Callable[..., Any]) -> str:
    """The module that defines a function, also one that has the name of its address since it was published."""
    return _definitions.get(function) or function.__module__


def is_operation(function: Callable[..., Any], place: str, name: str) -> bool:
    """Whether a public function is an operation on tensors: one that a module of operators defines, which has the
    module of its address, and that ``not_overridable`` does not exclude."""
    package, _, home = function.__module__.partition(".")
    excluded = names_of(place).loaded_under(name) in _not_overridable or name.startswith("_")
    return package in (_PACKAGE, "torch") and (not home or home in _public or home in _later) and not excluded


def not_overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a public function that types and modes do not override, as it is no operation on tensors."""
    _not_overridable.add(function)
    return function


def document(function: Callable[..., Any], text: str) -> None:
    """Sets the docstring of a function and of its published forms."""
    function.__doc__ = text
    for names in _public.values():
        for name, made in names.loaded().items():
            if names.loaded_under(name) is function:
                made.__doc__ = text


def exposed(value: Any, place: str, name: str) -> Any:
    """A public object as programs find it at an address."""
    for make in exposing:
        value = make(value, place, name)
    return value


def function(*names: str) -> Any:
    """Makes a function public: ``@function("torch.matmul", "Tensor.matmul")``."""
    return lambda f: publish(f, *names)


def address_of(value: Callable[..., Any]) -> tuple[str, str] | None:
    """The first address and name of a public function, ``("nn.functional", "relu")``; None if it has none."""
    return _addresses.get(value)


def places() -> list[str]:
    """All addresses that have public names."""
    return list({**_public, **_later})


def names_of(place: str) -> Names:
    """The public names of an address such as ``"torch"`` or ``"nn.functional"``."""
    place = SHORT.get(place, place)
    found = _public.get(place)
    if found is None:
        found = _public[place] = Names(place)
    return found


def named(address: str) -> Any:
    """The public object of a dotted name, ``"torch.add"``; None if there is none."""
    place, _, name = address.rpartition(".")
    return names_of(place).get(name)


def lookups(place: str, scope: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the module of an address: public names are resolved at the first access.

    Args:
        place: the address, as ``"linalg"``.
        scope: the module's namespace, in which results are cached.
    """

    def find(name: str) -> Any:
        found = names_of(place).get(name)
        if found is None:
            raise AttributeError(f"module 'torch.{place}' has no attribute '{name}'")
        scope[name] = found = exposed(found, place, name)
        return found

    return find, lambda: sorted({*scope, *names_of(place).names()})


def _construct(args: tuple, named: dict[str, Any]) -> Tensor:
    """``torch.Tensor(...)`` at the first call: imports the module of the constructor."""
    import_lasting(_later["torch"]["FloatTensor"])
    made: Tensor = Tensor(*args, **named)
    return made


later.construct = _construct
index(_PACKAGE)
