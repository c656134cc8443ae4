"""``ExportedProgram``: a module's graph, its signature, and its weights."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.random.generator import fork_rng
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, tensor_of
from compat._core.transforms.grad_mode import no_grad
from compat._decomp import core_aten_decompositions
from compat._dynamo.exc import UserError
from compat.export._module_calls import (
    InModules,
    ModuleCallEntry,
    ModuleCallSignature,
    check_paths,
    entries,
    forward_names,
    signature_of,
)
from compat.export._sizes import (
    MOST,
    Fixed,
    Place,
    SizeName,
    Symbol,
    ValueRanges,
    bound,
    candidates,
    declared_symbols,
    fits,
    generalized,
)
from compat.export.dynamic_shapes import AdditionalInputs, ShapesCollection
from compat.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from compat.fx._dispatch_trace import Recorder, record
from compat.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter
from compat.utils._python_dispatch import TorchDispatchMode
from funcgrad.tools import export as _functions


class CallSpec(NamedTuple):
    """The structures of a program's arguments and results."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class ExportedProgram:
    """A module as a graph of operators.

    Attributes:
        graph_module: the graph; weights are its first inputs, in the signature's order.
        graph_signature: the kinds of the inputs.
        state_dict: the parameters and persistent buffers.
        constants: other buffers, and other tensors found by the trace.
        example_inputs: the arguments of the traced call.
        module_call_graph: the module and all modules in it, with the structure of the arguments and results of the
            preserved ones.
    """

    __module__ = "compat.export.exported_program"

    def __init__(
        self, graph_module: GraphModule, signature: ExportGraphSignature, weights: dict[str, Tensor],
        constants: dict[str, Tensor], in_spec: TreeSpec, out_spec: TreeSpec, example_inputs: Any,
        module_call_graph: list[ModuleCallEntry], stablehlo: _functions.Exported | None = None,
    ):  # fmt: skip
        self.graph_module, self.graph_signature = graph_module, signature
        self.state_dict, self.constants = weights, constants
        self.in_spec, self.out_spec, self.example_inputs = in_spec, out_spec, example_inputs
        self.module_call_graph = module_call_graph
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

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (t for _, t in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        every = {**self.state_dict, **self.constants}
        return ((name, every[name]) for name in self.graph_signature.buffers)

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """The constants."""
        return self.constants

    @property
    def call_spec(self) -> CallSpec:
        """The structures of arguments and results."""
        return CallSpec(self.in_spec, self.out_spec)

    @property
    def range_constraints(self) -> dict[str, ValueRanges]:
        """The bounds of the dynamic sizes, by name.

        Example:
            >>> batch = torch.export.Dim("batch", min=2, max=64)
            >>> net, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
            >>> torch.export.export(net, (x,), dynamic_shapes=({0: batch},)).range_constraints
            {batch: VR[2, 64]}
        """
        inputs = self.graph.find_nodes(op="placeholder")
        sizes = [size for node in inputs for size in node.meta.get("sizes", {}).values()]
        return {SizeName(size.name): ValueRanges(size.least, size.most) for size in sizes}

    def weights(self) -> dict[str, Tensor]:
        """The inputs of the graph before the user's, in order."""
        every = {**self.state_dict, **self.constants}
        return {s.target: every[s.target] for s in self.graph_signature.input_specs if s.target is not None}

    def module(self) -> Module:
        """A module that runs the graph; its parameters are the program's, and can be trained."""
        return _Unlifted(self)

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """The program with operators replaced by others, traced again.

        Args:
            decomp_table: by overload, the functions that compute it with others; by default
                ``torch.export.default_decompositions()``.

        Example:
            >>> program = torch.export.export(torch.nn.SiLU(), (torch.ones(2),))
            >>> [str(n.target) for n in program.run_decompositions().graph.find_nodes(op="call_function")]
            ['aten.sigmoid.default', 'aten.mul.Tensor']
        """
        return _decomposed(self, core_aten_decompositions() if decomp_table is None else decomp_table)

    @property
    def stablehlo(self) -> _functions.Exported:
        """The compiled program: a function of a dictionary of weights and a list of the user's tensors that returns a
        list of arrays. ``stablehlo.stablehlo`` is its text, ``stablehlo.serialize()`` its bytes."""
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
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        ranges = self.range_constraints
        return f"ExportedProgram:\n    {code}\n    \nGraph signature: {signature}\nRange constraints: {ranges}\n"

    __repr__ = __str__


class _Unlifted(Module):
    """The module of ``ExportedProgram.module``."""

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
                holder.register_buffer(last, t, persistent=name in program.state_dict)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        program, inputs = self.check_arguments(*args, **kwargs)
        own = dict(self.named_parameters(remove_duplicate=False)) | dict(self.named_buffers(remove_duplicate=False))
        weights = [own[name] for name in program.weights()]
        return tree_unflatten(list(self._run(program.graph_module, *weights, *inputs)), program.out_spec)

    def _run(self, graph_module: GraphModule, *inputs: Tensor) -> Any:
        return graph_module(*inputs)

    @property
    def graph(self) -> Graph:
        """The program's graph."""
        program: ExportedProgram = self.__dict__["_program"]
        return program.graph

    @property
    def code(self) -> str:
        """The program's code."""
        program: ExportedProgram = self.__dict__["_program"]
        return program.graph_module.code

    def train(self, mode: bool = True) -> NoReturn:
        """Not possible: the program is that of the mode in which the module was exported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> NoReturn:
        """Not possible; see ``train``.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Calling eval() is not supported yet.")

    def _get_name(self) -> str:
        return "GraphModule"

    def check_arguments(self, *args: Any, **kwargs: Any) -> tuple[ExportedProgram, list[Tensor]]:
        """The program, and the tensors among its arguments.

        Raises:
            ValueError: for arguments of another structure.
            AssertionError: for tensors of other sizes or dtypes.
        """
        program: ExportedProgram = self.__dict__["_program"]
        leaves, spec = tree_flatten((args, kwargs))
        if spec != program.in_spec:
            raise ValueError(f"the program takes arguments like {program.in_spec}, got {spec}")
        inputs = [t for t in leaves if isinstance(t, Tensor)]
        expected = program.graph.find_nodes(op="placeholder")[len(program.weights()) :]
        known: dict[str, int] = {}
        for node, t in zip(expected, inputs):
            shape, dtype = node.meta["type"]
            names = {d: size.name for d, size in node.meta.get("sizes", {}).items()}
            if not fits(node.meta, tuple(t.shape), known) or t.dtype != dtype:
                said = [names.get(d, n) for d, n in enumerate(shape)]
                raise AssertionError(
                    f"Guard failed: input {node.name} is {dtype} of shape [{', '.join(map(str, said))}] in the program"
                    f", got {t.dtype} of shape {list(t.shape)}"
                )
        return program, inputs


class TracedModule(_Unlifted):
    """A traced module that ``torch.jit.load`` has read: ``train`` and ``eval`` only set ``training``, as in PyTorch."""

    def program(self) -> ExportedProgram:
        """The program, with the weights that the module has now."""
        made: ExportedProgram = copy.copy(self.__dict__["_program"])
        own = dict(self.named_parameters(remove_duplicate=False)) | dict(self.named_buffers(remove_duplicate=False))
        made.state_dict = {name: own[name] for name in made.state_dict}
        made.constants = {name: own[name] for name in made.constants}
        return made

    def train(self, mode: bool = True) -> Any:
        return Module.train(self, mode)

    def eval(self) -> Any:
        return Module.train(self, False)


class _Decomposed(_Unlifted):
    """A module that runs a program with the decompositions of a table."""

    def __init__(self, program: ExportedProgram, table: Mapping[Any, Any]):
        super().__init__(program)
        self.__dict__["_table"] = table

    def _run(self, graph_module: GraphModule, *inputs: Tensor) -> Any:
        with _Decomposing(self.__dict__["_table"]):
            return InModules(graph_module, self.__dict__["_program"].module_call_graph).run(*inputs)


class _Decomposing(TorchDispatchMode):
    """Replaces operators by the functions of a table, and the operators that these functions call."""

    def __init__(self, table: Mapping[Any, Any]):
        super().__init__()
        self._table = table

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in self._table:
            return func(*args, **kwargs)
        with self:
            return self._table[func](*args, **kwargs)


def _decomposed(program: ExportedProgram, table: Mapping[Any, Any]) -> ExportedProgram:
    """A program with the decompositions of a table."""
    args, kwargs = program.example_inputs
    inputs = program.graph.find_nodes(op="placeholder")[len(program.weights()) :]
    traced = Trace(_Decomposed(program, table), args, kwargs, [n.name for n in inputs])
    symbols: dict[str, Symbol] = {}
    for n, node in enumerate(inputs):
        for d, size in node.meta.get("sizes", {}).items():
            value = (traced.inputs[n].shape[d] - size.offset) // size.factor
            symbol = symbols.setdefault(size.root, Symbol(size.root, value, needed=True))
            symbol.places.append(Place(n, d, size.factor, size.offset))
            if size.name == size.root:
                symbol.least, symbol.most = size.least, size.most
    found = traced.program(traced.chosen(list(symbols.values())))
    kinds = {s.target: (s.kind, s.persistent) for s in program.graph_signature.input_specs if s.target is not None}
    for spec in found.graph_signature.input_specs:
        if spec.target in kinds:
            spec.kind, spec.persistent = kinds[spec.target]
    whole, *paths = program.module_call_graph
    assert whole.signature is not None
    found.module_call_graph = entries([e.fqn for e in paths], whole.signature, traced.calls)
    return found


def _input_names(module: Module, args: Any, kwargs: Any) -> list[str]:
    """A name for each leaf, derived from the parameters of ``forward``."""
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
    """Exports a module as a graph, traced with example arguments.

    Args:
        mod: the module, in its current mode: call ``eval()`` first for inference.
        args, kwargs: its arguments. Leaves that are not tensors are constants of the graph.
        dynamic_shapes: the dynamic sizes: for each argument, in a tuple or by name, a dictionary or sequence from
            dimensions to ``Dim``, ``Dim.AUTO``, ``Dim.DYNAMIC`` or None; others are static. Or a ``ShapesCollection``
            or ``AdditionalInputs``. The module is then called at several sizes.
        strict: ignored.
        preserve_module_call_signature: the names of modules in it that ``unflatten`` gives the arguments and results
            that they have in ``mod``.

    Raises:
        ValueError: for an argument that is not a module.
        AttributeError: for a name in ``preserve_module_call_signature`` that is not one of a module in it.
        TypeError: if ``args`` is not a tuple.
        torch._dynamo.exc.UserError: for a size that is declared dynamic but is static.
        torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: if operations depend on values of tensors
            (``item()``, ``bool()``, ``tolist()``, sizes of masks), which a graph cannot express.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = kwargs or {}
    check_paths(mod, preserve_module_call_signature)
    traced = Trace(mod, args, kwargs, preserved=preserve_module_call_signature)
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    else:
        shapes = dynamic_shapes
    symbols = declared_symbols(shapes, bound(mod.forward, args, kwargs)) if shapes else []
    program = traced.program(traced.chosen(symbols))
    if isinstance(dynamic_shapes, AdditionalInputs):
        dynamic_shapes.verify(program)
    return program


def export_with_any_sizes(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
    """``export`` with every size dynamic that can be dynamic."""
    traced = Trace(mod, args, kwargs)
    return traced.program(traced.chosen(candidates(traced.inputs)))


class Trace:
    """The trace of a module with example arguments.

    Args:
        mod, args, kwargs: the module and its arguments.
        names: the names of the tensors among these; by default those of the parameters of ``forward``.
        keep: whether nodes store their values in ``meta["val"]``.
        preserved: the names of modules whose calls keep their signatures.

    Attributes:
        inputs, names: the tensors among its arguments, and their names.
        graph: the graph, whose first inputs are weights.
        specs: the kinds of its inputs.
        weights: the weights by name.
        calls: the signatures of the calls of preserved modules.
        branches: the graphs of the functions of ``torch.cond``.
    """

    def __init__(
        self, mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str] = (), keep: bool = False,
        preserved: Sequence[str] = (),
    ):  # fmt: skip
        self.mod, self.args, self.kwargs = mod, args, kwargs
        self._keep, self._preserved = keep, preserved
        self.calls: dict[str, ModuleCallSignature] = {}
        self._leaves, self._spec = tree_flatten((args, kwargs))
        self.inputs = [t for t in self._leaves if isinstance(t, Tensor)]
        given = iter(names)
        self._names = [
            next(given, name) if isinstance(t, Tensor) else name
            for t, name in zip(self._leaves, _input_names(mod, args, kwargs))
        ]
        self.names = [name for t, name in zip(self._leaves, self._names) if isinstance(t, Tensor)]
        self.graph, self.specs, self.weights, self.out_spec = self._traced(self.inputs)

    def _traced(self, inputs: list[Tensor]) -> tuple[Graph, list[InputSpec], dict[str, Tensor], TreeSpec]:
        """A trace, which leaves the module and the generator of random numbers as they were."""
        given = iter(inputs)
        leaves = [next(given) if isinstance(t, Tensor) else t for t in self._leaves]
        args, kwargs = tree_unflatten(leaves, self._spec)
        kept = [(t, t._version, t.detach().clone()) for t in [*self.mod.parameters(), *self.mod.buffers()]]
        with no_grad(), fork_rng():  # without autograd, each operation is recorded
            try:
                recorder, found = record(
                    self.mod, args, kwargs, self._names, self.mod, GuardOnDataDependentSymNode, self._preserved
                )
            finally:
                for t, version, before in kept:
                    # Batch norm updates its statistics without changing their version.
                    if t._version != version or not isinstance(t, Parameter):
                        t.copy_(before)
        self.branches = recorder.branches
        graph, specs, copied = _lifted(recorder, self.mod, self._keep)
        self.calls = {path: signature_of(call, copied) for path, call in recorder.preserved.items()}
        graph.output(tuple(copied.get(n, n) for n in tree_flatten(recorder.graph.output_node().args[0])[0]))
        owned = _owned(self.mod)
        every = {**owned, **recorder.constants}
        weights = {s.target: every[s.target] for s in specs if s.target is not None}
        return graph, specs, weights, tree_flatten(found)[1]

    def again(self, inputs: list[Tensor]) -> Graph:
        """The graph at other sizes, if it has the same weights and constants."""
        if all(a is b for a, b in zip(inputs, self.inputs)):
            return self.graph
        branches = self.branches
        graph, _, weights, out_spec = self._traced(inputs)
        self.branches, others = branches, self.branches
        if any(str(found.code) != others[name].code for name, found in branches.items()):
            raise Fixed("the branches of torch.cond differ at another size")
        same = weights.keys() == self.weights.keys() and out_spec == self.out_spec
        for name, t in weights.items() if same else ():
            other = self.weights[name]
            same = same and (
                t is other
                or (t.shape == other.shape and t.dtype == other.dtype and names_of("torch")["equal"](t, other))
            )
        if not same:
            raise Fixed("its constants or results differ at another size")
        return graph

    def chosen(self, symbols: list[Symbol]) -> list[Symbol]:
        """The sizes that can be dynamic, each separately.

        Raises:
            UserError: if a required one cannot.
        """
        found = []
        for symbol in symbols:
            try:
                generalized(self.again, self.inputs, [symbol])
            except Fixed as why:
                if symbol.needed:
                    raise UserError(f"Constraints violated ({symbol.name})! The size cannot change: {why}") from why
            else:
                found.append(symbol)
        return found

    def program(self, symbols: list[Symbol]) -> ExportedProgram:
        """The program with these sizes dynamic, or as many of them as possible together."""
        optional = [s for s in symbols if not s.needed]
        needed = [s for s in symbols if s.needed]
        if len(needed) > MOST:
            raise UserError(f"dynamic_shapes: at most {MOST} sizes can change together, got {len(needed)}")
        kept = [*needed, *optional][:MOST]
        graph = self.graph
        while kept:
            try:
                graph = generalized(self.again, self.inputs, kept)
                break
            except Fixed as why:
                if kept[-1].needed:
                    names = ", ".join(s.name for s in kept)
                    raise UserError(f"Constraints violated ({names})! The sizes cannot change: {why}") from why
                kept.pop()
        owned = _owned(self.mod)
        signature = ExportGraphSignature(self.specs, [_output_spec(n) for n in graph.output_node().args[0]])
        kept = self.mod.state_dict()
        state = {name: owned[name] for name in self.weights if name in kept}
        constants = {name: t for name, t in self.weights.items() if name not in state}
        example = self.args, self.kwargs
        whole = ModuleCallSignature([], [], self._spec, self.out_spec, forward_names(self.mod, *example))
        calls = entries([path for path, _ in self.mod.named_modules()], whole, self.calls)
        return ExportedProgram(
            GraphModule(self.branches, graph), signature, state, constants, self._spec, self.out_spec, example, calls
        )


#: The prefixes of the names of weights, by kind.
_STEMS = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b", InputKind.CONSTANT_TENSOR: "c"}


def _owned(mod: Module) -> dict[str, Tensor]:
    """The parameters, and then the buffers."""
    return {**dict(mod.named_parameters()), **dict(mod.named_buffers())}


def _kind(t: Tensor, owned: bool) -> InputKind:
    if not owned:
        return InputKind.CONSTANT_TENSOR
    return InputKind.PARAMETER if isinstance(t, Parameter) else InputKind.BUFFER


def _output_spec(value: Any) -> OutputSpec:
    arg = TensorArgument(value.name) if isinstance(value, Node) else ConstantArgument("", value)
    return OutputSpec(OutputKind.USER_OUTPUT, arg, None)


def _lifted(recorder: Recorder, mod: Module, keep: bool) -> tuple[Graph, list[InputSpec], dict[Node, Node]]:
    """The graph with weights as its first inputs, its input specs, and its nodes by those of the trace.

    Args:
        keep: whether nodes store their values.
    """
    graph = Graph()
    specs: list[InputSpec] = []
    copied: dict[Node, Node] = {}
    attributes = recorder.graph.find_nodes(op="get_attr")
    named = {str(n.target): n for n in attributes if n.target not in recorder.branches}
    owned, kept = _owned(mod), mod.state_dict(keep_vars=True)
    for name in [*owned, *[n for n in named if n not in owned]]:
        t = owned[name] if name in owned else named[name].meta["val"]
        kind = _kind(t, name in owned)
        made = graph.placeholder(f"{_STEMS[kind]}_{name.replace('.', '_')}")
        made.meta["type"] = tuple(t.shape), t.dtype
        if name in named:
            copied[named[name]] = made
        specs.append(
            InputSpec(kind, TensorArgument(made.name), name, name in kept if kind is InputKind.BUFFER else None)
        )
    for node in recorder.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            if isinstance(value, Tensor):
                copied[node] = graph.placeholder(node.name)
                specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(copied[node].name), None))
        elif node.op == "call_function" or node.target in recorder.branches:
            copied[node] = graph.node_copy(node, lambda n: copied[n])
            if getattr(node.target, "_opname", "") == "rnn_layer":  # its last argument stores tensors for backward
                copied[node].args = (*copied[node].args[:-1], True)
    for node, made in copied.items():
        if isinstance(value := node.meta.get("val"), Tensor):
            made.meta["type"] = tuple(value.shape), value.dtype
        made.meta.pop("val", None)
        if keep and "val" in node.meta:
            made.meta["val"] = value
    return graph, specs, copied
