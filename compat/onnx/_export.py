"""``export``: traces a model into an ONNX file."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.pytree.trees import tree_leaves, tree_map
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat.export._program import ExportedProgram, Trace
from compat.export._sizes import Dim, Fixed, Place, Symbol, bound, declared_symbols, generalized
from compat.fx.graph import Graph
from compat.fx.node import Node
from compat.nn.modules.module import Module
from compat.onnx._builder import Builder, element_type
from compat.onnx._graph_conversion import Writing
from compat.onnx._program import ONNXProgram
from compat.onnx.errors import OnnxExporterError, OnnxExporterWarning
from funcgrad.core.errors import explained

#: The opset version that the table is written for.
OPSET = 18
_exporting = 0


def is_in_onnx_export() -> bool:
    """Whether a model is being exported in this process."""
    return _exporting > 0


@contextmanager
def _evaluating(model: Any, training: Any) -> Iterator[None]:
    """Context in which the model is in evaluation mode, depending on ``training``."""
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


class _Function(Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.__dict__["forward"] = function


def export(
    model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None, verbose: Any = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, dynamic_axes: Any = None, dynamic_shapes: Any = None,
    export_params: bool = True, keep_initializers_as_inputs: bool = False, do_constant_folding: bool = True,
    training: Any = None, custom_translation_table: dict[Any, Callable[..., Any]] | None = None, **options: Any,
) -> ONNXProgram | None:  # fmt: skip
    """Converts a model to ONNX.

    Args:
        model: a module or function; it is called once, and at several sizes if some are dynamic. Or an exported program
            of ``torch.export.export``, with arguments and dynamic sizes.
        args: the arguments, a tensor or a tuple, which may end with a dictionary of keyword arguments.
        f: the file, a path or a binary file object; None for no file.
        input_names, output_names: the names of the inputs, by default those of ``forward``'s parameters, and of the
            results, by default "output_0" and so on.
        opset_version: the opset version, 18 by default. The file is converted to an earlier one; a model without a form
            in it stays in version 18, with a warning.
        training: the mode, "EVAL" by default, for inference.
        custom_translation_table: by operator, a function of a builder, the node and the node's arguments that adds
            nodes by ``builder.op`` and returns the result's name.
        dynamic_axes: the dynamic sizes: by name of an input or result, a dictionary from dimensions to names, or a list
            of dimensions.
        dynamic_shapes: the dynamic sizes by argument, as for ``torch.export.export``, or with names in place of
            ``Dim``.
        dynamo, verbose, export_params, do_constant_folding, keep_initializers_as_inputs: ignored.

    Returns:
        The program, which can be called and saved; the results of its model are flat.

    Raises:
        OnnxExporterError: for an operator without a translation, with its module in the message, and for a dynamic size
            that the model does not allow to change.
        ModuleNotFoundError: without the package ``onnx``.
    """
    onnx = _package()
    program = model if isinstance(model, ExportedProgram) else None
    if program is not None:
        args, kwargs = program.example_inputs
        input_names = input_names or [str(name) for name in program.graph_signature.user_inputs]
        model = program.module()
    given = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    named = dict(kwargs or {})
    if program is None and given and isinstance(given[-1], dict) and not named:
        *rest, last = given
        given, named = tuple(rest), last
    module = model if isinstance(model, Module) else _Function(model)
    with _evaluating(module if program is None else None, training):  # a program has the mode that it was exported in
        trace = Trace(module, given, named, input_names or (), keep=True)
        _check_names(trace, dynamic_axes, output_names)
        symbols = _symbols(trace, dynamic_axes, dynamic_shapes) if program is None else _known(trace, program)
        graph = _generalized(trace, symbols) if symbols else trace.graph
    builder = Builder(onnx, max(opset_version or OPSET, OPSET), opset_version or OPSET)
    writing = Writing(trace, graph, builder, custom_translation_table or {})
    writing.run()
    made = ONNXProgram(_model(writing, output_names, dynamic_axes or {}, opset_version or OPSET), program)
    if f is not None:
        made.save(f)
    return made


# ---------------------------------------------------------------- dynamic sizes


def _user_inputs(trace: Trace, graph: Graph) -> list[Node]:
    takes = graph.find_nodes(op="placeholder")
    return list(takes[len(takes) - len(trace.inputs) :])


def _check_names(trace: Trace, axes: Any, output_names: Sequence[str] | None) -> None:
    known = {*trace.names, *(output_names or ())}
    for name in sorted(set(axes or ()) - known):
        text = f"dynamic_axes: {name!r} is not a name of an input or result, which are {sorted(known)}; it is ignored"
        warnings.warn(text, OnnxExporterWarning, stacklevel=4)


def _named(name: str, axes: Any) -> dict[int, str]:
    """The names of the dynamic sizes of an input or result in ``dynamic_axes``."""
    if isinstance(axes, dict):
        return dict(axes)
    return {d: f"{name}_dynamic_axes_{n + 1}" for n, d in enumerate(axes)}


def _symbols(trace: Trace, axes: Any, shapes: Any) -> list[Symbol]:
    """The dynamic sizes."""
    if shapes:
        shapes = tree_map(lambda x: Dim(x) if isinstance(x, str) else x, shapes)
        return declared_symbols(shapes, bound(trace.mod.forward, trace.args, trace.kwargs))
    found: dict[tuple[str, int], Symbol] = {}
    for n, called in enumerate(trace.names):
        for d, name in _named(called, (axes or {}).get(called, {})).items():
            d, size = d % trace.inputs[n].dim(), trace.inputs[n].shape[d]
            found.setdefault((name, size), Symbol(name, size, needed=True)).places.append(Place(n, d))
    return list(found.values())


def _known(trace: Trace, program: ExportedProgram) -> list[Symbol]:
    """The dynamic sizes of an exported program."""
    found: dict[str, Symbol] = {}
    for n, node in enumerate(_user_inputs(trace, program.graph)):
        for d, size in node.meta.get("sizes", {}).items():
            value = (trace.inputs[n].shape[d] - size.offset) // size.factor
            symbol = found.setdefault(size.root, Symbol(size.root, value, needed=True))
            symbol.places.append(Place(n, d, size.factor, size.offset))
    return list(found.values())


def _generalized(trace: Trace, symbols: list[Symbol]) -> Graph:
    """The graph for any sizes. Sizes with different names may be equal: if the model needs sizes of a dimension to be
    equal that are equal in the example, they are one size."""
    together: dict[tuple[int, int], Symbol] = {}
    for symbol in symbols:
        first = together.setdefault((symbol.places[0].dim, symbol.value), Symbol(symbol.name, symbol.value))
        first.places += symbol.places
    why = Fixed()
    attempts = [symbols, list(together.values())] if len(together) < len(symbols) else [symbols]
    for attempt in attempts:
        try:
            return generalized(trace.again, trace.inputs, attempt)
        except Fixed as error:
            why = error  # of the last attempt
    names = ", ".join(s.name for s in symbols)
    raise OnnxExporterError(f"sizes cannot change ({names}): {why}") from why


# ---------------------------------------------------------------- the file


def _described(onnx: Any, name: str, t: Tensor, sizes: dict[int, str]) -> Any:
    shape = [sizes.get(d, n) for d, n in enumerate(t.shape)]
    return onnx.helper.make_tensor_value_info(name, element_type(onnx, t.dtype), shape)


def _model(writing: Writing, output_names: Sequence[str] | None, axes: Any, opset: int) -> Any:
    """The file's content, checked."""
    builder = writing.builder
    onnx = builder.onnx
    inputs = [
        _described(onnx, name, t, {d: size.name for d, size in node.meta.get("sizes", {}).items()})
        for name, node, t in zip(writing.trace.names, _user_inputs(writing.trace, writing.graph), writing.trace.inputs)
    ]
    results = [n for n in tree_leaves(writing.graph.output_node().args[0]) if isinstance(n, Node)]
    names = [*(output_names or ()), *[f"output_{n}" for n in range(len(output_names or ()), len(results))]]
    outputs = []
    for name, node in zip(names, results):
        builder.result(writing.names[node], name)
        sizes = [*enumerate(node.meta.get("shapes", [()])[0])]
        called = {d: _called(n, f"{name}_dim_{d}") for d, n in sizes if isinstance(n, Node)}
        said = {d: label for d, label in _named(name, axes.get(name, {})).items() if d in called}
        outputs.append(_described(onnx, name, node.meta["val"], called | said))
    used = {name for node in builder.nodes for name in node.input}
    weights = [t for name, t in builder.initializers.items() if name in used]
    graph = onnx.helper.make_graph(builder.nodes, "main_graph", inputs, outputs, weights)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", builder.opset)], producer_name="compat", ir_version=10
    )
    model = _of_version(onnx, model, opset)
    onnx.checker.check_model(model)
    return model


def _called(size: Node, otherwise: str) -> str:
    """The name of a size of a result, that of an equal size of an input if there is one."""
    source, d = size.args[0], size.args[-1]
    if len(size.args) == 2 and isinstance(source, Node) and d in source.meta.get("sizes", {}):
        return str(source.meta["sizes"][d].name)
    return otherwise


#: The versions whose operators differ from those of the next one only in dtypes, optional inputs and attributes, for
#: which ``onnx`` has no conversions: what is valid in such a version has the same meaning in it.
_NARROWER = (11, 12, 13, 14, 17)
#: The operators whose axes are attributes in a version, and inputs in the next one.
_AXES = {
    12: frozenset(("Squeeze", "Unsqueeze", "ReduceSum")),
    17: frozenset((
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSumSquare",
    )),
}  # fmt: skip


def _of_version(onnx: Any, model: Any, opset: int) -> Any:
    """A model converted by ``onnx`` to an earlier version of ONNX's operators, version by version."""
    if opset >= OPSET:
        return model
    converted = model
    try:
        converter = importlib.import_module("onnx.version_converter")
        for version in range(OPSET - 1, opset - 1, -1):
            converted = _one_version_earlier(onnx, converter, converted, version)
    except (RuntimeError, ImportError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        text = f"the model is written in version {OPSET} of ONNX's operators, as it has no form in version {opset}: "
        warnings.warn(text + str(error).strip().splitlines()[-1], OnnxExporterWarning, stacklevel=4)
        return model
    return converted


def _one_version_earlier(onnx: Any, converter: Any, model: Any, version: int) -> Any:
    """A model of the next version in the operators of ``version``."""
    try:
        return converter.convert_version(model, version)
    except RuntimeError:
        if version not in _NARROWER:
            raise
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _as_in_version(onnx, made.graph, version)
    made.opset_import[0].version = version
    onnx.checker.check_model(made, full_check=True)
    return made


def _as_in_version(onnx: Any, graph: Any, version: int) -> None:
    """Makes axes attributes where they are in a version.

    Raises:
        RuntimeError: for axes that are computed, and, before version 13, a softmax over another axis than the last one.
    """
    known = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type in _AXES.get(version, ()) and len(node.input) > 1:
            axes = known.get(node.input.pop())
            if axes is None:
                raise RuntimeError(f"the axes of {node.op_type} are computed")
            node.attribute.append(onnx.helper.make_attribute("axes", onnx.numpy_helper.to_array(axes).tolist()))
        elif node.op_type in ("Softmax", "LogSoftmax") and version < 13:
            if [a.i for a in node.attribute if a.name == "axis"] != [-1]:
                raise RuntimeError(f"{node.op_type} over another axis than the last one")


__all__ = ["export", "is_in_onnx_export"]
