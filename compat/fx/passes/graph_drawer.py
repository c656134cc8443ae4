"""``FxGraphDrawer``: a graph as a drawing in the language of Graphviz, by the package ``pydot``."""

from __future__ import annotations

import hashlib
from typing import Any

from compat import functional
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, _shown, target_name
from compat.fx.passes.shape_prop import TensorMetadata
from compat.nn.modules.module import Module

__all__ = ["FxGraphDrawer"]

_FILL = {
    "placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_attr": "LightGrey", "output": "PowderBlue",
}  # fmt: skip
#: The colours of functions and methods, chosen by a hash of the name.
_CALLED = [
    "CadetBlue1", "Coral1", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1",
    "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1", "Salmon", "Thistle1", "Thistle3",
    "Wheat1",
]  # fmt: skip


class FxGraphDrawer:
    """Drawings of a graph module and of the graph modules that it calls.

    Args:
        graph_module: the module; with metadata of ``ShapeProp``, shapes and dtypes are drawn.
        name: the name of its drawing; that of a submodule is ``name_path``.
        ignore_getattr: whether attributes are left out.
        ignore_parameters_and_buffers: whether the parameters of called modules are left out.
        skip_node_names_in_args: whether arguments that are nodes are drawn as edges only.
        parse_stack_trace: whether the nodes' lines of source are drawn. Not supported.
        dot_graph_shape: the shape of a node; by default ``"record"``.
        normalize_args: whether arguments have the names of parameters. Not supported.

    Raises:
        RuntimeError: without the package ``pydot``.
        NotImplementedError: for ``parse_stack_trace`` or ``normalize_args``.

    Example:
        >>> from compat.fx.passes.graph_drawer import FxGraphDrawer
        >>> net = torch.fx.symbolic_trace(lambda x: torch.sin(x))
        >>> FxGraphDrawer(net, "net").get_dot_graph().write_svg("net.svg")  # doctest: +SKIP
    """

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None, normalize_args: bool = False,
    ):  # fmt: skip
        try:
            import pydot
        except ImportError:
            raise RuntimeError("FxGraphDrawer draws by the package pydot, which is not installed") from None
        if parse_stack_trace or normalize_args:
            option = "parse_stack_trace" if parse_stack_trace else "normalize_args"
            raise NotImplementedError(f"FxGraphDrawer({option}=True): nodes do not have this information")
        self._pydot = pydot
        self._shape = "record" if dot_graph_shape is None else dot_graph_shape
        self._ignore_getattr = ignore_getattr
        self._ignore_weights = ignore_parameters_and_buffers
        self._skip_nodes = skip_node_names_in_args
        self._name = name
        self._dot_graphs: dict[str, Any] = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                inner = graph_module.get_submodule(str(node.target))
                if isinstance(inner, GraphModule):
                    at = f"{name}_{node.target}"
                    more = FxGraphDrawer(
                        inner, at, ignore_getattr, ignore_parameters_and_buffers, skip_node_names_in_args,
                        dot_graph_shape=dot_graph_shape,
                    )  # fmt: skip
                    self._dot_graphs |= more._dot_graphs

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing, a ``pydot.Dot``.

        Args:
            submod_name: the name of a submodule, for its drawing.
        """
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The drawing of a graph module that it calls.

        Args:
            submod_name: its name.

        Raises:
            KeyError: if it calls none of this name.
        """
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All drawings by name."""
        return self._dot_graphs

    # ------------------------------------------------------------ parts of a drawing

    def _drawn(self, module: GraphModule, name: str) -> Any:
        drawing = self._pydot.Dot(name, rankdir="TB")
        nodes = [n for n in module.graph.nodes if not (self._ignore_getattr and n.op == "get_attr")]
        for node in nodes:
            drawing.add_node(self._box(node.name, self._label(module, node), _fill(node)))
            if node.op == "call_module" and not self._ignore_weights:
                self._add_weights(drawing, module.get_submodule(str(node.target)), node)
        for node in nodes:
            for user in node.users:
                drawing.add_edge(self._pydot.Edge(node.name, user.name))
        return drawing

    def _box(self, name: str, label: str, fill: str) -> Any:
        style = {"fillcolor": fill, "style": '"filled,rounded"', "fontcolor": "#000000"}
        return self._pydot.Node(name, label=label, shape=self._shape, **style)

    def _add_weights(self, drawing: Any, module: Module, node: Node) -> None:
        """Adds the parameters and buffers of a called module that is no graph module."""
        if isinstance(module, GraphModule):
            return
        kinds = (("parameter", module.named_parameters()), ("buffer", module.named_buffers()))
        for kind, found in kinds:
            for name, t in found:
                own = f"{node.name}.{name}"
                label = f"{{{own}|op_code=get_{kind}{t.dtype}{list(t.shape)}\\n}}"
                drawing.add_node(self._box(own, label, "Salmon"))
                drawing.add_edge(self._pydot.Edge(own, node.name))

    def _label(self, module: GraphModule, node: Node) -> str:
        text = f"name=%{node.name}|op_code={node.op}\\n"
        if node.op == "call_module":
            text += f"\\n{_module_text(module.get_submodule(str(node.target)))}\\n"
        else:
            text += f"|target={_typename(node)}\\n{self._arguments(node)}|num_users={len(node.users)}\\n"
        return f"{{{text}{_tensors(node.meta.get('tensor_meta'))}}}"

    def _arguments(self, node: Node) -> str:
        args = [_written(a) for a in node.args]
        kwargs = [f"{name}: {_written(a)}" for name, a in node.kwargs.items()]
        if node.op == "placeholder":
            return ""
        return self._listed(args, "|args=(", ")") + self._listed(kwargs, "|kwargs=\\{", "\\}")

    def _listed(self, texts: list[str], before: str, after: str) -> str:
        if self._skip_nodes:
            texts = [text for text in texts if "%" not in text]
        if len(texts) < 2:
            return f"{before}{texts[0]},{after}" if texts else ""
        return f"{before}\\l" + ",\\n".join(texts) + f",\\n{after}\\l"


def _fill(node: Node) -> str:
    if node.op in _FILL:
        return _FILL[node.op]
    number = int(hashlib.md5(_target(node).encode(), usedforsecurity=False).hexdigest()[:8], 16)
    return _CALLED[number % len(_CALLED)]


def _written(value: Any) -> str:
    """An argument, with what a record's label uses itself escaped."""
    return _shown(value).replace("{", "\\{").replace("}", "\\}").replace("<", "\\<").replace(">", "\\>")


def _target(node: Node) -> str:
    """The name of what a node calls, by the module in which PyTorch defines it."""
    name = target_name(node.target)
    own = name.removeprefix("torch.")
    return f"torch.functional.{own}" if own != name and own in functional.__all__ else name


def _typename(node: Node) -> str:
    name = _target(node)
    return f"_{name}" if name.startswith("operator.") else name


def _module_text(module: Module) -> str:
    kind = type(module)
    home = kind.__module__.replace("compat.", "torch.", 1) if kind.__module__.startswith("compat.") else kind.__module__
    constants = [f"{name}: {getattr(module, name)}" for name in getattr(module, "__constants__", ())]
    constants = constants or [module.extra_repr().replace("=", ": ").replace(", ", "\\n")]
    return f"{home}.{kind.__qualname__}\\n|" + "\\n".join(constants)


def _tensors(meta: Any) -> str:
    """The lines on the tensors of a value."""
    if isinstance(meta, TensorMetadata):
        return (
            f"|dtype={meta.dtype}\\n|shape={tuple(meta.shape)}\\n|requires_grad={meta.requires_grad}\\n"
            f"|stride={meta.stride}\\n"
        )
    if isinstance(meta, dict):
        return "".join(f"{name}:{_tensors(part)}" for name, part in meta.items())
    return "".join(map(_tensors, meta)) if isinstance(meta, tuple | list) else ""
