"""Recipes: StableHLO operations that were emitted once and are stored as data, to be emitted for equal equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

try:
    from jaxlib.mlir import ir

    _create = ir.Operation.create
except (ImportError, AttributeError) as missing:
    raise ImportError(
        f"funcgrad emits StableHLO through jaxlib.mlir. In JAX {jax.__version__}, which is installed, a part that it "
        f"needs is not there: {missing}. JAX 0.10 has it."
    ) from missing

# Constants that refer to functions, which have sizes.
_REFERRING = ("stablehlo.custom_call", "stablehlo.composite")


@dataclass(slots=True)
class Step:
    """One operation of a recipe.

    Attributes:
        name, types, attributes: the operation's name, its results' types and its attributes.
        reads: the indices of its operands among the recipe's values.
        original: the operation itself, if it can only be cloned.
        captured: the outside values that the original's regions use, with their indices.
    """

    name: str
    types: Sequence[Any]
    attributes: dict[str, Any]
    reads: Sequence[int]
    original: Any = None
    captured: dict[Any, int] = field(default_factory=dict)

    @classmethod
    def of(cls, operation: Any, places: dict[Any, int]) -> Step:
        """The step for an operation whose values have indices ``places``."""
        types = [r.type for r in operation.results]
        reads = [places[x] for x in operation.operands]
        attributes = None if len(operation.regions) else _attributes(operation)
        if attributes is None:
            return cls(operation.name, types, {}, reads, operation, _captured(operation, places))
        return cls(operation.name, types, attributes, reads)

    def moved(self, move: Callable[[int], int]) -> Step:
        """The same step with other value indices."""
        captured = {value: move(i) for value, i in self.captured.items()}
        reads = [move(i) for i in self.reads]
        return Step(self.name, self.types, self.attributes, reads, self.original, captured)

    def with_types(self, types: Sequence[Any]) -> Step:
        """The same step with other result types."""
        return Step(self.name, types, self.attributes, self.reads, self.original, self.captured)

    def copy(self, values: Sequence[Any], location: Any) -> Any:
        """A clone of the original at the current insertion point, with other values and the step's types."""
        made = self.original.clone()
        made.location = location
        operands = made.operands
        for i, read in enumerate(self.reads):
            operands[i] = values[read]
        if self.captured:
            _recapture(made, {value: values[i] for value, i in self.captured.items()})
        for result, type in zip(made.results, self.types):
            result.set_type(type)
        return made


@dataclass(slots=True)
class Recipe:
    """The operations that an equation was lowered to, to be emitted again for equal equations.

    Its values, indexed in this order, are the equation's operands, the outside values, and the results of its steps.

    Attributes:
        steps: the operations.
        outs: the indices of the equation's results.
        outside: values of the enclosing function that the steps read besides the operands (the platform index, in a
            multi-platform module).
        owner: the function that contains the steps' originals; it must live as long as they are cloned.
    """

    steps: Sequence[Step]
    outs: Sequence[int]
    outside: Sequence[Any]
    owner: Any

    @classmethod
    def of(cls, function: Any) -> Recipe:
        """The recipe for a function's body."""
        block = function.regions[0].blocks[0]
        *operations, end = [o.operation for o in block.operations]
        inside = {*block.arguments, *[r for o in operations for r in o.results]}
        outside = list(dict.fromkeys(x for o in operations for x in o.operands if x not in inside))
        places = {value: i for i, value in enumerate([*block.arguments, *outside])}
        steps = []
        for operation in operations:
            steps.append(Step.of(operation, places))
            for result in operation.results:
                places[result] = len(places)
        return cls(steps, [places[x] for x in end.operands], outside, function)

    def emit(self, operands: Sequence[Any], location: Any) -> list[Any]:
        """Emits the operations at the current insertion point; returns the equation's results."""
        values = [*operands, *self.outside]
        for step in self.steps:
            if step.original is None:
                made = _create(step.name, step.types, [values[i] for i in step.reads], step.attributes, loc=location)
            else:
                made = step.copy(values, location)
            values += made.results
        return [values[i] for i in self.outs]

    def has_sizes_in_types_only(self) -> bool:
        """Whether it is one operation and its scalar constants, so that sizes occur only in result types."""
        if not self.steps:
            return False
        *constants, last = self.steps
        scalar = all(not c.reads and len(c.types) == 1 and not c.types[0].shape for c in constants)
        refers = last.captured or last.name in _REFERRING or not last.name.startswith(("stablehlo.", "chlo."))
        first = max([*last.reads, *self.outs]) + 1 - len(last.types)
        return scalar and not refers and not self.outside and self.outs == list(range(first, first + len(last.types)))

    def resized(self, types: Sequence[Any]) -> Recipe:
        """The same recipe with other result types."""
        *constants, last = self.steps
        return Recipe([*constants, last.with_types(types)], self.outs, self.outside, self.owner)

    def after(self, spreads: dict[int, Step], count: int) -> Recipe:
        """The same recipe on ``count`` operands, some of them broadcast first."""
        before = count + len(self.outside)
        places = list(range(before))
        for new, old in enumerate(spreads):
            places[old] = before + new

        def move(place: int) -> int:
            return places[place] if place < before else place + len(spreads)

        steps = [*spreads.values(), *[s.moved(move) for s in self.steps]]
        return Recipe(steps, [move(i) for i in self.outs], self.outside, self.owner)


def _attributes(operation: Any) -> dict[str, Any] | None:
    """An operation's attributes; None if MLIR's Python bindings cannot represent them (arrays of complex numbers)."""
    try:
        return {name: operation.attributes[name] for name in operation.attributes}
    except TypeError:
        return None


def _inside(operation: Any, visit: Callable[[Any], None]) -> None:
    """Calls ``visit`` on all operations in an operation's regions."""

    def go_on(inner: Any) -> Any:
        visit(inner)
        return ir.WalkResult.ADVANCE

    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner.operation.walk(go_on)


def _captured(operation: Any, places: dict[Any, int]) -> dict[Any, int]:
    """The values in ``places`` that operations in an operation's regions use."""
    found: dict[Any, int] = {}
    _inside(operation, lambda inner: found.update((x, places[x]) for x in inner.operands if x in places))
    return found


def _recapture(operation: Any, values: dict[Any, Any]) -> None:
    """Replaces captured values in the regions of an operation."""

    def visit(inner: Any) -> None:
        operands = inner.operands
        for i, x in enumerate(operands):
            if x in values:
                operands[i] = values[x]

    _inside(operation, visit)
