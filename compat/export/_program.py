"""``ExportedProgram``: a module's graph, what it takes and returns, and its weights."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, tensor_of
from compat._core.transforms.grad_mode import no_grad
from compat.fx._dispatch_trace import Recorder, record
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter
from funcgrad.tools import export as _functions


class InputKind(enum.Enum):
    """What an input of a graph is."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


@dataclass
class InputSpec:
    """One input of a graph: its kind, its name there, and the name of a weight."""

    kind: InputKind
    arg: str
    target: str | None


@dataclass
class OutputSpec:
    """One result of a graph, by the name of its node."""

    arg: str


@dataclass
class ExportGraphSignature:
    """What a graph takes and returns."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is kind and s.target is not None)

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        return self._targets(InputKind.BUFFER)

    @property
    def user_inputs(self) -> tuple[str, ...]:
        return tuple(s.arg for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[str, ...]:
        return tuple(s.arg for s in self.output_specs)


class ExportedProgram:
    """A module as a graph of operators.

    Attributes:
        graph_module: the graph; its weights come first among its inputs, in the signature's order.
        graph_signature: what each input is.
        state_dict: the parameters and buffers.
        constants: tensors that the trace found besides.
        example_inputs: what the module was called with.
    """

    __module__ = "torch.export"

    def __init__(
        self, graph_module: GraphModule, signature: ExportGraphSignature, weights: dict[str, Tensor],
        constants: dict[str, Tensor], in_spec: TreeSpec, out_spec: TreeSpec, example_inputs: Any,
        stablehlo: _functions.Exported | None = None,
    ):  # fmt: skip
        self.graph_module, self.graph_signature = graph_module, signature
        self.state_dict, self.constants = weights, constants
        self.in_spec, self.out_spec, self.example_inputs = in_spec, out_spec, example_inputs
        self._compiled = stablehlo

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.graph_module.graph

    def parameters(self) -> Iterator[Tensor]:
        """The parameters."""
        return (self.state_dict[name] for name in self.graph_signature.parameters)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)

    def weights(self) -> dict[str, Tensor]:
        """What the graph takes before the user's inputs, in order."""
        every = {**self.state_dict, **self.constants}
        return {s.target: every[s.target] for s in self.graph_signature.input_specs if s.target is not None}

    def module(self) -> Module:
        """A module that does what the graph says; its parameters are the program's, and can be trained."""
        return _Unlifted(self)

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """The program in operators of ATen: it is so already."""
        return self

    @property
    def stablehlo(self) -> _functions.Exported:
        """The program compiled: a function of a dictionary of the weights and a list of the user's tensors, which
        returns a list of arrays. ``stablehlo.stablehlo`` is its text, ``stablehlo.serialize()`` its bytes."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> _functions.Exported:
        graph, names = self.graph_module, list(self.weights())

        def program(weights: dict[str, Any], inputs: list[Any]) -> list[Any]:
            with no_grad():
                given = [tensor_of(weights[name]) for name in names] + [tensor_of(x) for x in inputs]
                found = Interpreter(graph).run(*given)
            return [array(t) for t in tree_flatten(found)[0] if isinstance(t, Tensor)]

        weights = {name: array(t.detach()) for name, t in self.weights().items()}
        leaves = [t for t in tree_flatten(self.example_inputs)[0] if isinstance(t, Tensor)]
        return _functions.export(program, weights, [array(t.detach()) for t in leaves])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = self.graph_module.code.strip().replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\n\nGraph signature:\n    {self.graph_signature}\n"


class _Unlifted(Module):
    """What ``ExportedProgram.module`` gives."""

    def __init__(self, program: ExportedProgram):
        super().__init__()
        self.__dict__["_program"] = program
        for name, t in {**program.state_dict, **program.constants}.items():
            holder: Module = self
            *way, last = name.split(".")
            for part in way:
                if part not in holder._modules:
                    holder.add_module(part, Module())
                holder = getattr(holder, part)
            if isinstance(t, Parameter):
                holder.register_parameter(last, t)
            else:
                holder.register_buffer(last, t)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        program: ExportedProgram = self.__dict__["_program"]
        leaves, spec = tree_flatten((args, kwargs))
        if spec != program.in_spec:
            raise ValueError(f"the program takes arguments like {program.in_spec}, got {spec}")
        own = dict(self.named_parameters(remove_duplicate=False)) | dict(self.named_buffers(remove_duplicate=False))
        weights = [own[name] for name in program.weights()]
        inputs = [t for t in leaves if isinstance(t, Tensor)]
        self._check(program, inputs)
        return tree_unflatten(list(program.graph_module(*weights, *inputs)), program.out_spec)

    def _check(self, program: ExportedProgram, inputs: list[Tensor]) -> None:
        expected = program.graph.find_nodes(op="placeholder")[len(program.weights()) :]
        for node, t in zip(expected, inputs):
            shape, dtype = node.meta["type"]
            if (tuple(t.shape), t.dtype) != (shape, dtype):
                raise AssertionError(
                    f"Guard failed: input {node.name} is {dtype} of shape {list(shape)} in the program, "
                    f"got {t.dtype} of shape {list(t.shape)}"
                )


def _input_names(module: Module, args: Any, kwargs: Any) -> list[str]:
    """A name for each leaf, after the parameters of ``forward``."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    names: list[str] = []
    for n, value in enumerate((*args, *kwargs.values())):
        stem = list(bound)[n] if n < len(bound) else f"arg{n}"
        leaves = tree_flatten(value)[0]
        names += [stem] if len(leaves) == 1 else [f"{stem}_{k}" for k in range(len(leaves))]
    return names


def export(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (), **options: Any,
) -> ExportedProgram:  # fmt: skip
    """A module as a graph of what it did to example arguments.

    Args:
        mod: the module; it is called once, as it is: call ``eval()`` before for inference.
        args, kwargs: its arguments. What is no tensor is a constant of the graph, and so is what follows from values.
        dynamic_shapes: not there: sizes are as in the example.
        strict, preserve_module_call_signature: accepted.

    Raises:
        ValueError: for what is no module.
        TypeError: if ``args`` is no tuple.
        NotImplementedError: for sizes that are to change.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if dynamic_shapes:
        raise NotImplementedError("torch.export.export: dynamic_shapes are not there: sizes are as in the example")
    kwargs = kwargs or {}
    _, in_spec = tree_flatten((args, kwargs))
    with no_grad():  # so that each operation is seen as itself
        recorder, found = record(mod, args, kwargs, _input_names(mod, args, kwargs), mod)
    _, out_spec = tree_flatten(found)
    graph, specs, copied = _lifted(recorder, mod)
    outputs = [copied.get(n, n) for n in tree_flatten(recorder.graph.output_node().args[0])[0]]
    graph.output(tuple(outputs))
    signature = ExportGraphSignature(specs, [OutputSpec(getattr(n, "name", repr(n))) for n in outputs])
    owned = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
    weights = {s.target: recorder.constants[s.target] for s in specs if s.target is not None}
    state = {name: owned[name] for name in weights if name in owned}
    constants = {name: t for name, t in weights.items() if name not in owned}
    return ExportedProgram(GraphModule({}, graph), signature, state, constants, in_spec, out_spec, (args, kwargs))


def _lifted(recorder: Recorder, mod: Module) -> tuple[Graph, list[InputSpec], dict[Node, Node]]:
    """The graph with weights as its first inputs, what its inputs are, and its nodes by those of the trace."""
    graph = Graph()
    specs: list[InputSpec] = []
    copied: dict[Node, Node] = {}
    parameters = {name for name, _ in mod.named_parameters()}
    buffers = {name for name, _ in mod.named_buffers()}
    for node in recorder.graph.find_nodes(op="get_attr"):
        name = str(node.target)
        kind = (
            InputKind.PARAMETER if name in parameters else InputKind.BUFFER if name in buffers
            else InputKind.CONSTANT_TENSOR
        )  # fmt: skip
        stem = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b"}.get(kind, "c")
        copied[node] = made = graph.placeholder(f"{stem}_{name.replace('.', '_')}")
        made.meta["type"] = tuple(node.meta["val"].shape), node.meta["val"].dtype
        specs.append(InputSpec(kind, made.name, name))
    for node in recorder.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            if isinstance(value, Tensor):
                copied[node] = graph.placeholder(node.name)
                copied[node].meta["type"] = tuple(value.shape), value.dtype
                specs.append(InputSpec(InputKind.USER_INPUT, copied[node].name, None))
        elif node.op == "call_function":
            copied[node] = graph.node_copy(node, lambda n: copied[n])
            if getattr(node.target, "_opname", "") == "rnn_layer":  # whose last argument is to keep what backward needs
                copied[node].args = (*copied[node].args[:-1], True)
            copied[node].meta.pop("val", None)
    return graph, specs, copied
