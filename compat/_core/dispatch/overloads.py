"""The overloads of ``torch.ops``, such as ``torch.ops.aten.mm.default``.

An operation has a packet with several overloads, which differ in their arguments. ``TorchDispatchMode`` intercepts
overloads, and policies of selective checkpointing compare them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from compat._core.dispatch.dispatcher import every
from compat._core.schema.overload import OF_NUMBERS, overloads_of
from compat._core.schema.parameter import python_name
from compat._core.schema.parser import FunctionSchema
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import Overridable, OverridableObject
from funcgrad.core.caching import memoized


class _Shown(threading.local):
    """The intercepted calls of this thread, the innermost last, each with its implementation."""

    def __init__(self) -> None:
        self.calls: list[tuple[OpOverload, Callable[..., Any]]] = []


_shown = _Shown()


@contextmanager
def showing(overload: OpOverload, call: Callable[..., Any]) -> Iterator[None]:
    """Context in which a call of the overload is ``call``."""
    _shown.calls.append((overload, call))
    try:
        yield
    finally:
        _shown.calls.pop()


class OpOverload(OverridableObject):
    """An overload of an operation; a call of it is a call of the operation.

    Attributes:
        namespace: the library's name.
        overloadpacket: the operation.
    """

    def __init__(self, packet: OpOverloadPacket, overload: str):
        self.overloadpacket = self._overloadpacket = packet
        self.namespace = packet.namespace
        self._opname, self._overloadname = packet.__name__, overload
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__

    @cached_property
    def _schema(self) -> FunctionSchema:
        """Its schema."""
        for schema in reversed(_schemas(self._opname)):  # the public function's comes last
            if _name_of(schema) == self._overloadname:
                return schema
        raise AttributeError(f"The schema of '{self}' is not known")

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        if _shown.calls and _shown.calls[-1][0] is self:  # called inside its own handler
            return _shown.calls[-1][1](*args, **kwargs)
        return _implementation(self._opname)(*args, **kwargs)

    def name(self) -> str:
        """The C++ name, ``aten::add.Tensor``."""
        name = f"{self.namespace}::{self._opname}"
        return name if self._overloadname == "default" else f"{name}.{self._overloadname}"

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverload:
        return self  # there is one of each

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(OverridableObject):
    """An operation with its overloads. A call uses the overload that accepts the arguments."""

    def __init__(self, namespace: str, name: str):
        self.namespace = namespace
        self.__name__ = name
        self.__module__ = f"torch._ops.{namespace}"
        self._overloads: dict[str, OpOverload] = {}

    def overload(self, name: str) -> OpOverload:
        """The overload of a name; always the same object."""
        found = self._overloads.get(name)
        if found is None:
            found = self._overloads[name] = OpOverload(self, name)
        return found

    def overloads(self) -> list[str]:
        """The names of its overloads."""
        return list(_overloads(self.__name__))

    def __getattr__(self, name: str) -> OpOverload:
        known = _overloads(self.__name__)  # each also has an ``out`` variant
        if name.startswith("__") or not (name in known or name in {_writing(self.__name__, k) for k in known}):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return self.overload(name)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        return _implementation(self.__name__)(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverloadPacket:
        return self  # there is one of each

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _OpNamespace:
    """A library of operations."""

    def __init__(self, name: str):
        self.name = name
        self._packets: dict[str, OpOverloadPacket] = {}

    def packet(self, name: str) -> OpOverloadPacket:
        """The operation of a name; always the same object."""
        found = self._packets.get(name)
        if found is None:
            found = self._packets[name] = OpOverloadPacket(self.name, name)
        return found

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") or not _overloads(name):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return self.packet(name)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


for _class in (OpOverload, OpOverloadPacket, _OpNamespace):
    _class.__module__ = "torch._ops"

aten = _OpNamespace("aten")

# ---------------------------------------------------------------- libraries of users


class Packet(OpOverloadPacket):
    """An operation of a user's library, with its declared overloads."""

    def overloads(self) -> list[str]:
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        found = self.__dict__["_overloads"].get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        *others, last = self._overloads.values()
        for overload in others:
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError:
                continue
            return overload(*args, **kwargs)
        return last(*args, **kwargs)


class Namespace(_OpNamespace):
    """A library."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = self.__dict__["_packets"].get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return list(self._packets)


for _class, _name in ((Packet, "OpOverloadPacket"), (Namespace, "_OpNamespace")):
    _class.__module__, _class.__qualname__ = "torch._ops", _name
_namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The library of a name; always the same object."""
    found = _namespaces.get(name)
    if found is None:
        found = _namespaces[name] = Namespace(name)
    return found


# ---------------------------------------------------------------- the overload of a call

#: Operations that modes intercept under another name.
_NAMES = {"softmax": "_softmax", "log_softmax": "_log_softmax"}
#: Operations of other backends, which policies name.
_FOREIGN = frozenset(
    ["_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_mm"]
    + ["_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu"]
    + ["_pin_memory", "_sparse_addmm", "_sparse_mm_reduce_impl"]
    + ["_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward", "_efficient_attention_forward"]
)

#: Operators of tensors' metadata: their methods and schemas.
_DESCRIPTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sym_size": (Tensor.size, ("sym_size(Tensor self) -> SymInt[]", "sym_size.int(Tensor self, int dim) -> SymInt")),
    "sym_stride": (
        Tensor.stride, ("sym_stride(Tensor self) -> SymInt[]", "sym_stride.int(Tensor self, int dim) -> SymInt"),
    ),
    "lift_fresh": (lambda t: t, ("lift_fresh(Tensor(a) self) -> Tensor(a)",)),
    "sym_numel": (Tensor.numel, ("sym_numel(Tensor self) -> SymInt",)),
    "sym_storage_offset": (Tensor.storage_offset, ("sym_storage_offset(Tensor self) -> SymInt",)),
}  # fmt: skip

#: The ``out`` variants of overloads, unless they are "out" or the overload's name with "_out".
_WRITING = {
    "sum.dim_IntList": "IntList_out", "nansum.dim_IntList": "IntList_out", "prod.dim_int": "int_out",
    "max.dim": "dim_max", "min.dim": "dim_min", "median.dim": "dim_values", "nanmedian.dim": "dim_values",
}  # fmt: skip
_WRITING |= {f"{name}.Tensor": "out" for name in ("add", "sub", "mul", "div")}
_WRITING |= {f"{name}.dim": "out" for name in ("mean", "all", "any")}


def _writing(base: str, overload: str) -> str:
    """The ``out`` variant of an overload."""
    return _WRITING.get(f"{base}.{overload}") or ("out" if overload == "default" else f"{overload}_out")


@memoized("overloads", 8192)
def _schemas(name: str) -> tuple[FunctionSchema, ...]:
    """The schemas of an operation: of the operators declared under its name, and of its public function."""
    base = name if _is_public(name) else name.removesuffix("_")
    texts = [schema for d in every() if name_of(d.name, False) == base.removesuffix("_") for schema in d.schemas]
    function = public_function(base) if _is_public(base) else None
    texts += [overload.schema for overload in overloads_of(function)]
    texts += _DESCRIPTIONS[name][1] if name in _DESCRIPTIONS else ()
    return tuple(FunctionSchema("aten", _named(name, text)) for text in dict.fromkeys(texts))


def _named(name: str, schema: str) -> str:
    """A schema under an operation's name; for an in-place operation with a written first argument."""
    own, rest = re.split(r"(?=[.(])", schema, maxsplit=1)
    if name.endswith("_") and not name.endswith("__") and not own.endswith("_"):
        rest = re.sub(r"^(\.\w+)?\(Tensor(\(a\))? self", r"\1(Tensor(a!) self", rest)
        rest = re.sub(r"-> Tensor(\(a\))?$", "-> Tensor(a!)", rest)
    return f"{name}{rest}"


def _name_of(schema: FunctionSchema) -> str:
    return schema.overload_name or "default"


def _overloads(name: str) -> tuple[str, ...]:
    """The names of an operation's overloads; none if there is no such operation."""
    found = tuple(dict.fromkeys(map(_name_of, _schemas(name))))
    return found or (("default",) if name in _FOREIGN or _is_public(name) else ())


#: Operations that accept numbers for tensors: a call with a number uses the overload for tensors.
_OF_NUMBERS = OF_NUMBERS | {"where"}


def _fits(schema: FunctionSchema, given: Mapping[str, Any]) -> bool:
    """Whether an overload accepts the arguments of a call: those without a parameter must be None or False."""
    numbers = schema.name.removeprefix("aten::").removesuffix("_") in _OF_NUMBERS
    left = dict(given)
    for argument in schema.arguments:
        name = argument.name if argument.name in left else python_name(argument)
        if name not in left:
            if not argument.has_default_value():
                return False
            continue
        value, tensor = left.pop(name), argument.type.startswith("Tensor")
        if isinstance(value, Tensor) != tensor and isinstance(value, Tensor):
            return False
        if not (argument.accepts(value) or (tensor and numbers and isinstance(value, (bool, int, float, complex)))):
            return False
    return all(value is None or value is False for value in left.values())


def _is_public(name: str) -> bool:
    return name in names_of("torch") or hasattr(Tensor, name) or name in names_of("F") or _in_family(name) is not None


def _in_family(name: str) -> Callable[..., Any] | None:
    """The function ``torch.linalg.norm`` of the operation ``linalg_norm``."""
    family, _, own = name.partition("_")
    found: Callable[..., Any] | None = names_of(family).get(own) if family in ("fft", "linalg", "special") else None
    return found


def name_of(declared: str, inplace: bool) -> str:
    """The name of an operation, given its declared name."""
    return _NAMES.get(declared, declared) + "_" * inplace


def overload_of(declared: str, inplace: bool, given: Mapping[str, Any], writes: bool = False) -> OpOverload:
    """The overload of a call.

    Args:
        declared: the declared name of the operation.
        inplace: whether it writes into its first argument.
        given: the arguments by parameter.
        writes: whether it has an argument ``out``.
    """
    base = _NAMES.get(declared, declared)
    own = _schemas(base + "_" * inplace) or _schemas(base)
    schemas = [s for s in own if not (base in _OF_NUMBERS and s.overload_name.startswith("Scalar"))]
    fitting = next((schema for schema in schemas if _fits(schema, given)), schemas[0] if schemas else None)
    overload = "default" if fitting is None else _name_of(fitting)
    overload = _writing(base, overload) if writes else overload
    return aten.packet(base + "_" * inplace).overload(overload)


def public_function(name: str) -> Callable[..., Any]:
    """The public function of an operation.

    Raises:
        NotImplementedError: if there is none.
    """
    if name in _DESCRIPTIONS:
        return _DESCRIPTIONS[name][0]
    getattr(Tensor, name, None)  # imports its module
    for place in (names_of("torch"), Tensor.__dict__, names_of("F"), names_of("_C._nn")):
        if name in place:
            return place[name]
    found = _in_family(name)
    if found is not None:
        return found
    for declared in every():
        for entry in declared.entries:
            if name_of(declared.name, entry.writes) == name:
                return entry.function
    raise NotImplementedError(f"Could not run 'aten::{name}': there is no such operation on the CPU")


def _implementation(name: str) -> Callable[..., Any]:
    """``public_function`` without the check for ``__torch_function__``, which the overload's call has made."""
    found: Any = public_function(name)
    return found._function if isinstance(found, Overridable) else found


__all__ = ["Namespace", "OpOverload", "OpOverloadPacket", "Packet", "aten", "namespace"]
