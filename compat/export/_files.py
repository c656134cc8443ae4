"""Files of exported programs.

A file is a zip archive of ``program.json`` (the graph and its signature), ``weights.npz`` (the weights by name),
``constants.npz`` and ``program.stablehlo``, the compiled program in the format of ``funcgrad.tools.export`` and
``jax.export``: a function of a dictionary of weights and a list of inputs of the example's sizes.
"""

from __future__ import annotations

import io
import json
import math
import operator
import zipfile
from typing import Any

import ml_dtypes
import numpy as np

from compat import ops
from compat._core.dispatch.overloads import OpOverload
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import device
from compat._core.types.memory_format import (
    LAYOUTS,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
)
from compat._higher_order_ops.cond import higher_order_cond
from compat.export._module_calls import ModuleCallEntry, ModuleCallSignature
from compat.export._program import ExportedProgram
from compat.export._sizes import Size
from compat.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node
from compat.nn.parameter import Parameter
from funcgrad.tools import export as _functions

_VERSION = 4
_FORMATS: dict[str, Any] = {
    **LAYOUTS, **{str(f).removeprefix("torch."): f for f in (
        contiguous_format, preserve_format, channels_last, channels_last_3d)},
}  # fmt: skip

# ---------------------------------------------------------------- arguments of nodes


def _encode(x: Any) -> Any:
    """An argument as JSON: a non-primitive value is a list of a tag and its parts."""
    if isinstance(x, bool | int | str | None):
        return x
    if isinstance(x, float):
        return x if math.isfinite(x) else ["float", repr(x)]
    if isinstance(x, Node):
        return ["node", x.name]
    if isinstance(x, tuple | list):
        return [type(x).__name__ if type(x) in (tuple, list) else "tuple", *map(_encode, x)]
    if isinstance(x, dict):
        return ["dict", *[[_encode(k), _encode(v)] for k, v in x.items()]]
    for kind, word in ((dtypes.dtype, "dtype"), (memory_format, "format"), (layout, "format"), (device, "device")):
        if isinstance(x, kind):
            return [word, str(x).removeprefix("torch.")]
    raise TypeError(f"torch.export.save: {x!r} of type {type(x).__name__} cannot be written into a file")


def _decode(x: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(x, list):
        return x
    word, *rest = x
    if word == "node":
        return nodes[rest[0]]
    if word in ("tuple", "list"):
        parts = [_decode(part, nodes) for part in rest]
        return tuple(parts) if word == "tuple" else parts
    if word == "dict":
        return {_decode(k, nodes): _decode(v, nodes) for k, v in rest}
    kinds: dict[str, Any] = {
        "float": float,
        "dtype": dtypes.NAMES.__getitem__,
        "format": _FORMATS.__getitem__,
        "device": device,
    }
    return kinds[word](rest[0])


def _target(node: Node) -> str:
    if node.target in (operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv):
        return str(node.target.__name__)
    if isinstance(node.target, OpOverload):
        return str(node.target)
    if node.target is higher_order_cond:
        return "higher_order.cond.default"
    raise TypeError(f"torch.export.save: {node.target!r} is not an operator")


def _operator(name: str) -> Any:
    if "." not in name:
        return getattr(operator, name)
    library, packet, overload = name.split(".", 2)
    if library == "higher_order":
        return higher_order_cond
    found = getattr(ops, library)
    return getattr(found, packet).overload(overload) if library == "aten" else getattr(getattr(found, packet), overload)


def _structure(spec: TreeSpec) -> Any:
    """A pytree structure as JSON, with numbered leaves."""
    return _encode(tree_unflatten(list(range(spec.num_leaves)), spec))


def _spec(structure: Any) -> TreeSpec:
    found: TreeSpec = tree_flatten(_decode(structure, {}))[1]
    return found


# ---------------------------------------------------------------- arrays


def _arrays(tensors: dict[str, Tensor]) -> bytes:
    file = io.BytesIO()
    # Dtypes that NumPy's files do not support are stored as bits.
    given = {name: t.detach().numpy(force=True) for name, t in tensors.items()}
    np.savez(file, **{n: a.view(np.uint16) if a.dtype == ml_dtypes.bfloat16 else a for n, a in given.items()})
    return file.getvalue()


def _tensors(data: bytes, kinds: dict[str, str]) -> dict[str, Tensor]:
    found = {}
    with np.load(io.BytesIO(data)) as arrays:
        for name in arrays.files:
            given = arrays[name].view(ml_dtypes.bfloat16) if kinds[name] == "bfloat16" else arrays[name]
            found[name] = names_of("torch")["tensor"](given)
    return found


# ---------------------------------------------------------------- files


def save(ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, **options: Any) -> None:
    """Saves a program.

    Args:
        ep: the program.
        f: a path, or a file open for writing bytes.
        extra_files: additional files of the archive, by name.

    Raises:
        TypeError: for an argument that is not a program, and a program with containers other than tuples, lists and
            dictionaries.
        ImportError: without the package ``flatbuffers``.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}'")
    every = {**ep.state_dict, **ep.constants}
    program = {
        "version": _VERSION,
        "nodes": _rows(ep.graph_module),
        "inputs": [[s.kind.name, s.arg.name, s.target, s.persistent] for s in ep.graph_signature.input_specs],
        "outputs": [[s.arg.name, _encode(getattr(s.arg, "value", None))] for s in ep.graph_signature.output_specs],
        "dtypes": {name: str(t.dtype).removeprefix("torch.") for name, t in every.items()},
        "in": _structure(ep.in_spec),
        "out": _structure(ep.out_spec),
        "calls": [_written_call(entry) for entry in ep.module_call_graph],
    }
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", json.dumps(program))
        archive.writestr("weights.npz", _arrays(ep.state_dict))
        archive.writestr("constants.npz", _arrays(ep.constants))
        archive.writestr("program.stablehlo", ep.stablehlo.serialize())
        for name, content in (extra_files or {}).items():
            archive.writestr(f"extra/{name}", content)


def _rows(module: GraphModule) -> list[Any]:
    """The nodes of a graph; a graph that it refers to, a branch of ``torch.cond``, is within its node."""
    rows = []
    for n in module.graph.nodes:
        target = _target(n) if n.op == "call_function" else str(n.target)
        row = [n.op, n.name, target, _encode(n.args), _encode(n.kwargs)]
        if n.op == "placeholder":
            row.append(_encode((n.meta.get("type", ((), None)), _sizes(n))))
        elif n.op == "get_attr":
            row.append(_rows(getattr(module, target)))
        rows.append(row)
    return rows


def _written_call(entry: ModuleCallEntry) -> list[Any]:
    s = entry.signature
    if s is None:
        return [entry.fqn]
    leaves = [[[arg.name, _encode(getattr(arg, "value", None))] for arg in args] for args in (s.inputs, s.outputs)]
    return [entry.fqn, *leaves, _structure(s.in_spec), _structure(s.out_spec), s.forward_arg_names]


def _read_call(fqn: str, *parts: Any) -> ModuleCallEntry:
    if not parts:
        return ModuleCallEntry(fqn)
    inputs, outputs, in_structure, out_structure, names = parts
    leaves = [[_argument(name, value) for name, value in args] for args in (inputs, outputs)]
    return ModuleCallEntry(
        fqn, ModuleCallSignature(leaves[0], leaves[1], _spec(in_structure), _spec(out_structure), names)
    )


def _sizes(node: Node) -> dict[int, tuple[Any, ...]]:
    """The dynamic sizes of an input."""
    return {d: tuple(size) for d, size in node.meta.get("sizes", {}).items()}


def load(f: Any, *, extra_files: dict[str, Any] | None = None, **options: Any) -> ExportedProgram:
    """Loads a program from a file of ``save``.

    Args:
        f: a path, or a file open for reading bytes.
        extra_files: names of additional files, whose contents are written into the dictionary.

    Raises:
        RuntimeError: for other files, including PyTorch's ``.pt2``.
    """
    try:
        archive = zipfile.ZipFile(f)
        program = json.loads(archive.read("program.json"))
    except (zipfile.BadZipFile, KeyError) as error:
        raise RuntimeError(
            "torch.export.load: the file was not written by compat's torch.export.save; export the model of a .pt2"
        ) from error
    with archive:
        state = _tensors(archive.read("weights.npz"), program["dtypes"])
        constants = _tensors(archive.read("constants.npz"), program["dtypes"])
        compiled = _functions.load(archive.read("program.stablehlo"))
        for name in extra_files or {}:
            assert extra_files is not None
            extra_files[name] = archive.read(f"extra/{name}").decode()
    inputs = [InputSpec(InputKind[kind], TensorArgument(arg), *rest) for kind, arg, *rest in program["inputs"]]
    signature = ExportGraphSignature(inputs, [_output(name, value) for name, value in program["outputs"]])
    for name in signature.parameters:
        state[name] = Parameter(state[name], requires_grad=state[name].is_floating_point())
    graph_module = _graph_module(program["nodes"])
    in_spec, out_spec = _spec(program["in"]), _spec(program["out"])
    calls = [_read_call(*parts) for parts in program.get("calls", [])]
    return ExportedProgram(graph_module, signature, state, constants, in_spec, out_spec, None, calls, compiled)


def _argument(name: str, value: Any) -> TensorArgument | ConstantArgument:
    return TensorArgument(name) if name else ConstantArgument(name, _decode(value, {}))


def _output(name: str, value: Any) -> OutputSpec:
    return OutputSpec(OutputKind.USER_OUTPUT, _argument(name, value), None)


def _graph_module(rows: list[Any]) -> GraphModule:
    graph = Graph()
    branches: dict[str, GraphModule] = {}
    nodes: dict[str, Node] = {}
    for op, name, target, args, kwargs, *kind in rows:
        if op == "output":
            graph.output(_decode(args, nodes)[0])
            continue
        if op == "placeholder":
            made = graph.placeholder(name)
            (shape, dtype), sizes = _decode(kind[0], nodes)
            made.meta["type"] = tuple(shape), dtype
            made.meta["sizes"] = {d: Size(*size) for d, size in sizes.items()}
        elif op == "get_attr":
            branches[target] = _graph_module(kind[0])
            made = graph.get_attr(target)
        else:
            made = graph.call_function(_operator(target), _decode(args, nodes), _decode(kwargs, nodes))
        nodes[name] = made
    return GraphModule(branches, graph)
