"""Building an ONNX graph: names of values, constants, nodes."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype


def as_array(t: Tensor) -> np.ndarray:
    """A tensor's values."""
    found: np.ndarray = t.detach().numpy(force=True)
    return found


def element_type(onnx: Any, dtype: Dtype) -> int:
    """ONNX's number of a dtype."""
    name = repr(dtype).removeprefix("torch.")
    shown = {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, name.upper())
    number: int = getattr(onnx.TensorProto, shown)
    return number


@dataclass(frozen=True)
class Size:
    """A size computed from the sizes of inputs.

    Attributes:
        name: the name of a 1-element int64 vector in the file.
        example: its value in the trace.
    """

    name: str
    example: int


def fixed(size: Any, what: str) -> int:
    """A size that must be the same in every call.

    Args:
        what: a description of the size.

    Raises:
        NotImplementedError: if it is dynamic.
    """
    if isinstance(size, Size):
        raise NotImplementedError(f"{what} may change ({size.example} in the example), which is not supported")
    return int(size)


_INTEGERS: dict[str, Any] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.floordiv,
}  # fmt: skip


class Builder:
    """Nodes and constants of a graph; values are their names.

    Args:
        onnx: the package.
        opset: the version of ONNX's operators.
        target: the version that the file is converted to afterwards.

    Attributes:
        shapes: the shapes of the results of each node of the trace, as numbers and ``Size`` objects.
    """

    def __init__(self, onnx: Any, opset: int, target: int):
        self.onnx = onnx
        self.opset = opset
        self.target = target
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.shapes: dict[Any, list[list[Any]]] = {}
        self._count = 0
        #: The names of results, by those of their values before.
        self._results: dict[str, str] = {}
        self._constants: dict[tuple[Any, ...], str] = {}

    def name(self, stem: str) -> str:
        """An unused name."""
        self._count += 1
        return f"{stem}_{self._count}"

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node.

        Args:
            kind: ONNX's operator.
            inputs: names, empty for omitted inputs.
            outputs: the number of outputs.

        Returns:
            Its result's name, or a list of names.
        """
        results = [self.name(kind.lower()) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), results, name=self.name(kind), **given))
        return results[0] if outputs == 1 else results

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant, shared by equal values."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.name("constant")
            self.initializers[name] = self.onnx.numpy_helper.from_array(array, name)
        return self._constants[key]

    def ints(self, *values: int | Size) -> str:
        """A vector of int64."""
        if not any(isinstance(v, Size) for v in values):
            return self.constant(list(values), np.int64)
        parts = [v.name if isinstance(v, Size) else self.constant([v], np.int64) for v in values]
        return parts[0] if len(parts) == 1 else str(self.op("Concat", *parts, axis=0))

    def integer(self, value: int | Size) -> str:
        """One int64."""
        if isinstance(value, Size):
            return str(self.op("Squeeze", value.name, self.ints(0)))
        return self.constant(value, np.int64)

    def combine(self, kind: str, first: int | Size, second: int | Size) -> Any:
        """The sum ("Add"), difference ("Sub"), product ("Mul") or quotient ("Div") of two numbers."""
        found = _INTEGERS[kind](*[v.example if isinstance(v, Size) else v for v in (first, second)])
        if not isinstance(first, Size) and not isinstance(second, Size):
            return found
        return Size(self.op(kind, self.ints(first), self.ints(second)), found)

    def product(self, values: Iterable[int | Size]) -> Any:
        """The product of numbers."""
        return functools.reduce(functools.partial(self.combine, "Mul"), values, 1)

    def split(self, name: str, sizes: Sequence[int | Size], dim: int) -> list[str]:
        """The parts of a value. ``onnx`` cannot convert ``Split`` to versions before 18."""
        if self.target >= 18:
            found = self.op("Split", name, self.ints(*sizes), outputs=len(sizes), axis=dim)
            return [found] if len(sizes) == 1 else found
        ends = list(itertools.accumulate(sizes, functools.partial(self.combine, "Add")))
        return [
            self.op("Slice", name, self.ints(start), self.ints(end), self.ints(dim))
            for start, end in zip([0, *ends], ends)
        ]

    def result(self, value: str, name: str) -> None:
        """Gives a value, as a result of the graph, a name."""
        made = any(value in node.output for node in self.nodes)
        if value in self._results or not made:  # another result, an input or a parameter
            taken = self._results.get(value, value)
            self.nodes.append(self.onnx.helper.make_node("Identity", [taken], [name]))
            return
        self._results[value] = name
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [name if known == value else known for known in names]

    def like(self, value: Any, t: Tensor) -> str:
        """A number in a tensor's dtype."""
        if isinstance(value, Size):
            return self.cast(self.integer(value), t.dtype)
        return self.constant(value, as_array(t.new_zeros(())).dtype)

    def parameter(self, name: str, t: Tensor) -> str:
        """A tensor of the model, under its name in the model."""
        self.initializers[name] = self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(as_array(t)).reshape(t.shape), name
        )
        return name

    def cast(self, value: str, dtype: Dtype) -> str:
        """A value cast to a dtype."""
        found: str = self.op("Cast", value, to=element_type(self.onnx, dtype))
        return found
