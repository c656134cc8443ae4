"""What operators and views, as declared, have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from compat._core.operators.call_errors import Complaints, of_tensors
from compat._core.operators.signature import MISSING, cleaned, entry, renamed, wrapped
from compat._core.schema.deprecated_overloads import older_call
from compat._core.schema.parameter import Param
from compat._core.schema.shown_signature import SchemaSignature
from compat._core.tensor.registry import address_of, load_all, publish
from compat._core.types import dtype
from funcgrad.core.caching import Cache, Group

#: What operations do for arguments of a kind, of all operations.
CALLS = Group("calls of operations", 8192)
_every: list[Declared] = []
#: The modules whose functions are told by their own names, each: ``erf`` and ``special_erf``.
_SPOKEN = frozenset(["torch", "linalg", "special", "fft"])


def addresses(name: str, names: str | None, inplace: bool = False) -> tuple[list[str], list[str]]:
    """Where an operator's function and its in-place variant appear.

    Args:
        names: as the row says.
        inplace: whether there is a variant by default.
    """
    if names is None:
        names = f"torch.{name} Tensor.{name}" + f" Tensor.{name}_" * inplace
    every = names.split()
    written = [n for n in every if n.endswith("_") and not n.endswith("__")]
    return [n for n in every if n not in written], written


class Declared:
    """What all declared operations have: parameters, plans, and functions to call.

    Attributes:
        name: as the user writes it.
        params: its parameters.
        schemas: the overloads that it computes, in PyTorch's grammar.
        plans: by what the entry function found its arguments to be.
        function: what users call.
    """

    offsets = False
    #: Whether nodes are made for it, so that it has to know where its operands are in the graph.
    recorded = True
    #: The names of the numbers that once came among its tensors.
    older: tuple[str, ...] = ()

    def __init__(self, name: str, body: Callable[..., Any], params: tuple[Param, ...], schemas: tuple[str, ...] = ()):
        self.name = name
        self.__doc__, self.__module__ = body.__doc__, body.__module__
        self.body = body
        self.params = params
        self.schemas = schemas
        self.plans: Cache[tuple, Any] = Cache(CALLS)
        self.numbers = False
        #: The functions that were made for it to be called by, and whether each writes into the first argument.
        self.entries: list[tuple[FunctionType, bool]] = []
        _every.append(self)

    def _entry(
        self, name: str, miss: Callable[..., Any], plans: dict, out: bool, writes: bool, words: Complaints | None = None
    ) -> Callable[..., Any]:
        tensors = [p.name for p in self.params if p.kind == "array"]

        def older(args: Sequence[Any], out: Any) -> Any:
            try:
                return older_call(name, tensors, self.older, made, args, out)
            except TypeError:
                words = made.__globals__["words"]
                if words is not None:
                    words.refuse(args[: words.method], args[words.method :], {}, out)
                raise

        made: Any = entry(
            name, self.params, miss, plans, out=out, offsets=self.offsets, recorded=self.recorded,
            older=older if self.older else None, words=words, writes=writes,
        )  # fmt: skip
        made.__doc__ = self.body.__doc__
        made.__module__ = self.body.__module__
        made.__qualname__ = name
        made.__signature__ = SchemaSignature(self.params, self.schemas, out)
        made.__wrapped__ = self.body  # its source is the one to show
        self.entries.append((made, writes))
        return made

    def _publish(self, made: Any, names: list[str]) -> None:
        """Makes a function made for it public. Under its own name its module has the declaration instead."""
        own, others = of_tensors(names) if made in dict(self.entries) else ([], names)
        for name in own:
            publish(self._other(made, name), name)
        self._publish_functions(made, others)
        address = address_of(made)
        if address is not None and address[1] == made.__name__:
            made.__module__ = f"compat.{address[0]}".removesuffix(".torch")

    def _publish_functions(self, made: Any, names: list[str]) -> None:
        """Makes a function public that complains under the first of the names; others have functions of their own."""
        spoken = [n for n in names if n.partition(".")[0] in _SPOKEN] if made in dict(self.entries) else []
        for name in spoken[1:]:
            publish(self._other(made, name), name)
        publish(made, *[n for n in names if n not in spoken[1:]])
        if names and made in dict(self.entries):
            scope = made.__globals__
            words = Complaints((spoken or names)[0], self.params, scope["miss"])
            scope["miss"], scope["words"] = words.miss, words

    def _other(self, made: Any, where: str) -> Callable[..., Any]:
        """What does what a function made for it does, but complains of its arguments as what is public there."""
        scope = made.__globals__
        words = Complaints(where, self.params, scope["miss"])
        place, _, name = where.rpartition(".")
        out, writes = scope["has_out"] and not words.method, dict(self.entries)[made]
        found: Any = self._entry(name, words.miss, scope["plans"], out, writes, words)
        found.__module__ = "compat" if place in ("torch", "Tensor") else f"compat.{place}"
        found.__name__, found.__qualname__ = name, where if words.method else name
        return found

    def clean(self, name: str, args: list[Any], named: Any) -> list[Any]:
        """The arguments, each of the kind its parameter wants."""
        if named:
            args = renamed(name, self.params, args, named)
        return [cleaned(name, p, i + 1, a, self.numbers) for i, (p, a) in enumerate(zip(self.params, args))]

    def by_name(self, args: Sequence[Any], named: Any) -> dict[str, Any]:
        """The arguments that were given, by name; ``named`` are those without a place among the parameters."""
        given = dict(zip([p.name for p in self.params], args))
        return {k: v for k, v in given.items() if v is not MISSING} | (named or {})

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The arguments that the program takes, sequences flattened."""
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


def forget_plans() -> None:
    """Lets go of everything compiled; a new default dtype asks for it."""
    for declared in _every:
        declared.plans.clear()
        for table in ("inplace_plans", "kernels"):
            getattr(declared, table, {}).clear()


def every() -> list[Declared]:
    """All declared operators."""
    load_all()
    return _every


dtype.when_default_changes(forget_plans)
