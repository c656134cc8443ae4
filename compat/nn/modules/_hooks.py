"""Hooks of modules, before and after ``forward`` and around backward, and the call that runs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import is_grad_enabled
from compat._core.types.errors import warn
from compat._core.types.removable_handle import RemovableHandle
from compat.autograd.function import Function

Hook = Callable[..., Any]


class GlobalHooks:
    """The hooks that run for every module.

    Attributes:
        forward_pre, forward, backward_pre, backward: hooks by their handle's id, in the order in which they run.
        forward_pre_kwargs, forward_kwargs: the ids of hooks that get keyword arguments too.
        forward_always: the ids of hooks that run even if ``forward`` raised.
        full: whether ``backward`` holds full hooks, or those of ``register_backward_hook``; None while it holds none.
    """

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.forward_pre_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.full: bool | None = None


#: The hooks that run for every module, before its own.
global_hooks = GlobalHooks()

_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)
_NO_INPUT_NEEDS_GRAD = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
    "#torch.nn.Module.register_full_backward_hook for more details."
)


def add(hooks: Any, hook: Any, *flags: tuple[Any, bool], prepend: bool = False) -> RemovableHandle:
    """Adds a hook to ``hooks``, and its id to each dictionary whose flag is true; returns the handle."""
    handle = RemovableHandle(hooks, extra_dict=[table for table, _ in flags])
    hooks[handle.id] = hook
    for table, wanted in flags:
        if wanted:
            table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
        for table, wanted in flags:
            if wanted:
                table.move_to_end(handle.id, last=False)
    return handle


class Hooks:
    """The base of ``Module`` that defines its call: ``module(...)`` runs the hooks and ``forward``."""

    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before ``forward``; its result, if not None, replaces the arguments.

        Args:
            hook: with ``with_kwargs`` it is called as ``hook(module, args, kwargs)`` and returns both, or None.
            prepend: whether to run it before the existing hooks.
        """
        flags = (self._forward_pre_hooks_with_kwargs, with_kwargs)
        return add(self._forward_pre_hooks, hook, flags, prepend=prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after ``forward``; its result, if not None, replaces the output.

        Args:
            hook: with ``with_kwargs`` it is called as ``hook(module, args, kwargs, output)``.
            prepend: whether to run it before the existing hooks.
            always_call: whether to run it even if ``forward`` raised; the output is then None.
        """
        kwargs = (self._forward_hooks_with_kwargs, with_kwargs)
        always = (self._forward_hooks_always_called, always_call)
        return add(self._forward_hooks, hook, kwargs, always, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` when the outputs' gradients are computed; its result replaces them."""
        return add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` when the inputs' gradients are computed.

        A result that is not None replaces ``grad_input``. Gradients of arguments that are not tensors are None.

        Raises:
            RuntimeError: if the module has a hook of ``register_backward_hook``.

        Example:
            >>> double = torch.nn.Module()
            >>> double.forward = lambda x: 2 * x
            >>> handle = double.register_full_backward_hook(lambda m, grad_in, grad_out: print(grad_in, grad_out))
            >>> double(torch.ones(1, requires_grad=True)).sum().backward()
            (tensor([2.]),) (tensor([1.]),)
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = True
        return add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook`` with the gradients of the module's last node only; prefer ``register_full_backward_hook``.

        Raises:
            RuntimeError: if the module has a full backward hook.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = False
        return add(self._backward_hooks, hook)

    # ---------------------------------------------------------------- the call

    #: The compiled ``_call_impl``, after ``compile``.
    _compiled_call_impl: Callable[..., Any] | None = None

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles further calls, in place; the arguments are those of ``torch.compile``.

        Example:
            >>> model = torch.nn.Linear(2, 1)
            >>> model.compile()
            >>> model(torch.ones(1, 2)).shape
            torch.Size([1, 1])
        """
        self._compiled_call_impl = names_of("torch")["compile"](self._call_impl, *args, **kwargs)

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "_compiled_call_impl"}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or global_hooks.forward
            or global_hooks.forward_pre
            or global_hooks.backward
            or global_hooks.backward_pre
            or self._compiled_call_impl is not None
        ):
            return self.forward(*args, **kwargs)
        call = self._compiled_call_impl or self._call_impl
        return call(*args, **kwargs)

    _wrapped_call_impl = __call__

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        done: set[int] = set()
        try:
            return _hooked_call(self, args, kwargs, done)
        except Exception:
            _run_always_called(self, args, kwargs, done)
            raise


def _hooked_call(module: Any, args: tuple, kwargs: dict, done: set[int]) -> Any:
    args, kwargs = _before(module, args, kwargs)
    full, legacy = _backward_hooks(module)
    pre = [*global_hooks.backward_pre.values(), *module._backward_pre_hooks.values()]
    around = _BackwardHooks(module, full, pre) if full or pre else None
    if around is not None:
        args = around.inputs(args)
    result = module.forward(*args, **kwargs)
    for key, hook, with_kwargs in _forward_hooks(module):
        done.add(key)
        new = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if new is not None:
            result = new
    if around is not None:
        if not isinstance(result, (Tensor, tuple)):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}"
            )
        result = around.outputs(result)
    if legacy:
        _hook_last_node(module, legacy, args, result)
    return result


def _before(module: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    shared = ((h, k in global_hooks.forward_pre_kwargs) for k, h in list(global_hooks.forward_pre.items()))
    own = ((h, k in module._forward_pre_hooks_with_kwargs) for k, h in list(module._forward_pre_hooks.items()))
    for hook, with_kwargs in (*shared, *own):
        new = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if new is None:
            continue
        if not with_kwargs:
            args = new if isinstance(new, tuple) else (new,)
        elif isinstance(new, tuple) and len(new) == 2:
            args, kwargs = new
        else:
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
            )
    return args, kwargs


def _forward_hooks(module: Any) -> list[tuple[int, Hook, bool]]:
    shared = [(k, h, k in global_hooks.forward_kwargs) for k, h in global_hooks.forward.items()]
    return shared + [(k, h, k in module._forward_hooks_with_kwargs) for k, h in module._forward_hooks.items()]


def _run_always_called(module: Any, args: tuple, kwargs: dict, done: set[int]) -> None:
    """Runs the remaining ``always_call`` hooks after an exception; their errors become warnings."""
    always = global_hooks.forward_always.keys() | module._forward_hooks_always_called.keys()
    for key, hook, with_kwargs in _forward_hooks(module):
        if key not in always or key in done:
            continue
        try:
            if with_kwargs:
                hook(module, args, kwargs, None)
            else:
                hook(module, args, None)
        except Exception as error:
            which = "global module" if key in global_hooks.forward_always else "module"
            warn(
                f"{which} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                f"error was raised in forward: {error}"
            )


def _backward_hooks(module: Any) -> tuple[list[Hook], list[Hook]]:
    """The full backward hooks and the others, those for all modules first."""
    full: list[Hook] = []
    legacy: list[Hook] = []
    for is_full, hooks in (
        (global_hooks.full, global_hooks.backward),
        (module._is_full_backward_hook, module._backward_hooks),
    ):
        if is_full is not None:
            (full if is_full else legacy).extend(hooks.values())
    return full, legacy


# ---------------------------------------------------------------- full backward hooks


class BackwardHookFunction(Function):
    """The identity, whose node at a module's inputs or outputs runs the module's hooks."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


def _through_node(values: tuple, register: Callable[[Any], None]) -> tuple[tuple, list[int] | None]:
    """The values with their tensors replaced by outputs of one node, and the positions of the tensors.

    ``register`` is called with the node. Without gradients to record, the values are unchanged and the positions None.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not (is_grad_enabled() and any(values[i].requires_grad for i in positions)):
        return values, None
    outputs = BackwardHookFunction.apply(*[values[i] for i in positions])
    register(next(t.grad_fn for t in outputs if t.grad_fn is not None))
    new = list(values)
    for i, tensor in zip(positions, outputs):
        new[i] = tensor
    return type(values)(new) if type(values) is tuple else type(values)(*new), positions


def _scattered(positions: Sequence[int], values: Sequence[Any], count: int) -> tuple:
    """A tuple of ``count`` with ``values`` at ``positions`` and None elsewhere."""
    spread: list[Any] = [None] * count
    for position, value in zip(positions, values):
        spread[position] = value
    return tuple(spread)


class _BackwardHooks:
    """The full backward hooks of one call of a module, run by a node at its inputs and a node at its outputs.

    In the backward pass the node at the outputs runs the pre hooks and stores the gradients. The node at the inputs
    then runs the hooks with both; if no input requires a gradient, the node at the outputs runs them.
    """

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: Any = None
        self.input_positions: list[int] | None = None
        self.output_positions: list[int] = []
        self.input_count = self.output_count = 0

    def inputs(self, args: tuple) -> tuple:
        """The arguments, as outputs of a node."""
        self.input_count = len(args)
        args, self.input_positions = _through_node(args, lambda node: node.register_hook(self._at_inputs))
        return args

    def outputs(self, result: Any) -> Any:
        """The result, as outputs of a node."""
        values = result if isinstance(result, tuple) else (result,)
        self.output_count = len(values)
        values, positions = _through_node(values, lambda node: node.register_hook(self._at_outputs))
        self.output_positions = positions or []
        return values if isinstance(result, tuple) else values[0]

    def _at_inputs(self, grad_inputs: Any, _: Any) -> Any:
        if self.grad_outputs is None:
            return None  # only inputs are requested that do not depend on the outputs
        assert self.input_positions is not None
        grads = _scattered(self.input_positions, grad_inputs, self.input_count)
        for hook in self.hooks:
            new = hook(self.module, grads, self.grad_outputs)
            if new is None:
                continue
            new = new if isinstance(new, tuple) else (new,)
            if len(new) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(new)}, but expected {len(grads)}"
                )
            grads = new
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_positions)

    def _at_outputs(self, _: Any, grad_outputs: Any) -> Any:
        grads = _scattered(self.output_positions, grad_outputs, self.output_count)
        for hook in self.pre_hooks:
            new = hook(self.module, grads)
            if new is None:
                continue
            new = new if isinstance(new, tuple) else (new,)
            if len(new) != len(grads):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(new)}, but expected "
                    f"{len(grads)}"
                )
            grads = new
        self.grad_outputs = grads
        if self.input_positions is None:
            self._without_inputs()
        return tuple(grads[i] for i in self.output_positions)

    def _without_inputs(self) -> None:
        if self.hooks:
            warn(_NO_INPUT_NEEDS_GRAD)
        for hook in self.hooks:
            new = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        self.grad_outputs = None


# ---------------------------------------------------------------- hooks of register_backward_hook


def _hook_last_node(module: Any, hooks: list[Hook], args: tuple, result: Any) -> None:
    found = result
    while not isinstance(found, Tensor):
        found = (
            next((v for v in found.values() if isinstance(v, Tensor)), None) if isinstance(found, dict) else found[0]
        )
    node = found.grad_fn
    if node is None:
        return
    _warn_of_missing(args, result, node)
    for hook in hooks:
        node.register_hook(lambda *grads, hook=hook: hook(module, *grads))


def _warn_of_missing(args: tuple, result: Any, node: Any) -> None:
    """Warns of gradients that a hook on one node does not get."""
    when = "Using a non-full backward hook when"
    of_module = "Using non-full backward hooks on a Module that does not"
    prefer = "Please use register_full_backward_hook to get the documented behavior."
    future = "is deprecated and will be removed in future versions. This hook will be missing some"

    def plain(values: Any) -> bool:
        return isinstance(values, Tensor) or (isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values))

    tensors = result if isinstance(result, tuple) else (result,)
    makers = {id(f) for f, _ in node.next_functions}
    leaves = {id(t.grad_fn) for t in args if isinstance(t, Tensor) and t.grad_fn is not None}
    if not plain(result):
        text = f"{of_module} return a single Tensor or a tuple of Tensors {future} of the grad_output. {prefer}"
    elif not plain(args):
        text = f"{of_module} take as input a single Tensor or a tuple of Tensors {future} of the grad_input. {prefer}"
    elif len({id(t.grad_fn) for t in tensors if t.grad_fn is not None}) > 1:
        text = f"{when} outputs are generated by different autograd Nodes {future} grad_output. {prefer}"
    elif makers != leaves:
        text = f"{when} the forward contains multiple autograd Nodes {future} grad_input. {prefer}"
    else:
        return
    warn(text, FutureWarning)


# ---------------------------------------------------------------- hooks for all modules


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, args)`` before the ``forward`` of every module."""
    return add(global_hooks.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after the ``forward`` of every module."""
    kwargs, always = (global_hooks.forward_kwargs, with_kwargs), (global_hooks.forward_always, always_call)
    return add(global_hooks.forward, hook, kwargs, always)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` in the backward pass of every module."""
    return add(global_hooks.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` in the backward pass of every module.

    Raises:
        RuntimeError: if hooks of ``register_module_backward_hook`` are registered.
    """
    return _add_global(hook, True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook`` with the gradients of the last node of every module; prefer the full one.

    Raises:
        RuntimeError: if full backward hooks for all modules are registered.
    """
    return _add_global(hook, False)


def _add_global(hook: Hook, full: bool) -> RemovableHandle:
    if global_hooks.full is not None and global_hooks.full is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    global_hooks.full = full
    return add(global_hooks.backward, hook)
