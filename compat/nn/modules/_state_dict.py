"""``state_dict``: a module's parameters and buffers by dotted names, and loading them."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compat import __future__ as future
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.errors import warn
from compat._core.types.removable_handle import RemovableHandle
from compat.nn._uninitialized import is_lazy
from compat.nn.modules._hooks import add
from compat.nn.modules._to import swap_loaded
from compat.nn.parameter import Parameter
from funcgrad.core.errors import explained

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The missing and the unexpected keys of ``load_state_dict``."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class PreHook:
    """A hook of ``load_state_dict``, called with the module first if it was registered with it.

    It keeps a weak reference to the module, as the module references the hook.
    """

    def __init__(self, hook: Callable[..., Any], module: Any = None):
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        if self.module is None:
            return self.hook(*args)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> dict:
        return {"hook": self.hook, "module": None if self.module is None else self.module()}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["hook"], state["module"])  # type: ignore[misc]


class State:
    """The base of ``Module`` that saves and loads its state."""

    #: The version of the saved format, which loading finds in the metadata; a class raises it when its state changes.
    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        """Extra state to be saved under ``_extra_state``: override it together with ``set_extra_state``."""
        raise RuntimeError(_not_overridden("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Loads the extra state that ``get_extra_state`` returned."""
        raise RuntimeError(_not_overridden("set_extra_state"))

    # ---------------------------------------------------------------- saving

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers of the module and all modules in it, by name.

        The tensors are the module's own memory, outside the graph.

        Args:
            destination: a dictionary to fill instead of a new one.
            prefix: the prefix of every name.
            keep_vars: whether to return the parameters themselves instead of detached tensors.

        Example:
            >>> module = torch.nn.Sequential(torch.nn.Linear(2, 1))
            >>> list(module.state_dict())
            ['0.weight', '0.bias']
        """
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            positional = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = positional.get("destination") if destination is None else destination
            prefix = prefix or positional.get("prefix", "")
            keep_vars = keep_vars or positional.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            new = hook(self, destination, prefix, metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if new is None else new
            elif new is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Adds the module's own tensors, without its submodules', to ``destination``."""
        for name, tensor in (*self._parameters.items(), *self._persistent_buffers_()):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _persistent_buffers_(self) -> Iterator[tuple[str, Any]]:
        return ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)

    # ---------------------------------------------------------------- loading

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies the tensors of ``state_dict`` into the parameters and buffers of the same names.

        Args:
            state_dict: a result of ``state_dict()``; it is not modified.
            strict: whether the keys must match exactly.
            assign: whether to replace the tensors by the given ones instead of copying values.

        Returns:
            The missing and the unexpected keys, as ``missing_keys`` and ``unexpected_keys``.

        Raises:
            RuntimeError: if sizes do not match, or with ``strict`` keys; the message lists all mismatches.
            TypeError: if ``state_dict`` is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]

        def load(module: Any, entries: Mapping[str, Any], prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    inner = f"{prefix}{name}."
                    load(child, {k: v for k, v in entries.items() if k.startswith(inner)}, inner)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in list(module._load_state_dict_post_hooks.values()):
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            for kind, keys in (("Missing", missing), ("Unexpected", unexpected)):
                if keys:
                    listed = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(kind == "Unexpected" and bool(missing), f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            message = f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors)
            raise explained(RuntimeError(message), "state-dict")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads the module's own tensors, not those of its submodules; override it to read older versions.

        Args:
            state_dict: holds at least the entries whose names begin with ``prefix``.
            local_metadata: metadata saved with the module, such as its ``version``.
            strict: whether unknown keys are added to ``unexpected_keys``.
            missing_keys, unexpected_keys, error_msgs: lists to add to.
        """
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in itertools.chain(self._parameters.items(), self._persistent_buffers_()):
            if tensor is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            error = _load_one(self, name, key, tensor, state_dict[key], assign)
            if error:
                error_msgs.append(error)

        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            others = (key for key in state_dict if key.startswith(prefix) and key != extra)
            unexpected_keys += [key for key in others if not self._is_expected_(key[len(prefix) :])]

    def _is_expected_(self, name: str) -> bool:
        first, dot, _ = name.partition(".")
        if dot and first in self._modules:
            return True  # reported by the submodule
        return self._parameters.get(name) is not None or any(
            name == n and b is not None for n, b in self._persistent_buffers_()
        )

    # ---------------------------------------------------------------- hooks

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before the module is saved."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after the module was saved."""
        hook._from_public_api = True
        return add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook`` with the module and the arguments of ``_load_from_state_dict`` before it is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add(self._load_state_dict_pre_hooks, PreHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after the module was loaded; it may change the lists of keys."""
        return add(self._load_state_dict_post_hooks, hook)


def _not_overridden(name: str) -> str:
    return (
        f"Reached a code path in Module.{name}() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )


_NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
    "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
    "the module instead of copying them in place?)"
)


def _load_one(module: Any, name: str, key: str, tensor: Tensor, given: Any, assign: bool) -> str:
    """Loads one entry; returns the text of an error, or an empty one."""
    if not isinstance(given, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(given)}"
        )
    sized = not is_lazy(tensor)
    if not sized and is_lazy(given):
        return ""  # neither has values
    if sized and tensor.ndim == 0 and tuple(given.shape) == (1,):
        given = given[0]  # PyTorch before 0.4 saved scalars as vectors of one element
    if sized and given.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
            f"model is {tensor.shape}."
        )
    try:
        with no_grad():
            if tensor.is_meta and not given.is_meta and not assign:
                warn(_NO_OP.format(key))
            if future.get_swap_module_params_on_conversion():
                swap_loaded(tensor, given, assign)
            elif assign:
                setattr(module, name, _assigned(tensor, given))
            else:
                tensor.copy_(given)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and whose '
            f"dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
        )
    return ""


def _assigned(tensor: Tensor, given: Any) -> Any:
    """The replacement of ``tensor``: a parameter for a parameter, with the same ``requires_grad``."""
    if not isinstance(tensor, Parameter):
        return given
    if not isinstance(given, Parameter):
        return Parameter(given, requires_grad=tensor.requires_grad)
    return given.requires_grad_(tensor.requires_grad)
