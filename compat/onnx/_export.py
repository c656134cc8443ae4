"""``export``: traces a model into an ONNX file."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat.fx._dispatch_trace import Recorder, place, record, writes
from compat.fx.node import Node, map_aggregate
from compat.nn.modules.module import Module
from compat.onnx import _layers, _pointwise, _shapes, _vision  # which fill the table
from compat.onnx._builder import Builder, element_type
from compat.onnx._table import TABLE, Value
from funcgrad.core.errors import explained

_FILLERS = (_layers, _pointwise, _shapes, _vision)
#: The version of ONNX's operators that the table is written for.
OPSET = 18
_exporting = 0
#: Operators whose results have nothing of their argument but its size and dtype.
_MAKERS = frozenset((
    "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided", "zeros_like", "ones_like", "full_like",
    "empty_like",
))  # fmt: skip


class OnnxExporterError(RuntimeError):
    """A model cannot be written."""

    __module__ = "torch.onnx"


def is_in_onnx_export() -> bool:
    """Whether a model is being exported in this process."""
    return _exporting > 0


class ONNXProgram:
    """A model as ONNX.

    Attributes:
        model_proto: the model as an object of the package ``onnx``.
    """

    __module__ = "torch.onnx"

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto

    @property
    def model(self) -> Any:
        return self.model_proto

    def save(self, destination: Any, **kwargs: Any) -> None:
        """Writes it into a file, given by its path or opened for writing bytes."""
        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        with open(destination, "wb") as file:
            file.write(data)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Runs the model with onnxruntime; returns tensors.

        Raises:
            ModuleNotFoundError: without the package ``onnxruntime``.
        """
        import onnxruntime

        session = onnxruntime.InferenceSession(self.model_proto.SerializeToString())
        given = [t.detach().numpy(force=True) for t in tree_leaves(args) if isinstance(t, Tensor)]
        found = session.run(None, {i.name: value for i, value in zip(session.get_inputs(), given)})
        return tuple(names_of("torch")["from_numpy"](value) for value in found)


@contextmanager
def _evaluating(model: Any, training: Any) -> Iterator[None]:
    """Context in which the model is as for inference, unless ``training`` says otherwise."""
    global _exporting
    modes = [(m, m.training) for m in model.modules()] if isinstance(model, Module) else []
    if modes and getattr(training, "name", "EVAL") != "PRESERVE":
        model.train(getattr(training, "name", "EVAL") == "TRAINING")
    _exporting += 1
    try:
        with no_grad():
            yield
    finally:
        _exporting -= 1
        for module, was in modes:
            module.training = was


def _package() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        message = "torch.onnx.export writes files by the package onnx: pip install onnx"
        raise explained(ModuleNotFoundError(message), "onnx-package") from error
    return onnx


class _Writing:
    """A trace while it is written.

    Args:
        recorder: the trace.
        builder: the file.
        extra: functions for more operators, by ``OpOverload``.
    """

    def __init__(self, recorder: Recorder, builder: Builder, extra: dict[Any, Callable[..., Any]]):
        self.recorder, self.builder, self.extra = recorder, builder, extra
        self.names: dict[Node, Any] = {}
        self.order = {node: n for n, node in enumerate(recorder.graph.nodes)}
        self.constant = self._constants()

    def _constants(self) -> set[Node]:
        """The nodes whose values follow from no argument and no weight: masks and positions that a model makes."""
        found: set[Node] = set()
        for node in self.recorder.graph.nodes:
            made = getattr(node.target, "_opname", "") in _MAKERS or not node.all_input_nodes
            constant = node.op == "get_attr" and str(node.target).startswith("_tensor_constant")
            if constant or (node.op == "call_function" and (made or all(n in found for n in node.all_input_nodes))):
                found.add(node)
        return found

    def _fold(self, node: Node) -> str:
        """A constant node's value.

        Raises:
            OnnxExporterError: if it is written into after it has been used.
        """
        mine: Tensor = node.meta["val"]
        first = min((self.order[user] for user in node.users if user not in self.constant), default=len(self.order))
        for other in self.constant:
            late = self.order[other] > first and isinstance(other.target, OpOverload) and writes(other.target)
            if late and place(other.meta["val"])[0] == place(mine)[0]:
                raise OnnxExporterError(f"{other.target} writes into a constant that has been used before")
        return self.builder.parameter(self.builder.name("made"), mine)

    def run(self) -> None:
        """Writes every node."""
        for node in self.recorder.graph.nodes:
            if node.op == "get_attr" and node in self.constant and all(user in self.constant for user in node.users):
                continue
            if node.op == "get_attr":
                self.names[node] = self.builder.parameter(str(node.target), self.recorder.constants[str(node.target)])
            elif node in self.constant:
                if any(user not in self.constant for user in node.users) and isinstance(node.meta["val"], Tensor):
                    self.names[node] = self._fold(node)
            elif node.op == "call_function":
                self.names[node] = self._call(node)

    def value(self, x: Any) -> Any:
        """An argument as functions of the table take it."""
        return Value(self.names[x], x.meta["val"]) if isinstance(x, Node) else x

    def _call(self, node: Node) -> Any:
        if node.target is operator.getitem:
            return self.names[node.args[0]][node.args[1]]
        target: Any = node.target
        name = f"{target.namespace}::{target._opname}"
        if writes(target):
            name = name.removesuffix("_")
        write = self.extra.get(target) or TABLE.get(name)
        if write is None:
            raise OnnxExporterError(
                f"{target} has no translation to ONNX: pass custom_translation_table={{{target!r}: function}}, or "
                "export a part of the model without it"
            )
        args, kwargs = map_aggregate((node.args, node.kwargs), self.value)
        try:
            found: Any = write(self.builder, node, *args, **kwargs)
        except NotImplementedError as error:
            raise OnnxExporterError(f"{target}: {error}") from error
        if writes(target):
            self._written(node, found)
        return found

    def _written(self, node: Node, result: str) -> None:
        """Replaces nodes written in place by their new values: values in ONNX do not change.

        Raises:
            OnnxExporterError: for one that saw other parts of the tensor and is used later.
        """
        target = node.args[0]
        assert isinstance(target, Node)
        mine: Tensor = target.meta["val"]
        for other in self.recorder.graph.nodes:
            seen = other.meta.get("val")
            if other is node or other not in self.names or not isinstance(seen, Tensor):
                continue
            if place(seen)[0] != place(mine)[0] or not any(self.order[user] > self.order[node] for user in other.users):
                continue
            whole = mine.is_contiguous() and seen.is_contiguous() and mine.numel() == seen.numel()
            if place(seen) == place(mine):
                self.names[other] = result
            elif whole and place(seen)[1] == place(mine)[1]:
                self.names[other] = self.builder.op("Reshape", result, self.builder.ints(*seen.shape))
            else:
                raise OnnxExporterError(
                    f"{node.target} writes into a tensor of which another part ({other.name}) is read later: write the "
                    "model without the in-place operation"
                )


def export(
    model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None, verbose: Any = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, dynamic_axes: Any = None, dynamic_shapes: Any = None,
    export_params: bool = True, keep_initializers_as_inputs: bool = False, do_constant_folding: bool = True,
    training: Any = None, custom_translation_table: dict[Any, Callable[..., Any]] | None = None, **options: Any,
) -> ONNXProgram | None:  # fmt: skip
    """Writes a model as ONNX.

    Args:
        model: a module or function; it is called once.
        args: its arguments, a tensor or a tuple; a dictionary at the end of it is taken by name.
        f: the file, by path or opened for writing bytes; None for none.
        input_names, output_names: of the file's inputs and results.
        opset_version: the requested version of ONNX's operators; exported files need version 18 or newer.
        training: "EVAL" by default, so that dropout and batch normalization are as for inference.
        custom_translation_table: by operator, a function of a builder, the node and the node's arguments that adds
            nodes by ``builder.op`` and returns the result's name.
        dynamic_axes, dynamic_shapes: not there: sizes are as in the example.
        dynamo, verbose, export_params, do_constant_folding, keep_initializers_as_inputs: accepted.

    Returns:
        The program, which has ``save`` and can be called; the results of its model are flat.

    Raises:
        OnnxExporterError: for an operator that has no translation.
        NotImplementedError: for sizes that are to change.
        ModuleNotFoundError: without the package ``onnx``.
    """
    if dynamic_axes or dynamic_shapes:
        raise NotImplementedError(
            "torch.onnx.export: dynamic_axes and dynamic_shapes are not there: sizes are as the example has them"
        )
    onnx = _package()
    given = tuple(args) if isinstance(args, tuple | list) else (args,)
    named = dict(kwargs or {})
    if given and isinstance(given[-1], dict) and not named:
        *rest, last = given
        given, named = tuple(rest), last
    leaves = tree_leaves((given, named))
    names = _names(leaves, input_names)
    with _evaluating(model, training):
        recorder, found = record(model, given, named, names, model if isinstance(model, Module) else None)
    builder = Builder(onnx, max(opset_version or OPSET, OPSET))
    writing = _Writing(recorder, builder, custom_translation_table or {})
    inputs = []
    for node in recorder.graph.find_nodes(op="placeholder"):
        t = node.meta["val"]
        if isinstance(t, Tensor):
            writing.names[node] = node.name
            inputs.append(_described(onnx, node.name, t))
    writing.run()
    program = ONNXProgram(_model(onnx, builder, recorder, writing, inputs, found, output_names))
    if f is not None:
        program.save(os.fspath(f) if isinstance(f, os.PathLike) else f)
    return program


def _names(leaves: Sequence[Any], said: Sequence[str] | None) -> list[str]:
    names = [f"input_{n}" for n in range(len(leaves))]
    tensors = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    if len(tensors) == 1:
        names[tensors[0]] = "input"
    for n, name in zip(tensors, said or ()):
        names[n] = name
    return names


def _described(onnx: Any, name: str, t: Tensor) -> Any:
    return onnx.helper.make_tensor_value_info(name, element_type(onnx, t.dtype), list(t.shape))


def _model(
    onnx: Any, builder: Builder, recorder: Recorder, writing: _Writing, inputs: list[Any], found: Any,
    output_names: Sequence[str] | None,
) -> Any:  # fmt: skip
    """The file's content, checked."""
    results = [n for n in tree_leaves(recorder.graph.output_node().args[0]) if isinstance(n, Node)]
    names = [*(output_names or ()), *[f"output_{n}" for n in range(len(output_names or ()), len(results))]]
    outputs = []
    for name, node in zip(names, results):
        builder.nodes.append(onnx.helper.make_node("Identity", [writing.names[node]], [name]))
        outputs.append(_described(onnx, name, node.meta["val"]))
    graph = onnx.helper.make_graph(builder.nodes, "main_graph", inputs, outputs, list(builder.initializers.values()))
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", builder.opset)], producer_name="compat", ir_version=10
    )
    onnx.checker.check_model(model)
    return model


__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]
