"""The base class of declared operators (``Op``, ``ViewOp``): parameters, plans, and the functions that call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.dispatcher import Call, dispatch, layers, operators
from compat._core.operators.call_errors import CallErrors, has_call_errors, of_tensors
from compat._core.operators.entry_function import cleaned, entry, renamed, wrapped
from compat._core.schema.deprecated_overloads import older_call
from compat._core.schema.overload import carry, overloads
from compat._core.schema.parameter import MISSING, Param
from compat._core.tensor.overridable_names import of_function
from compat._core.tensor.registry import address_of, publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from funcgrad.core.caching import Cache, Group

#: The plans of all operations.
CALLS = Group("calls of operations", 8192)
#: The namespaces whose functions have separate names in errors: ``erf`` and ``special_erf``.
_SPOKEN = frozenset(["torch", "linalg", "special", "fft"])


def addresses(name: str, names: str | None, inplace: bool = False) -> tuple[list[str], list[str]]:
    """The addresses of an operator's function, and those of its in-place variant.

    Args:
        names: the row's option.
        inplace: whether there is an in-place variant by default.
    """
    if names is None:
        names = f"torch.{name} Tensor.{name}" + f" Tensor.{name}_" * inplace
    every = names.split()
    written = [n for n in every if n.endswith("_") and not n.endswith("__")]
    return [n for n in every if n not in written], written


class OperatorBase:
    """A declared operator.

    Attributes:
        name: its name in PyTorch's schemas.
        params: its parameters, and their names.
        schemas: the overloads that it computes, in PyTorch's grammar.
        plans: plans by the key that the entry function makes from its arguments.
        function: the public function.
    """

    #: Whether it is a view operator, whose plans also depend on its operand's offset in the storage.
    is_view = False
    #: Whether it makes nodes, so that its plans depend on which operands require grad.
    recorded = True
    #: Whether autocast casts its arguments.
    autocast = False
    #: The names of numbers that deprecated overloads have between the tensors.
    older: tuple[str, ...] = ()
    #: The names of overloads without ``out``, if others have it.
    without_out = ""

    def __init__(self, name: str, body: Callable[..., Any], params: tuple[Param, ...], schemas: tuple[str, ...] = ()):
        self.name = name
        self.__doc__, self.__module__ = body.__doc__, body.__module__
        self.body = body
        self.params = params
        self.names = [p.name for p in params]
        self.schemas = schemas
        self.plans: Cache[tuple, Any] = Cache(CALLS)
        self.numbers = False
        #: Its entry functions.
        self.entries: list[Entry] = []
        operators.append(self)

    def _publish(self, made: Any, names: list[str]) -> None:
        """Publishes an entry function."""
        own, others = of_tensors(names) if made in _entries else ([], names)
        for name in own:
            publish(self._other(made, name), name)
        self._publish_functions(made, others)
        address = address_of(made)
        if address is not None and of_function(".".join(address)) == made.__name__:
            made.__module__ = f"compat.{address[0]}".removesuffix(".torch")

    def _publish_functions(self, made: Any, names: list[str]) -> None:
        """Publishes a function whose errors have the first name; further names get functions with their own errors."""
        spoken = [n for n in names if n.partition(".")[0] in _SPOKEN] if made in _entries else []
        for name in spoken[1:]:
            publish(self._other(made, name), name)
        publish(made, *[n for n in names if n not in spoken[1:]])
        if names and made in _entries:
            _entries[made].words = CallErrors((spoken or names)[0], self.params)

    def _other(self, made: Any, where: str) -> Callable[..., Any]:
        """An entry function with the same plans, whose errors have the name and arguments of another address."""
        entered, words = _entries[made], CallErrors(where, self.params)
        place, _, name = where.rpartition(".")
        out = entered.out and not words.method
        found: Any = Entry(self, name, entered.run, entered.plans, out, entered.writes, words).function
        found.__module__ = "compat" if place in ("torch", "Tensor") else f"compat.{place}"
        found.__name__, found.__qualname__ = name, where if words.method else name
        return found

    def clean(self, name: str, args: list[Any], named: Any) -> list[Any]:
        """The arguments, converted to the kinds of their parameters."""
        if named:
            args = renamed(name, self.params, args, named)
        return [
            a if isinstance(a, Tensor) and p.kind == "array" else cleaned(name, p, i + 1, a, self.numbers)
            for i, (p, a) in enumerate(zip(self.params, args))
        ]

    def by_name(self, args: Sequence[Any], named: Any) -> dict[str, Any]:
        """The given arguments by name; ``named`` are keyword arguments without a parameter."""
        given = dict(zip(self.names, args))
        return {k: v for k, v in given.items() if v is not MISSING} | (named or {})

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The arguments that are inputs of the program, sequences flattened."""
        found: list[Any] = []
        for p, a in zip(self.params, args):
            if p.kind == "arrays":
                found.extend(a)
            elif p.dynamic:
                found.append(a)
        return found

    def statics(self, args: Sequence[Any], ndim: int) -> dict[str, Any]:
        """The static arguments by name, dimensions counted from the left."""
        return {p.name: wrapped(p, a, ndim) for p, a in zip(self.params, args) if not p.dynamic}


class Entry:
    """A public function of an operator, with the plans that it looks up.

    Attributes:
        operator: the operator.
        function: the generated function (``compat._core.operators.entry_function.entry``).
        plans: its plans by key.
        run: ``(args, out, named)``, called if there is no plan.
        out: whether it has an argument ``out``.
        writes: whether it writes into the first argument.
        words: makes the errors of wrong arguments; None until the function is published.
    """

    def __init__(
        self,
        operator: OperatorBase,
        name: str,
        run: Callable[..., Any],
        plans: dict,
        out: bool,
        writes: bool,
        words: CallErrors | None = None,
    ):
        self.operator, self.plans, self.run = operator, plans, run
        self.out, self.writes, self.words = out, writes, words
        made: Any = entry(
            name, operator.params, self.miss, plans, out=out, offsets=operator.is_view, recorded=operator.recorded,
            older=self._deprecated if operator.older else None, words=lambda: self.words, writes=writes,
            autocast=operator.autocast,
        )  # fmt: skip
        made.__doc__ = operator.body.__doc__
        made.__module__ = operator.body.__module__
        made.__qualname__ = name
        own = [s for s in operator.schemas if not writes or s.partition("(")[2].startswith("Tensor")]
        carry(made, overloads(own, out, operator.without_out, bool(operator.older)), operator.params)
        made.__wrapped__ = operator.body  # for ``inspect.getsource``
        self.name, self.function = name, has_call_errors(made)
        _entries[made] = self
        operator.entries.append(self)

    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs a call without a plan, through the layers of the dispatcher."""
        if layers:
            return dispatch(Call(self.operator, self.function, self.writes, args, out, named, self.plan))
        return self.plan(args, out, named)

    def plan(self, args: Sequence[Any], out: Any, named: Any) -> Any:
        """Runs a call; errors of its arguments are replaced by PyTorch's."""
        if self.words is None:
            return self.run(args, out, named)
        try:
            return self.run(list(args), out, named)
        except Exception:
            problem = self.words.problem(args, (), named or {}, out)
            if problem is None:
                raise
        raise problem

    def _deprecated(self, args: Sequence[Any], out: Any) -> Any:
        """A call of a deprecated overload, which has more positional arguments than the parameters."""
        operator = self.operator
        tensors = [p.name for p in operator.params if p.kind == "array"]
        try:
            return older_call(self.name, tensors, operator.older, self.function, args, out)
        except TypeError:
            if self.words is not None:
                self.words.refuse(list(args[: self.words.method]), args[self.words.method :], {}, out)
            raise


#: Entries by their function.
_entries: dict[Callable[..., Any], Entry] = {}


def forget_plans() -> None:
    """Clears all plans; called when the default dtype changes."""
    for declared in operators:
        declared.plans.clear()
        for table in ("inplace_plans", "kernels"):
            getattr(declared, table, {}).clear()


dtype.when_default_changes(forget_plans)
