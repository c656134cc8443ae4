"""``ONNXProgram``: a model as ONNX, which can be called and saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.onnx._builder import as_array

__all__ = ["ONNXProgram"]


class ONNXProgram:
    """A model as ONNX.

    Attributes:
        model_proto: the model as an object of the package ``onnx``.
        exported_program: the program of ``torch.export.export`` that it was made from; None for a module.
    """

    __module__ = "torch.onnx"

    def __init__(self, model_proto: Any, exported_program: Any = None):
        self.model_proto = model_proto
        self.exported_program = exported_program
        self._session: Any = None

    @property
    def model(self) -> Any:
        return self.model_proto

    def optimize(self) -> None:
        """Does nothing: constants are computed by the export, and onnxruntime fuses nodes when it loads the model."""

    def save(
        self, destination: Any, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Writes the model to a file.

        Args:
            destination: a path, or a file opened for writing bytes.
            include_initializers: whether the file contains the weights.
            keep_initializers_as_inputs: whether the weights are inputs, which a call may replace.
            external_data: whether the weights are in a second file, named after the first one with ".data" at its end.

        Raises:
            ValueError: for external data of a file object.
        """
        model = self.model_proto
        if not include_initializers or keep_initializers_as_inputs:
            model = _with_inputs(model, include_initializers)
        if external_data:
            if hasattr(destination, "write"):
                raise ValueError("external_data: the weights need a path, got a file object")
            _save_in_two(model, os.fspath(destination))
            return
        data = model.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        with open(destination, "wb") as file:
            file.write(data)

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replaces weights by others.

        Args:
            state_dict: by name; names that the model does not have are ignored.
        """
        import onnx.numpy_helper

        for weight in self.model_proto.graph.initializer:
            if weight.name in state_dict:
                weight.CopyFrom(onnx.numpy_helper.from_array(as_array(state_dict[weight.name]), weight.name))
        self.release()

    def initialize_inference_session(self, initializer: Callable[..., Any] | None = None) -> None:
        """Makes the session of onnxruntime that calls use.

        Args:
            initializer: a function from the model, as bytes, to a session; by default ``onnxruntime.InferenceSession``.
        """
        if initializer is None:
            import onnxruntime

            initializer = onnxruntime.InferenceSession
        self._session = initializer(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Releases the session; the next call makes another one."""
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model with onnxruntime; returns tensors.

        Raises:
            ModuleNotFoundError: without the package ``onnxruntime``.
        """
        if self._session is None:
            self.initialize_inference_session()
        return _tensors(self._session.run(None, self._inputs(args, kwargs)))

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model with the reference implementation of the package ``onnx``; returns tensors."""
        from onnx.reference import ReferenceEvaluator

        return _tensors(ReferenceEvaluator(self.model_proto).run(None, self._inputs(args, kwargs)))

    def _inputs(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The tensors of a call's arguments, as arrays by name."""
        given = [as_array(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        return {i.name: value for i, value in zip(self.model_proto.graph.input, given)}


def _tensors(arrays: Any) -> tuple[Any, ...]:
    return tuple(names_of("torch")["from_numpy"](value) for value in arrays)


def _with_inputs(model: Any, values: bool) -> Any:
    """A model whose weights are inputs.

    Args:
        values: whether the weights have values, too.
    """
    import onnx.helper

    made = onnx.ModelProto()
    made.CopyFrom(model)
    for weight in model.graph.initializer:
        made.graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims)))
    if not values:
        del made.graph.initializer[:]
    return made


def _save_in_two(model: Any, path: str) -> None:
    """Writes a model, and its weights into a second file."""
    import onnx

    made = onnx.ModelProto()
    made.CopyFrom(model)
    data = os.path.basename(path) + ".data"
    if os.path.exists(f"{path}.data"):
        os.remove(f"{path}.data")  # onnx would append to it
    onnx.save_model(made, path, save_as_external_data=True, location=data, size_threshold=0)
