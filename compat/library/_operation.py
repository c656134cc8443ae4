"""Operations of libraries: kernels by device, and calls.

A call goes through PyTorch's dispatch order: the arguments are checked against the schema; an
``Autograd`` kernel, or the formula of ``register_autograd``, comes next; then modes of ``TorchDispatchMode``; and
then the kernel of the device, whose operations are recorded if no formula is registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import compat.library._fallback as _fallback
from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, Packet, namespace
from compat._core.dispatch.overrides import Declined, answer, answer_of_mode, around, owners, state
from compat._core.memory.meta import NO_KERNEL
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from compat._core.schema.parser import FunctionSchema
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.level_stack import state as transforms
from compat._core.types.device import device
from compat._dispatch_keys import is_on
from compat.autograd.function import Function
from compat.autograd.graph import increment_version
from funcgrad.runtime import opaque

#: Kernels by dispatch key; the composite one comes last.
CPU, META, AUTOGRAD, AUTOCAST = "CPU", "Meta", "Autograd", "AutocastCPU"
EXPLICIT, IMPLICIT = "CompositeExplicitAutograd", "CompositeImplicitAutograd"
KEYS = {
    "": IMPLICIT, "default": EXPLICIT, "cpu": CPU, "meta": META, "AutogradCPU": AUTOGRAD, "cuda": "CUDA", "xpu": "XPU",
    "BackendSelect": EXPLICIT, "CompositeExplicitAutogradNonFunctional": EXPLICIT,
}  # fmt: skip


#: Meta kernels of operations that are not declared yet, by name.
early_fakes: dict[str, Callable[..., Any]] = {}


class _Running(threading.local):
    """The operations whose ``Autograd`` kernel is running in this thread: from there they are called below it."""

    def __init__(self) -> None:
        self.below: list[Operation] = []


_running = _Running()


class Operation(OpOverload):
    """One overload of a library's operation.

    Attributes:
        kernels: by key.
        formula: of ``register_autograd``: the function that sets up the context, or None, and the backward.
        mapped: from ``register_vmap``.
        rules: by the class of a mode, the rule of ``register_torch_dispatch``.
        tags: its tags.
        owner: the function that defines it, named in messages; None for a declaration alone.
        function: by which it is recorded, with its formula.
    """

    def __init__(self, packet: OpOverloadPacket, schema: FunctionSchema, tags: Sequence[Any] = ()):
        super().__init__(packet, schema.overload_name or "default")
        self._schema = schema
        self.tags = list(tags)
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.formula: tuple[Callable[..., Any] | None, Callable[..., Any]] | None = None
        self.mapped: Callable[..., Any] | None = None
        self.rules: dict[type, Callable[..., Any]] = {}
        self.owner: Any = None
        name = f"GeneratedBackwardFor_{packet.namespace}_{packet.__name__}_{self._overloadname}"
        self.function: Any = type(name, (_Recorded,), {})

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        given, named = self._schema.bind(args, kwargs)
        if AUTOCAST in self.kernels and is_on(AUTOCAST):
            return self.kernels[AUTOCAST](*given, **named)
        if set(self.kernels) == {IMPLICIT}:
            return self.kernels[IMPLICIT](*given, **named)
        if AUTOGRAD in self.kernels and self not in _running.below:
            _running.below.append(self)
            try:
                return self.kernels[AUTOGRAD](*given, **named)
            finally:
                _running.below.remove(self)
        leaves, tree = tree_flatten(given)
        wanted = mode.grad and any(isinstance(x, Tensor) and x.requires_grad for x in leaves)
        ruled = self.formula is not None or self.owner is not None
        if (ruled and wanted) or (transforms.levels and (ruled or self.mapped is not None)):
            return _Call(self, tree, named).recorded(leaves)
        found = self.below(given, named)
        if wanted and AUTOGRAD not in self.kernels:
            _fallback.watch(self.name(), (given, named), found)
        return found

    def below(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call below autograd: a mode's or a subclass's override, or the kernel."""
        if state.modes:
            watcher = state.modes[-1]
            rule = self.rules.get(type(watcher))
            if rule is not None:
                with around():
                    return rule(watcher, self, (), args, kwargs)
            with suppress(Declined):
                return answer_of_mode(self, self, args, kwargs)
        asked = owners([args, kwargs])
        for t in asked:
            if type(t) in self.rules:
                return self.rules[type(t)](type(t), self, tuple(type(a) for a in asked), args, kwargs)
        return answer(asked, self, self, args, kwargs) if asked else self.run(args, kwargs)

    def run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs the kernel for the arguments' device."""
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        kernel = self._kernel(self._place(tensors, (*args, *kwargs.values())), bool(tensors))
        with opaque():
            found = kernel(*args, **kwargs)
        if self.owner is not None:
            self._check_apart(tensors, found)
            for a, value in zip(self._schema.arguments, (*args, *kwargs.values())):
                if a.is_write:
                    increment_version(tensors_in(value))
        return found

    def _place(self, tensors: Sequence[Tensor], values: Sequence[Any]) -> str:
        """The device of the kernel: that of the tensors, or of a device argument."""
        where = "meta" if any(t.is_meta for t in tensors) else "cpu"
        if not tensors and self.owner is not None:
            where = next((device(v).type for a, v in zip(self._schema.arguments, values) if a.name == "device"), where)
            if KEYS.get(where, where) not in self.kernels and EXPLICIT not in self.kernels:
                raise RuntimeError(f"{self._opname} does not have a kernel registered for {where}")
        return KEYS[where]

    def _kernel(self, key: str, tensors: bool) -> Callable[..., Any]:
        for found in (key,) if key == META and self.owner is not None else (key, EXPLICIT, IMPLICIT):
            if found in self.kernels:
                return self.kernels[found]
        if key == META and self.owner is not None:
            raise RuntimeError(
                f"There was no fake impl registered for {self.owner}. This is necessary for torch.compile/export/fx "
                f"tracing to work. Please use `{self.owner._init_fn.__name__}.register_fake` to add an fake impl."
            )
        if key == META and self.kernels:
            raise NotImplementedError(NO_KERNEL.format(self.name()))
        if not tensors:
            raise NotImplementedError(
                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
                f"fallback function is registered for schema {self.name()}.  This usually means that this function "
                "requires a non-empty list of Tensors, or that you (the operator writer) forgot to register a "
                f"fallback function.  Available functions are [{', '.join(self.kernels)}]."
            )
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{key}' backend. This could be because the "
            "operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
            f"using custom build). '{self.name()}' is only available for these backends: [{', '.join(self.kernels)}]."
        )

    def _check_apart(self, given: Sequence[Tensor], found: Any) -> None:
        """Whether results do not alias the arguments.

        Raises:
            RuntimeError: if not.
        """
        taken = {id(t._storage_) for t in given}
        for t in tree_leaves(found):
            if not isinstance(t, Tensor):
                continue
            if id(t._storage_) in taken:
                raise RuntimeError(
                    f"{self._opname} (with implementation in {self.owner._module}): The output of this custom operator "
                    "(1) must not also be an input to this custom operator and (2) may not alias any inputs to this "
                    "custom operator or other returns. The most common way to trigger this error is if we have y = "
                    "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                )
            taken.add(id(t._storage_))


Operation.__module__, Operation.__qualname__ = "torch._ops", "OpOverload"


# ---------------------------------------------------------------- recorded, with a formula


class _Call:
    """A recorded call: the values that a ``Function`` needs besides the leaves of its arguments.

    Attributes:
        operation: which one.
        tree: of the arguments.
        kwargs: those given by name.
        results: the tree of the results, once they are there.
    """

    def __init__(self, operation: Operation, tree: TreeSpec, kwargs: dict[str, Any]):
        self.operation = operation
        self.tree = tree
        self.kwargs = kwargs
        self.results: TreeSpec | None = None

    def recorded(self, leaves: Sequence[Any]) -> Any:
        """The results, in the graph."""
        found = self.operation.function.apply(self, *leaves)
        assert self.results is not None
        return tree_unflatten(found, self.results)

    def flat(self, found: Any) -> tuple:
        """Results as leaves."""
        leaves, self.results = tree_flatten(found)
        return tuple(leaves)


class _Recorded(Function):
    """The ``Function`` that records an operation; its arguments are a ``_Call`` and leaves."""

    @staticmethod
    def forward(call: _Call, *leaves: Any) -> tuple:
        return call.flat(call.operation.below(tree_unflatten(leaves, call.tree), call.kwargs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        call, *leaves = inputs
        ctx._call = call
        formula = call.operation.formula
        if formula is None or formula[0] is None:
            return
        assert call.results is not None
        given, found = tree_unflatten(leaves, call.tree), tree_unflatten(output, call.results)
        named = {"keyword_only_inputs": call.kwargs} if call.kwargs else {}
        formula[0](ctx=ctx, inputs=given, output=found, **named)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        call: _Call = ctx._call
        if call.operation.formula is None:
            raise RuntimeError(
                f"Trying to backward through {call.operation} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        assert call.results is not None
        given = tree_unflatten(grads, call.results)
        flags = ctx.needs_input_grad
        ctx.needs_input_grad = tree_unflatten(flags[1:], call.tree)
        try:
            found = call.operation.formula[1](ctx, *(given if isinstance(given, tuple) else (given,)))
        finally:
            ctx.needs_input_grad = flags
        return (None, *_by_leaf(call, found))

    @staticmethod
    def vmap(info: Any, in_dims: tuple, call: _Call, *leaves: Any) -> Any:
        dims = in_dims[1:]
        if call.operation.mapped is None:
            return _one_by_one(info, dims, call, leaves)
        given, places = tree_unflatten(leaves, call.tree), tree_unflatten(dims, call.tree)
        found, out_dims = call.operation.mapped(info, places, *given, **call.kwargs)
        results = call.flat(found)
        if isinstance(found, Tensor) or not isinstance(out_dims, (tuple, list)):
            return results, (out_dims,) * len(results)
        return results, tuple(out_dims)


def _by_leaf(call: _Call, found: Any) -> list[Any]:
    """Gradients of arguments as those of their leaves: None for a list is None for each of its tensors."""
    grads = found if isinstance(found, tuple) else (found,)
    flat: list[Any] = []
    for grad, part in zip(grads, call.tree.children()):
        flat += (
            [None] * part.num_leaves if grad is None else tree_leaves(grad) if part.num_leaves > 1 else [_only(grad)]
        )
    return flat + [None] * (call.tree.num_leaves - len(flat))


def _only(grad: Any) -> Any:
    return grad[0] if isinstance(grad, (list, tuple)) else grad


def _one_by_one(info: Any, dims: Sequence[int | None], call: _Call, leaves: Sequence[Any]) -> tuple[tuple, tuple]:
    """The results of an operation without a batching rule, stacked from its batch elements."""
    stack = names_of("torch")["stack"]
    flats = []
    for i in range(info.batch_size):
        picked = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
        flats.append(call.flat(call.operation(*tree_unflatten(picked, call.tree), **call.kwargs)))
    columns = [stack(list(column)) if isinstance(column[0], Tensor) else column[0] for column in zip(*flats)]
    return tuple(columns), tuple(0 if isinstance(c, Tensor) else None for c in columns)


# ---------------------------------------------------------------- finding them


def is_declared(qualname: str) -> bool:
    """Whether there is an operation of a name such as ``my::op``."""
    try:
        find(qualname)
    except RuntimeError:
        return False
    return True


def find(qualname: str) -> Operation:
    """The operation of a name such as ``my::op`` or ``my::op.overload``.

    Raises:
        RuntimeError: if there is none.
    """
    library, _, rest = qualname.partition("::")
    name, _, overload = rest.partition(".")
    packet = namespace(library)._packets.get(name)
    found = None if packet is None else packet._overloads.get(overload or "default")
    if not isinstance(found, Operation):
        raise RuntimeError(f"operator {qualname} does not exist")
    return found


def declare(library: str, text: str, tags: Sequence[Any] = ()) -> Operation:
    """Makes an operation of a schema.

    Raises:
        RuntimeError: for an invalid schema, or one that is declared already.
    """
    schema = FunctionSchema(library, text)
    name = schema.name.partition("::")[2]
    packets = namespace(library)._packets
    packet = packets.get(name) or Packet(library, name)
    if (schema.overload_name or "default") in packet._overloads:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each "
            "overload's schema should only be registered with a single call to def()."
        )
    made = Operation(packet, schema, tags)
    if made.name() in early_fakes:
        made.kernels[META] = early_fakes[made.name()]
    packet._overloads[made._overloadname] = made
    packets[name] = packet
    return made


def forget(operation: Operation) -> None:
    """Removes an operation."""
    packet = operation.overloadpacket
    if packet._overloads.pop(operation._overloadname, None) is not None and not packet._overloads:
        namespace(operation.namespace)._packets.pop(packet.__name__, None)
