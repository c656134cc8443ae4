"""Dynamic sizes: a program is traced at several sizes, and the numbers that depend on them become formulas.

A number in a graph (the offset of a view, the length of a slice) is fitted by a polynomial that is linear in each size,
which covers ``batch * length``. A further trace, at sizes not used for the fit, must agree; otherwise, or if the
operations themselves depend on a size, the size is static.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compat._core.dispatch.overloads import aten
from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.fx.graph import Graph
from compat.fx.node import Node

__all__ = [
    "MOST", "Dim", "Fixed", "Place", "Size", "Symbol", "declared_symbols", "bound", "candidates", "dims", "fits",
    "generalized",
]  # fmt: skip

#: The maximum number of dynamic sizes.
MOST = 6
#: With more sizes, only products of at most two are fitted, since the number of traces grows exponentially.
_ALL_PRODUCTS = 3


class ValueRanges(NamedTuple):
    """The minimum and the maximum of a size; None without a maximum."""

    lower: int
    upper: int | None

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


class SizeName(str):
    """The name of a dynamic size, which is printed as it is."""

    __slots__ = ()
    __repr__ = str.__str__


class _Hint:
    """The treatment of a size without a name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class Dim:
    """A dynamic size, for ``export(dynamic_shapes=...)``.

    Args:
        name: the name of the size; sizes of the same name are equal.
        min, max: its bounds.

    Sizes that are linear in another one are written so: ``2 * batch``, ``batch + 1``.

    Attributes:
        AUTO: dynamic if possible.
        DYNAMIC: required to be dynamic.
        STATIC: static.

    Example:
        >>> batch = torch.export.Dim("batch", min=1)
        >>> program = torch.export.export(
        ...     torch.nn.Linear(2, 1), (torch.ones(3, 2),), dynamic_shapes=({0: batch},)
        ... )
        >>> program.module()(torch.zeros(7, 2)).shape
        torch.Size([7, 1])
    """

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__, self.min, self.max = name, 0 if min is None else min, max
        self.root = self
        if max is not None and max <= self.min:
            raise ValueError(f"Cannot create Dim with inconsistent min={min}, max={max}")

    #: The size that this one follows from, and how.
    root: Dim
    factor, offset = 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        return _Derived(self.root, factor * self.factor, factor * self.offset + offset)

    def __add__(self, other: Any) -> Dim:
        return self._derived(1, self._checked("add", other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        return self._derived(1, -self._checked("subtract", other))

    def __rsub__(self, other: Any) -> Dim:
        raise NotImplementedError(f"Attempted to negate {self.__name__}. {_INCREASING}")

    def __mul__(self, other: Any) -> Dim:
        factor = self._checked("multiply", other)
        if factor <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. "
                f"{_INCREASING}"
            )
        return self._derived(factor, 0)

    __rmul__ = __mul__

    def _checked(self, what: str, other: Any) -> int:
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to {what} {other} and {self.__name__}, where an integer was expected. {_INCREASING}"
            )
        return other

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}" + (")" if self.max is None else f", max={self.max})")


_INCREASING = "(Only increasing linear operations with integer coefficients are supported.)"


class _Derived(Dim):
    """A size that is ``factor * root + offset``."""

    def __init__(self, root: Dim, factor: int, offset: int):
        self.root, self.factor, self.offset = root, factor, offset
        product = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        self.__name__ = product + (f" + {offset}" if offset > 0 else f" - {-offset}" if offset else "")

    @property
    def min(self) -> int:  # type: ignore[override]
        """The lower bound."""
        found = self.factor * self.root.min + self.offset
        if found < 0:
            raise AssertionError(
                f"Expected derived min value of {self.__name__} to be >= 0. Please specify an appropriate min value "
                f"for {self.root.__name__} (currently {self.root.min})."
            )
        return found

    @property
    def max(self) -> int | None:  # type: ignore[override]
        """The upper bound, or None."""
        return None if self.root.max is None else self.factor * self.root.max + self.offset

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several ``Dim`` of one range."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class Fixed(Exception):
    """Raised where a size cannot be dynamic, with the reason as its text."""


class Place(NamedTuple):
    """An occurrence of a dynamic size: dimension ``dim`` of an input has the size ``factor * value + offset``."""

    input: int
    dim: int
    factor: int = 1
    offset: int = 0


class Size(NamedTuple):
    """A dynamic size of an input, as its node describes it.

    Attributes:
        name: its name.
        least, most: its bounds, or None.
        root, factor, offset: the name of the size that it follows from, and how.
    """

    name: str
    least: int
    most: int | None
    root: str
    factor: int
    offset: int

    def value_of_root(self, size: int) -> int | None:
        """The value of ``root`` where this size has a value; None if it cannot have it."""
        value, rest = divmod(size - self.offset, self.factor)
        return None if rest or size < self.least or (self.most is not None and size > self.most) else value


@dataclass(eq=False)
class Symbol:
    """A dynamic size.

    Attributes:
        name: its name.
        value: its value in the example.
        places: its occurrences.
        least, most: its bounds, or None.
        needed: whether it is an error if it cannot be dynamic.
    """

    name: str
    value: int
    places: list[Place] = field(default_factory=list)
    least: int = 0
    most: int | None = None
    needed: bool = False


def candidates(inputs: Sequence[Tensor]) -> list[Symbol]:
    """The sizes of example inputs that might be dynamic: equal sizes of the same dimension are assumed to be equal."""
    found: dict[tuple[int, int], Symbol] = {}
    for n, t in enumerate(inputs):
        for d, size in enumerate(t.shape):
            if size:
                found.setdefault((d, size), Symbol(f"s{len(found)}", size)).places.append(Place(n, d))
    return list(found.values())


def declared_symbols(dynamic_shapes: Any, arguments: dict[str, Any]) -> list[Symbol]:
    """The sizes that ``export(dynamic_shapes=...)`` declares as dynamic.

    Args:
        dynamic_shapes: for each argument, in order or by name.
        arguments: the arguments by name.

    Raises:
        TypeError: for an invalid size.
        ValueError: for a wrong number of arguments, or different sizes of the same name.
    """
    said = dynamic_shapes if isinstance(dynamic_shapes, dict) else dict(zip(arguments, dynamic_shapes))
    if len(said) != len(dynamic_shapes) or set(said) - set(arguments):
        raise ValueError(f"dynamic_shapes are for {list(said)}, the arguments are {list(arguments)}")
    found: dict[str, Symbol] = {}
    n = 0
    for name, value in arguments.items():
        leaves, spec = tree_flatten(value)
        each = [said.get(name)] if len(leaves) == 1 and leaves[0] is value else spec.flatten_up_to(said.get(name))
        for t, sizes in zip(leaves, each):
            if isinstance(t, Tensor):
                for d, dim in _pairs(sizes):
                    _add(found, n, d, dim, t)
                n += 1
    return list(found.values())


def _pairs(sizes: Any) -> list[tuple[int, Any]]:
    pairs = sizes.items() if isinstance(sizes, dict) else enumerate(sizes or ())
    return [(d, dim) for d, dim in pairs if dim is not None and dim is not Dim.STATIC]


def _add(found: dict[str, Symbol], n: int, d: int, dim: Any, t: Tensor) -> None:
    if not isinstance(dim, (Dim, _Hint)):
        raise TypeError(f"dynamic_shapes: a size is a Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC or None, got {dim!r}")
    d = d % t.dim()
    if isinstance(dim, _Hint):
        name = f"s{len(found)}"
        found[name] = Symbol(name, t.shape[d], [Place(n, d)], needed=dim is Dim.DYNAMIC)
        return
    name, root = dim.root.__name__, dim.root
    value, rest = divmod(t.shape[d] - dim.offset, dim.factor)
    if rest:
        raise ValueError(f"dynamic_shapes: a size of {t.shape[d]} is not {dim!r} for any integer {name}")
    symbol = found.setdefault(name, Symbol(name, value, [], root.min, root.max, needed=True))
    if symbol.value != value:
        raise ValueError(f"dynamic_shapes: {name} is {symbol.value} in one argument and {value} in another")
    symbol.places.append(Place(n, d, dim.factor, dim.offset))


def bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function by name."""
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {f"arg{n}": a for n, a in enumerate((*args, *kwargs.values()))}


def fits(meta: dict[str, Any], shape: tuple[int, ...], known: dict[str, int]) -> bool:
    """Whether a tensor's shape matches an input.

    Args:
        meta: the metadata of its node.
        known: sizes by the name of the size that they follow from, which are updated.
    """
    example = meta["type"][0]
    if len(shape) != len(example):
        return False
    for d, size in enumerate(shape):
        dynamic: Size | None = meta.get("sizes", {}).get(d)
        value = size if dynamic is None else dynamic.value_of_root(size)
        if value is None or value != (example[d] if dynamic is None else known.setdefault(dynamic.root, value)):
            return False
    return True


def _at(inputs: Sequence[Tensor], steps: dict[Symbol, int]) -> list[Tensor]:
    """Example inputs of other sizes; elements are repeated, so that indices stay in range."""
    made = list(inputs)
    for symbol, step in steps.items():
        for place in symbol.places if step else ():
            size = made[place.input].shape[place.dim]
            taken = names_of("torch")["arange"](size + place.factor * step) % size
            made[place.input] = made[place.input].detach().index_select(place.dim, taken)
    return made


# ---------------------------------------------------------------- comparing graphs


def _alike(graphs: Sequence[Graph]) -> Iterator[tuple[Node, list[list[Any]]]]:
    """For each node of the first graph, the argument leaves in each graph.

    Raises:
        Fixed: if the graphs have different operations.
    """
    rows = [list(g.nodes) for g in graphs]
    if len({len(r) for r in rows}) > 1:
        raise Fixed(f"{min(map(len, rows))} operations at one size, {max(map(len, rows))} at another")
    places = [{node: i for i, node in enumerate(r)} for r in rows]
    for nodes in zip(*rows):
        first = nodes[0]
        # The shapes of results, if recorded, are compared too.
        flat = [tree_flatten((node.args, node.kwargs, _shapes(node))) for node in nodes]
        if any((n.op, n.target) != (first.op, first.target) for n in nodes) or any(f[1] != flat[0][1] for f in flat):
            raise Fixed(f"{first.name} is a different operation at another size")
        for row in zip(*[f[0] for f in flat]):
            shown = [where[x] if isinstance(x, Node) else repr(x) for where, x in zip(places, row)]
            if any(type(x) is not int for x in row) and len(set(shown)) > 1:
                raise Fixed(f"{first.name} is called with {row[0]!r} at one size, {row[-1]!r} at another")
        yield first, [f[0] for f in flat]


def _shapes(node: Node) -> list[list[int]]:
    """The shapes of a node's results."""
    return [list(t.shape) for t in tree_flatten(node.meta.get("val"))[0] if isinstance(t, Tensor)]


Polynomial = dict[frozenset[Symbol], int]


def _fitted(values: dict[frozenset[Symbol], int], symbols: Sequence[Symbol]) -> Polynomial:
    """The polynomial with given values at the example's sizes, with the sizes of each subset increased by one."""
    sets = list(values)
    steps = {s: sum((-1) ** (len(s) - len(t)) * values[t] for t in sets if t <= s) for s in sets}
    found = {
        s: sum(steps[t] * math.prod(-x.value for x in t - s) for t in sets if s <= t) for s in sets
    }  # fmt: skip
    return {s: c for s, c in found.items() if c}


def _value(found: Polynomial, sizes: dict[Symbol, int]) -> int:
    return sum(c * math.prod(sizes[x] for x in s) for s, c in found.items())


# ---------------------------------------------------------------- the graph


def generalized(trace: Callable[[list[Tensor]], Graph], inputs: Sequence[Tensor], symbols: Sequence[Symbol]) -> Graph:
    """The graph of a program with dynamic sizes.

    Args:
        trace: returns the graph for inputs; its first placeholders are weights, the last ones the inputs.
        inputs: the example.
        symbols: the dynamic sizes.

    Returns:
        The graph with numbers computed from the inputs' sizes. If the traces recorded results, ``meta["shapes"]`` has
        the shapes of each node's results, of numbers and nodes.

    Raises:
        Fixed: if they cannot be dynamic.
    """
    together = len(symbols) if len(symbols) <= _ALL_PRODUCTS else 2
    subsets = [frozenset(c) for n in range(together + 1) for c in itertools.combinations(symbols, n)]
    steps = [dict.fromkeys(subset, 1) for subset in subsets] + [dict.fromkeys(symbols, 3)]
    graphs = []
    for step in steps:
        try:
            graphs.append(trace(_at(inputs, step)))
        except Exception as error:
            if not step:
                raise
            sizes = ", ".join(f"{s.name} = {s.value + n}" for s, n in step.items())
            raise Fixed(f"at {sizes}: {error}") from error
    check = {s: s.value + 3 for s in symbols}
    formulas: dict[Node, list[Polynomial | None]] = {}
    for node, others in _alike(graphs):
        found: list[Polynomial | None] = []
        for column in zip(*others):
            changed = type(column[0]) is int and len(set(column)) > 1
            found.append(_fitted(dict(zip(subsets, column)), symbols) if changed else None)
            polynomial = found[-1]
            if polynomial is not None and _value(polynomial, check) != column[-1]:
                raise Fixed(f"{node.name} has {list(column)}, which is not a polynomial of the sizes")
        formulas[node] = found
    return _with_formulas(graphs[0], formulas, symbols, len(inputs))


def _with_formulas(
    graph: Graph, formulas: dict[Node, list[Polynomial | None]], symbols: Sequence[Symbol], inputs: int
) -> Graph:
    """The graph with numbers computed from the inputs' sizes."""
    made = Graph()
    copied: dict[Node, Node] = {}
    writer = _Writer(made)
    takes = graph.find_nodes(op="placeholder")
    given = takes[len(takes) - inputs :]
    for node in takes:
        copied[node] = made.placeholder(node.name)
    writer.note(symbols, [copied[n] for n in given])
    for node in graph.nodes:
        leaves, spec = tree_flatten((node.args, node.kwargs, _shapes(node)))
        numbers = [None if p is None else writer.number(p) for p in formulas[node]]
        parts = [n if n is not None else copied[x] if isinstance(x, Node) else x for n, x in zip(numbers, leaves)]
        args, kwargs, shapes = tree_unflatten(parts, spec)
        if node.op != "placeholder":
            copied[node] = made.create_node(node.op, node.target, args, kwargs, node.name)
        copied[node].meta.update({**node.meta, **copied[node].meta})
        if shapes:
            copied[node].meta["shapes"] = shapes
    return made


def _size(symbol: Symbol, place: Place) -> Size:
    """The description of one occurrence of a dynamic size."""
    factor, offset = place.factor, place.offset
    name = symbol.name if (factor, offset) == (1, 0) else f"{factor}*{symbol.name} + {offset}"
    most = None if symbol.most is None else factor * symbol.most + offset
    return Size(name, factor * symbol.least + offset, most, symbol.name, factor, offset)


class _Writer:
    """Inserts formulas of sizes into a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._inputs: Sequence[Node] = ()
        self._known: dict[Any, Any] = {}

    def note(self, symbols: Sequence[Symbol], inputs: Sequence[Node]) -> None:
        """Records at each input which of its sizes are dynamic."""
        self._inputs = inputs
        for s in symbols:
            for place in s.places:
                meta = inputs[place.input].meta
                meta["sizes"] = {**meta.get("sizes", {}), place.dim: _size(s, place)}

    def number(self, polynomial: Polynomial) -> Any:
        """The node of a polynomial's value."""
        terms = [self._product(s, c) for s, c in sorted(polynomial.items(), key=lambda x: -len(x[0]))]
        total = terms[0]
        for term in terms[1:]:
            total = self._apply(operator.add, total, term)
        return total

    def _product(self, symbols: frozenset[Symbol], factor: int) -> Any:
        factors = [self._of(s) for s in sorted(symbols, key=lambda s: s.name)]
        if not factors:
            return factor
        found: Any = factors[0]
        for size in factors[1:]:
            found = self._apply(operator.mul, found, size)
        return found if factor == 1 else self._apply(operator.mul, found, factor)

    def _of(self, symbol: Symbol) -> Any:
        """The node of a size's value."""
        place = min(symbol.places, key=lambda place: (place.factor, abs(place.offset)))
        size = aten.packet("sym_size").overload("int")
        found = self._apply(size, self._inputs[place.input], place.dim)
        if place.offset:
            found = self._apply(operator.sub, found, place.offset)
        return found if place.factor == 1 else self._apply(operator.floordiv, found, place.factor)

    def _apply(self, function: Any, a: Any, b: Any) -> Any:
        key = function, a, b
        if key not in self._known:
            self._known[key] = self.graph.call_function(function, (a, b))
        return self._known[key]
