"""A model's operations as TensorBoard's graph: recorded while the model runs once, in scopes named by its modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from compat._core.pytree.trees import tree_flatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import TorchFunctionMode
from compat._core.transforms.grad_mode import no_grad
from compat.nn.modules.module import Module

__all__ = ["graph"]


def graph(model: Module, args: Any) -> Any:
    """The graph of a model, as a protocol buffer ``GraphDef``.

    The model runs once, in evaluation mode, so that only the operations that it takes for these arguments are shown.

    Args:
        model: the model.
        args: its argument, or a tuple or list of them.
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    recorded = _Recorder(model)
    given = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    for n, t in enumerate(_tensors(given)):
        recorded.define(t, "IO Node", f"input/{n}")
    with _evaluating(model), recorded.scopes(), no_grad(), recorded:
        outputs = model(*given)
    for n, t in enumerate(_tensors(outputs)):
        recorded.add("IO Node", f"output/{n}", [recorded.name_of(t)], [t])
    return GraphDef(node=recorded.nodes, versions=VersionDef(producer=22))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


@contextmanager
def _evaluating(model: Module) -> Iterator[None]:
    """Evaluation mode; each module's own mode is restored."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


class _Recorder(TorchFunctionMode):
    """Records a node for each function of tensors that is called.

    Attributes:
        nodes: the nodes so far, in the order of execution.
    """

    def __init__(self, model: Module):
        super().__init__()
        self.nodes: list[Any] = []
        self._names: dict[int, str] = {}
        self._kept: list[Tensor] = []  # an id must not be given to another tensor
        self._used: Counter[str] = Counter()
        self._scope: list[str] = []
        self._scopes = _scopes(model)
        for module, scope in self._scopes.items():
            for name, t in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
                self.define(t, "Parameter", f"{scope}/{name}")

    @contextmanager
    def scopes(self) -> Iterator[None]:
        """While the model runs, the scope of operations is the module that is called."""

        def enter(module: Module, *_: Any) -> None:
            self._scope.append(self._scopes[module])

        def leave(*_: Any) -> None:
            self._scope.pop()

        with ExitStack() as hooks:
            for module in self._scopes:
                hooks.callback(module.register_forward_pre_hook(enter, prepend=True).remove)
                hooks.callback(module.register_forward_hook(leave, always_call=True).remove)
            yield

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = [self.name_of(t) for t in _tensors((args, kwargs))]
        result = func(*args, **(kwargs or {}))
        outputs = _tensors(result)
        if outputs:
            own = getattr(func, "__self__", None) if func.__name__ == "__get__" else func
            operation = getattr(own, "__name__", func.__name__).strip("_")
            self.add(
                f"aten::{operation}", f"{self._scope[-1]}/{operation}" if self._scope else operation, inputs, outputs
            )
        return result

    def name_of(self, t: Tensor) -> str:
        """The name of the node that has computed a tensor; one that is not known is a constant."""
        if id(t) not in self._names:
            self.define(t, "prim::Constant", f"{self._scope[-1]}/constant" if self._scope else "constant")
        return self._names[id(t)]

    def define(self, t: Tensor, operation: str, name: str) -> None:
        """Adds a node without inputs for a tensor."""
        self.add(operation, name, [], [t])

    def add(self, operation: str, name: str, inputs: list[str], outputs: list[Tensor]) -> None:
        """Adds a node; a number makes its name unique."""
        from tensorboard.compat.proto.attr_value_pb2 import AttrValue
        from tensorboard.compat.proto.node_def_pb2 import NodeDef
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        self._used[name] += 1
        unique = name if self._used[name] == 1 else f"{name}_{self._used[name] - 1}"
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in outputs]
        attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes))}
        self.nodes.append(NodeDef(name=unique, op=operation, input=inputs, attr=attributes))
        self._kept += outputs
        self._names.update((id(t), unique) for t in outputs)


def _scopes(model: Module) -> dict[Module, str]:
    """The scope of each module: the classes and names of the modules around it, ``"Net/Linear[fc]"``."""
    found = {model: type(model).__name__}
    for module in model.modules():  # parents first
        for name, child in module.named_children():
            found.setdefault(child, f"{found[module]}/{type(child).__name__}[{name}]")
    return found
