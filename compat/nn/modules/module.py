"""``Module``: named parameters, buffers and submodules, and methods for all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn
from compat.nn.modules._hooks import (
    Hooks,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from compat.nn.modules._registration import (
    forward_missing,
    on_buffer,
    on_module,
    on_parameter,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    run_hooks,
    set_buffer,
    uninitialized,
)
from compat.nn.modules._state_dict import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX
from compat.nn.modules._state_dict import State, _IncompatibleKeys
from compat.nn.modules._to import NO_DATA, apply_to, empty_on
from compat.nn.modules.utils import parse_to, typename
from compat.nn.parameter import Buffer, Parameter

__all__ = [
    "Module", "_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys", "_global_buffer_registration_hooks",
    "_global_module_registration_hooks", "_global_parameter_registration_hooks",
    "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip
# The registries under their names in PyTorch, which programs use.
_global_buffer_registration_hooks, _global_module_registration_hooks = on_buffer, on_module
_global_parameter_registration_hooks = on_parameter

Self = TypeVar("Self", bound="Module")

_COMPLEX = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not "
    "work as expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as "
    "expected."
)


#: Attributes of modules that have another attribute, by name: that one, and a function that computes the value.
computed_attributes: dict[str, tuple[str, Callable[[Any], Any]]] = {}


class Module(Hooks, State):
    """The base of all layers and networks.

    Parameters, buffers and modules assigned to an attribute are registered under its name: ``parameters()``, ``to()``,
    ``state_dict()`` and similar methods find them.

    Attributes:
        training: whether the module is in training rather than evaluation mode.

    Example:
        >>> class Scale(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = torch.nn.Parameter(torch.tensor(3.0))
        ...
        ...     def forward(self, x):
        ...         return self.factor * x
        >>> Scale()(torch.ones(2))
        tensor([3., 3.], grad_fn=<MulBackward0>)
    """

    dump_patches = False
    training: bool
    #: Whether ``__init__`` calls the next class of the MRO with its arguments; for multiple inheritance.
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            error = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {error}")
        self.__dict__.update(_initial_attributes())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = forward_missing

    # ---------------------------------------------------------------- registering

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but is not a parameter, such as a running mean.

        Args:
            name: the attribute name.
            tensor: None reserves the name.
            persistent: whether it is part of ``state_dict()``.

        Raises:
            TypeError, KeyError: for a name that is not a string, empty, dotted or taken; if ``tensor`` is not a tensor.
        """
        if "_buffers" not in self.__dict__:
            raise uninitialized("buffer")
        self._check_name_("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = run_hooks(on_buffer, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter.

        Args:
            name: the attribute name.
            param: None reserves the name.

        Raises:
            TypeError, KeyError: for a name that is not a string, empty, dotted or taken; if ``param`` is not a
                parameter.
            ValueError: if it is not a leaf.
        """
        if "_parameters" not in self.__dict__:
            raise uninitialized("parameter")
        self._check_name_("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = run_hooks(on_parameter, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule.

        Raises:
            TypeError, KeyError: for a name that is not a string, empty, dotted or taken; if ``module`` is not a module.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name_("module", name, self._modules)
        self._modules[name] = run_hooks(on_module, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """An alias of ``add_module``."""
        self.add_module(name, module)

    def _check_name_(self, what: str, name: Any, present: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in present and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # ---------------------------------------------------------------- attributes

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in held and name in held[table]:
                return held[table][name]
        if name in computed_attributes and computed_attributes[name][0] in held:
            return computed_attributes[name][1](self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__
        for kind, table, subject, register, hooks in _REGISTRIES:
            if isinstance(value, kind):
                if table not in held:
                    raise uninitialized(subject)
                if kind is not Buffer:
                    self._remove_name_(name, table)
                register(self, name, value)
                return
            if table in held and name in held[table]:
                if value is not None and not (table == "_buffers" and isinstance(value, Tensor)):
                    what, wanted = _WANTED[table]
                    raise TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({wanted} or None expected)")
                held[table][name] = run_hooks(hooks, self, name, value)
                return
        super().__setattr__(name, value)

    def _remove_name_(self, name: str, keep: str) -> None:
        """Removes the name from all registries."""
        held = self.__dict__
        for table in (held, *(held[t] for t in _TABLES if t != keep)):
            table.pop(name, None)
        if keep != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(
            {name: value for name, value in _initial_attributes().items() if name not in _TABLES and name != "training"}
        )
        self.__dict__.update(state)

    # ---------------------------------------------------------------- lookup

    def get_submodule(self, target: str) -> Any:
        """The submodule of a dotted name; the module itself for ``""``.

        Raises:
            AttributeError: if a part of the name is missing or is not a module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.get_submodule("0.0")
            ReLU()
        """
        found: Any = self
        for part in target.split(".") if target else ():
            found = _member(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the submodule of a dotted name.

        Args:
            strict: whether the submodule must exist.

        Raises:
            ValueError: if the name is empty or ``module`` is not a module.
            AttributeError: if a part of the name is missing or is not a module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            present = _member(parent, name)
            if not isinstance(present, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """The parameter of a dotted name.

        Raises:
            AttributeError: if there is none.
        """
        path, _, name = target.rpartition(".")
        found = _member(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """The buffer of a dotted name.

        Raises:
            AttributeError: if there is none.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = _member(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # ---------------------------------------------------------------- iteration

    def _named_members(
        self,
        members: Callable[[Module], Iterable],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """The parameters, each once; with ``recurse`` those of submodules too."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The parameters with their dotted names, prefixed by ``prefix``.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2))
            >>> [(name, tuple(p.shape)) for name, p in net.named_parameters()]
            [('0.weight', (2, 3)), ('0.bias', (2,))]
        """
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """The buffers, each once; with ``recurse`` those of submodules too."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The buffers with their dotted names, prefixed by ``prefix``."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Any]:
        """The modules directly in this one, each once."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly in this one with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """The module itself and all modules in it, outer ones first, each once."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The module itself, under ``prefix``, and all modules in it with their dotted names.

        Args:
            memo: modules to omit; those yielded are added.
            remove_duplicate: whether to yield a module that occurs twice only once.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Calls ``fn`` with every submodule and then with the module itself; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---------------------------------------------------------------- moving and casting

    def _apply(self: Self, fn: Callable[[Tensor], Any], recurse: bool = True) -> Self:
        """Applies ``fn`` to every parameter, gradient and buffer, and replaces their contents."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with no_grad():
                self._parameters[name] = apply_to(parameter, fn, f"{self._get_name()}.{name}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Moves or casts parameters and buffers in place: ``to(device)``, ``to(dtype)``, ``to(tensor)``.

        A dtype applies only to floating-point and complex tensors.

        Raises:
            TypeError: for an integer or bool dtype.
            RuntimeError: for ``copy=True``.
        """
        to = parse_to(args, kwargs)
        if to.copy:
            raise RuntimeError(".to() does not accept copy argument")
        if to.dtype is not None and to.dtype.category < dtypes.FLOATING:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={to.dtype}"
            )
        if to.dtype is not None and to.dtype.is_complex:
            warn(_COMPLEX)

        def convert(t: Any) -> Any:
            dtype = to.dtype if t.is_floating_point() or t.is_complex() else None
            options = {"memory_format": to.memory_format} if to.memory_format is not None and t.dim() in (4, 5) else {}
            if t.is_meta and to.device not in (None, t.device):
                raise NotImplementedError(NO_DATA)
            return t.to(device=to.device, dtype=dtype, non_blocking=to.non_blocking, **options)

        return self._apply(convert)

    def _floating_(self: Self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: Self) -> Self:
        """Casts floating-point parameters and buffers to float32."""
        return self._floating_(dtypes.float32)

    def double(self: Self) -> Self:
        """Casts floating-point parameters and buffers to float64."""
        return self._floating_(dtypes.float64)

    def half(self: Self) -> Self:
        """Casts floating-point parameters and buffers to float16."""
        return self._floating_(dtypes.float16)

    def bfloat16(self: Self) -> Self:
        """Casts floating-point parameters and buffers to bfloat16."""
        return self._floating_(dtypes.bfloat16)

    def type(self: Self, dst_type: Any) -> Self:
        """Casts all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self: Self) -> Self:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Moves parameters and buffers to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without copying their values."""
        return self._apply(lambda t: empty_on(t, device), recurse=recurse)

    def share_memory(self: Self) -> Self:
        """Moves parameters and buffers to shared memory: see ``Tensor.share_memory_``."""
        return self._apply(lambda t: t.share_memory_())

    def train(self: Self, mode: bool = True) -> Self:
        """Sets training mode, or with False evaluation mode, for the module and all in it; returns the module.

        Raises:
            ValueError: if ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Sets evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` of all parameters; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or with False to zero."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    # ---------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The module's own part of its ``repr``; override it to show more than its name."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        lines = own + children
        if not lines:
            body = ""
        elif len(own) == 1 and not children:
            body = own[0]
        else:
            body = "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"


def _initial_attributes() -> dict[str, Any]:
    """The attributes of a new module."""
    return {
        "training": True,
        "_parameters": {},
        "_buffers": {},
        "_non_persistent_buffers_set": set(),
        "_backward_pre_hooks": OrderedDict(),
        "_backward_hooks": OrderedDict(),
        "_is_full_backward_hook": None,
        "_forward_hooks": OrderedDict(),
        "_forward_hooks_with_kwargs": OrderedDict(),
        "_forward_hooks_always_called": OrderedDict(),
        "_forward_pre_hooks": OrderedDict(),
        "_forward_pre_hooks_with_kwargs": OrderedDict(),
        "_state_dict_hooks": OrderedDict(),
        "_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_post_hooks": OrderedDict(),
        "_modules": {},
    }


_TABLES = ("_parameters", "_modules", "_buffers")

_WANTED = {
    "_parameters": ("parameter", "torch.nn.Parameter"),
    "_modules": ("child module", "torch.nn.Module"),
    "_buffers": ("buffer", "torch.nn.Buffer, torch.Tensor"),
}


def _set_module(module: Module, name: str, value: Module) -> None:
    module._modules[name] = run_hooks(on_module, module, name, value)


#: By type of value, in the order of lookup on assignment: its registry, its name in the error before
#: ``Module.__init__``, the function that registers it, the hooks.
_REGISTRIES: tuple[tuple[Any, str, str, Callable[..., None], OrderedDict], ...] = (
    (Parameter, "_parameters", "parameters", Module.register_parameter, on_parameter),
    (Module, "_modules", "module", _set_module, on_module),
    (Buffer, "_buffers", "buffer", set_buffer, on_buffer),
)


def _member(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def clear_grad(parameter: Any, set_to_none: bool) -> None:
    """Sets a parameter's gradient to None, or to zero outside the graph."""
    grad = parameter.grad
    if grad is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()
