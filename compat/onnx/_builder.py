"""One ONNX graph while it is made: values by name, constants, nodes."""

from __future__ import annotations

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


class Builder:
    """Nodes and constants of a graph; values are their names.

    Args:
        onnx: the package.
        opset: the version of ONNX's operators.
    """

    def __init__(self, onnx: Any, opset: int):
        self.onnx = onnx
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self._count = 0
        self._constants: dict[tuple[Any, ...], str] = {}

    def name(self, stem: str) -> str:
        """A name that no value has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node.

        Args:
            kind: ONNX's operator.
            inputs: names, empty for one that is left out.
            outputs: how many it has.

        Returns:
            Its result's name, or a list of names.
        """
        results = [self.name(kind.lower()) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), results, name=self.name(kind), **given))
        return results[0] if outputs == 1 else results

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant, once for each value."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.name("constant")
            self.initializers[name] = self.onnx.numpy_helper.from_array(array, name)
        return self._constants[key]

    def ints(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.constant(list(values), np.int64)

    def like(self, value: Any, t: Tensor) -> str:
        """A number as a constant of a tensor's dtype."""
        return self.constant(value, as_array(t.new_zeros(())).dtype)

    def parameter(self, name: str, t: Tensor) -> str:
        """A tensor of the model under its own name."""
        self.initializers[name] = self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(as_array(t)).reshape(t.shape), name
        )
        return name

    def cast(self, value: str, dtype: Dtype) -> str:
        """A value in a dtype."""
        found: str = self.op("Cast", value, to=element_type(self.onnx, dtype))
        return found
