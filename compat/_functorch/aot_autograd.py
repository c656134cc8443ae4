"""``torch._functorch.aot_autograd``: functions compiled by compilers of their forward and of their backward graph.

A call is traced as one graph of ``aten`` operators, with its backward pass (``_joint``), which is cut into two
(``partitioners``). The compiled function has one node, whose backward is the compiled backward graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._functorch._boxed import call, compiled, make_boxed_compiler, make_boxed_func
from compat._functorch._joint import Joint, example_inputs, trace
from compat._functorch.partitioners import default_partition
from compat.autograd.function import Function, with_twice_error
from compat.func._modules import functional_call
from compat.nn.modules.module import Module

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]

_TWICE = "torch.compile with aot_autograd does not currently support double backward"


class _Compilers:
    """What compiles graphs: the arguments of ``aot_function``."""

    def __init__(
        self, fw_compiler: Callable[..., Any], bw_compiler: Callable[..., Any] | None = None,
        partition_fn: Callable[..., Any] = default_partition, decompositions: Any = None,
        inference_compiler: Callable[..., Any] | None = None,
    ):  # fmt: skip
        self.forward, self.backward = fw_compiler, bw_compiler or fw_compiler
        self.inference = inference_compiler or fw_compiler
        self.partition, self.decompositions = partition_fn, decompositions

    def compile(self, function: Callable[[list[Tensor]], Any], primals: Sequence[Tensor]) -> Callable[..., Any]:
        """A function of primals like these that runs the compiled graphs."""
        differentiate = bool(mode.grad) and any(t.requires_grad for t in primals)
        joint = trace(function, primals, differentiate, self.decompositions)
        if not differentiate:
            run = compiled(self.inference, joint.module, joint.inputs[0])
            return lambda primals: joint.result(call(run, primals), primals)
        forward, backward = self.partition(joint.module, joint.inputs, num_fwd_outputs=joint.results)
        run = compiled(self.forward, forward, example_inputs(forward))
        later = functools.cache(lambda: compiled(self.backward, backward, example_inputs(backward)))
        apply = _function(joint, run, later).apply

        def with_gradient(primals: list[Tensor]) -> Any:
            results = apply(*primals)
            return joint.result(results, primals)

        return with_gradient


def _function(joint: Joint, run: Callable[..., Any], backward: Callable[[], Callable[..., Any]]) -> type[Function]:
    """The differentiable function of compiled graphs; the backward graph is compiled when it is first needed."""
    strides = [t.stride() for t in joint.inputs[1]]
    plain = [i for i in range(joint.results) if i not in joint.tangents]

    class CompiledFunction(Function):
        @staticmethod
        def forward(ctx: Any, *primals: Any) -> Any:
            found = call(run, primals)
            results, saved = found[: joint.results], found[joint.results :]
            ctx.save_for_backward(*saved)
            ctx.mark_non_differentiable(*[results[i] for i in plain])
            return tuple(results)

        @staticmethod
        def _backward(ctx: Any, *grads: Any) -> Any:
            tangents = [_with_strides(grads[i], stride) for i, stride in zip(joint.tangents, strides)]
            return tuple(call(backward(), [*ctx.saved_tensors, *tangents]))

    CompiledFunction.backward = staticmethod(with_twice_error(CompiledFunction._backward, _TWICE, True))  # type: ignore[method-assign]
    return CompiledFunction


def _with_strides(t: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A gradient in the memory order of the traced one."""
    if t.stride() == strides:
        return t
    made = t.new_empty_strided(t.shape, strides)
    return made.copy_(t)


class _Compiled:
    """A function whose calls run compiled graphs, one pair of graphs for each kind of arguments."""

    def __init__(self, function: Callable[..., Any], compilers: _Compilers):
        functools.update_wrapper(self, function, updated=())
        self._function, self._compilers = function, compilers
        self._known: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.prepare(args, kwargs)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: bool = True) -> Any:
        """Compiles the graphs for such arguments, unless they are known; and runs them."""
        leaves, spec = tree_flatten((args, kwargs))
        numbers: dict[int, int] = {}
        primals: list[Tensor] = []
        places: list[int | None] = []
        for x in leaves:
            if isinstance(x, Tensor) and id(x) not in numbers:
                numbers[id(x)] = len(primals)
                primals.append(x)
            places.append(numbers[id(x)] if isinstance(x, Tensor) else None)
        key = (str(spec), bool(mode.grad), mode.autocast, tuple(places), *map(_kind, leaves))
        known = self._known.get(key)
        if known is None:

            def flat(copies: list[Tensor]) -> Any:
                given = [x if i is None else copies[i] for x, i in zip(leaves, places)]
                again, named = tree_unflatten(given, spec)
                return self._function(*again, **named)

            known = self._known[key] = self._compilers.compile(flat, primals)
        return known(primals) if run else None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _kind(x: Any) -> Any:
    if isinstance(x, Tensor):
        return tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad
    return x if isinstance(x, bool | int | float | str | None) else id(x)


def aot_function(
    fn: Callable[..., Any], fw_compiler: Callable[..., Any], bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] = default_partition, decompositions: dict[Any, Callable[..., Any]] | None = None,
    num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None, dynamic: bool = False, enable_log: bool = True,
    disable_functionalization: bool = False, _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that runs what compilers make of the graphs of its forward and backward pass.

    A call with arguments of a new kind is traced and compiled; the backward graph is compiled in the first backward
    pass. Writes into arguments are operators of the forward graph.

    Args:
        fn: a function of pytrees of tensors.
        fw_compiler: maps an ``fx.GraphModule`` of ``aten`` operators and its inputs, fake tensors, to a function of a
            list of tensors (``make_boxed_func``).
        bw_compiler: the same for the backward graph, whose inputs are the saved values and the results' gradients;
            ``fw_compiler`` by default.
        partition_fn: cuts the joint graph into the forward and the backward graph.
        decompositions: by operator, a function that computes it with other operators.
        inference_compiler: the compiler for calls without gradients; ``fw_compiler`` by default.
        num_params_buffers, keep_inference_input_mutations, dynamic, enable_log, disable_functionalization: ignored.

    A derivative with a step that ``aten`` has no operator for stays one operator of the backward graph.

    Raises:
        RuntimeError: at a call, for a tensor that requires grad and is no argument; and in the second derivative.

    Example:
        >>> from compat.func._functorch.compile import aot_function, make_boxed_func
        >>> def show(module, inputs):
        ...     print(module.code.strip())
        ...     return make_boxed_func(module.forward)
        >>> x = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> y = aot_function(lambda x: x.sin() * 2, show)(x)
        def forward(self, primals_1):
            sin = torch.ops.aten.sin.default(primals_1)
            mul = torch.ops.aten.mul.Tensor(sin, 2);  sin = None
            return (mul, primals_1)
        >>> y.sum().backward()
        def forward(self, primals_1, tangents_1):
            mul_1 = torch.ops.aten.mul.Tensor(tangents_1, 2.0);  tangents_1 = None
            cos = torch.ops.aten.cos.default(primals_1);  primals_1 = None
            mul_2 = torch.ops.aten.mul.Tensor(mul_1, cos);  mul_1 = cos = None
            return (mul_2,)
        >>> x.grad
        tensor([2.0000, 1.0806])
    """
    return _Compiled(fn, _Compilers(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler))


def _state(module: Module) -> tuple[list[str], list[Tensor]]:
    """The names and the values of a module's parameters and buffers."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return [name for name, _ in named], [t for _, t in named]


def _with_state(module: Module, names: list[str]) -> Callable[..., Any]:
    """A module as a function of its parameters and buffers, and of its arguments."""

    def function(state: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(module, dict(zip(names, state)), args, kwargs)

    return function


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """A module with the parameters of ``mod`` that runs compiled graphs; these are inputs of the graphs.

    Args:
        mod: the module.
        args, kwargs: as for ``aot_function``, after the function.

    Raises:
        AssertionError: if ``mod`` is not a module.
    """
    if not isinstance(mod, Module):
        raise AssertionError("expected a module")

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod
            self._compiled: dict[Any, Any] = {}

        def forward(self, *given: Any, **named: Any) -> Any:
            names, state = _state(mod)
            key = (tuple(names), tuple(m.training for m in mod.modules()))
            if key not in self._compiled:
                self._compiled[key] = aot_function(_with_state(mod, names), *args, **kwargs)
            return self._compiled[key](state, *given, **named)

    return AOTModule()


def aot_module_simplified(
    mod: Module, args: Sequence[Any], fw_compiler: Callable[..., Any], bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] = default_partition, decompositions: dict[Any, Callable[..., Any]] | None = None,
    keep_inference_input_mutations: bool = False, inference_compiler: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[..., Any]:  # fmt: skip
    """A function of a module's arguments that runs compiled graphs; those for ``args`` are compiled at once.

    Args:
        mod: a module, such as the ``fx.GraphModule`` that a backend gets.
        args: example arguments.
        fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler: as for ``aot_function``.
        keep_inference_input_mutations, options: ignored.
    """
    names, state = _state(mod)
    compilers = _Compilers(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)
    run = _Compiled(_with_state(mod, names), compilers)
    run.prepare((state, *args), {}, run=False)

    def forward(*runtime_args: Any) -> Any:
        return run(_state(mod)[1], *runtime_args)

    return forward
