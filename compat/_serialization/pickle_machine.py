"""The pickle machine for untrusted files: ``torch.load`` with ``weights_only``.

A pickle is a program for a machine with a stack and a memo. The standard library's runs any: it calls the file's
functions and sets attributes of any object. This one is the standard library's with four rules, and without opcodes
that no such file has:

* a name is looked up in a table only;
* only entries of the table are called, and the state of an object is set only if its class is an entry;
* lengths are checked against the available bytes before anything is allocated;
* calls that copy their arguments, and hashing, which traverses tuples, share a budget proportional to the file's size,
  so that a short file takes neither much memory nor much time.
"""

from __future__ import annotations

import codecs
import pickle
import re
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import numpy as np

from compat._serialization.errors import CorruptFileError, CorruptPickleError

#: The budget per byte of the pickle: bytes or elements that calls may copy, and tuples that hashing may traverse.
_ALLOWANCE = 8
_LEAST_ALLOWANCE = 1 << 16
#: The maximum nesting depth of tuples that are hashed or compared.
_DEEPEST_KEY = 50


class OutsideError(Exception):
    """Wraps an exception of the program's own code, raised while a file is read, to be reraised unchanged.

    Attributes:
        error: the exception.
    """

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


class Forbidden(pickle.UnpicklingError):
    """A name in a file that may not be used."""


class Blocked(pickle.UnpicklingError):
    """A name of a module of which nothing may be used."""


def outside(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Calls the program's own code, whose exceptions do not concern the file."""
    try:
        return function(*args, **named)
    except Exception as error:
        raise OutsideError(error) from error


#: Types of keys that are hashed and compared in constant time.
_PLAIN = frozenset((str, int, float))
#: The opcodes; others, such as extensions and references by a line, are refused.
_OPCODES = b"()012.BCFGIJKLMNQRSTUVX]abcdeghijlopqrstu}\x80\x81" + bytes(range(0x85, 0x97))
#: Errors of the machine, and of functions that it calls, for a damaged pickle.
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError,
    ValueError, struct.error,
)  # fmt: skip


class Machine(pickle._Unpickler):
    """The stack, the memo and the rules, for one pickle; a method ``load_NAME`` implements an opcode.

    Args:
        data: the bytes that contain it.
        start: its offset.
        find: resolves a module and a name; raises ``UnpicklingError`` if it is not listed.
        persistent: resolves a persistent reference.
        is_own: whether the program itself listed a class or function.
        callables: replacements for calling listed classes and functions.
        build: sets the state of an object of a listed class, and returns whether it is one.
        encoding: the encoding of Python 2 strings, ``"bytes"`` for bytes.

    Attributes:
        at: the offset of the next byte.
        done: whether the pickle has ended there.
        record: the name of its record in messages.
    """

    pop_mark: Callable[[], list[Any]]

    def __init__(
        self,
        data: bytes,
        start: int = 0,
        *,
        find: Callable[[str, str], Any],
        persistent: Callable[[Any], Any],
        is_own: Callable[[Any], bool],
        callables: Mapping[int, Callable[..., Any]],
        build: Callable[[Any, Any], bool],
        encoding: str = "utf-8",
    ):
        self.data = data
        self.at = start
        self.find = find
        self.persistent = persistent
        self.is_own = is_own
        self.callables = callables
        self.build = build
        self.encoding, self.errors = encoding, "strict"
        self.stack: list[Any] = []
        self.append = self.stack.append
        self.metastack: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        #: The objects named by the pickle, by id: nothing else is called.
        self.named: dict[int, Any] = {}
        self.allowance = _LEAST_ALLOWANCE + _ALLOWANCE * (len(data) - start)
        self.done = False
        self.record = "the file"

    def load(self) -> Any:
        """Runs the pickle; returns its object.

        Raises:
            UnpicklingError: for a name that is not listed.
            CorruptPickleError: for a pickle that makes no sense, or breaks another rule.
            OutsideError: with the exception of the program's own code.
        """
        data = self.data
        opcodes: dict[int, Any] = self.dispatch
        begin = self.at
        try:
            while not self.done:
                begin = self.at
                self.at = begin + 1
                opcodes[data[begin]](self)
            return self.stack.pop()
        except CorruptPickleError as error:
            raise CorruptPickleError(f"{error} (at byte {begin} of {self.record})") from error.__cause__
        except CorruptFileError:
            raise  # of another record, which it names
        except (*_FAULTS, pickle.UnpicklingError) as error:
            if isinstance(error, (Forbidden, Blocked)):
                raise
            raise CorruptPickleError(f"{self._reason(begin, error)} (at byte {begin} of {self.record})") from error

    def _reason(self, at: int, error: Exception) -> str:
        """The description of an error at an opcode."""
        if at >= len(self.data):
            return "the file ends before the pickle does"
        if self.data[at] not in self.dispatch:
            return f"Unsupported operand {self.data[at]}"
        text = str(error)
        if isinstance(error, (RuntimeError, TypeError, ValueError, pickle.UnpicklingError)) and text:
            return text
        if isinstance(error, struct.error):
            return "the file ends within an opcode"
        if isinstance(error, MemoryError):
            return "it asks for more memory than there is"
        return f"{type(error).__name__}: {text or 'the stack or the memo lacks what the opcode needs'}"

    # ------------------------------------------------------------ reading

    def read(self, length: int) -> bytes:
        """The next bytes.

        Raises:
            CorruptPickleError: if there are not enough bytes.
        """
        start = self.at
        end = start + length
        if end > len(self.data):
            raise CorruptPickleError(f"the file ends where {length} bytes were to come")
        self.at = end
        return self.data[start:end]

    def readline(self) -> bytes:
        """The bytes up to and with the end of a line."""
        end = self.data.find(b"\n", self.at) + 1
        if not end:
            raise CorruptPickleError("the file ends within a line")
        return self.read(end - self.at)

    def load_frame(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        if self.at + length > len(self.data):
            raise CorruptPickleError(f"a frame of {length} bytes is longer than the file")

    def load_bytearray8(self) -> None:
        self.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))

    def load_stop(self) -> None:
        self.done = True

    # ------------------------------------------------------------ limits

    def spend(self, amount: int) -> None:
        """Charges the budget for the values that a call copies or traverses.

        Raises:
            CorruptPickleError: if the budget is exceeded.
        """
        self.allowance -= amount
        if self.allowance < 0:
            raise CorruptPickleError("its calls copy or hash far more than there is in the file")

    def check_key(self, key: Any, depth: int = 0) -> None:
        """Checks that a key can be hashed and compared quickly: nested tuples may grow exponentially.

        Raises:
            CorruptPickleError: otherwise.
        """
        if isinstance(key, (tuple, frozenset)):
            if depth > _DEEPEST_KEY:
                raise CorruptPickleError(f"a key has tuples within tuples more than {_DEEPEST_KEY} deep")
            self.spend(len(key))
            for item in key:
                self.check_key(item, depth + 1)

    def check_keys(self, keys: Iterable[Any]) -> None:
        """``check_key`` of each."""
        for key in keys:
            if not isinstance(key, (str, int, float)):
                self.check_key(key)

    # ------------------------------------------------------------ names and calls

    def persistent_load(self, pid: Any) -> Any:
        """The object of a persistent reference."""
        return self.persistent(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The object of a name."""
        found = self.find(module, name)
        self.named[id(found)] = found
        return found

    def call(self, function: Any, args: Any, named: dict[str, Any] | None = None) -> Any:
        """Calls a listed object.

        Raises:
            CorruptPickleError: if it is not listed, or is not callable.
        """
        if id(function) not in self.named:
            raise CorruptPickleError(f"Trying to call reduce for unrecognized function {_shown(function)}")
        if not isinstance(args, tuple):
            raise CorruptPickleError(
                f"the arguments of {_shown(function)} are of type {type(args).__name__}, not tuple"
            )
        if self.is_own(function):
            return outside(function, *args, **(named or {}))
        how = self.callables.get(id(function))
        if how is None or named:
            raise CorruptPickleError(f"Trying to call reduce for unrecognized function {_shown(function)}")
        return how(self, *args)

    def make(self, cls: Any, args: Any, named: dict[str, Any] | None = None) -> Any:
        """An object of a listed class without state."""
        if not isinstance(cls, type) or id(cls) not in self.named:
            raise CorruptPickleError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_shown(cls)}"
            )
        if self.is_own(cls):
            return outside(cls.__new__, cls, *args, **(named or {}))
        return self.call(cls, args, named)

    def set_items(self, target: Any, items: list[Any], opcode: str) -> None:
        """Adds alternating keys and values to a dictionary."""
        if type(target) not in (dict, OrderedDict, Counter):
            if not (isinstance(target, dict) and self.is_own(type(target))):
                raise CorruptPickleError(
                    f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
                )
            target = _Own(target)
        if len(items) % 2:
            raise CorruptPickleError("a key has no value")
        keys = items[::2]
        if not _PLAIN.issuperset(map(type, keys)):
            self.check_keys(keys)
        if type(target) is dict:
            target.update(zip(keys, items[1::2]))
            return
        for key, value in zip(keys, items[1::2]):
            target[key] = value

    def add_items(self, target: Any, items: list[Any], verb: str) -> None:
        """Appends values to a list."""
        if type(target) is list:
            target.extend(items)
        elif isinstance(target, list) and self.is_own(type(target)):
            outside(target.extend, items)
        else:
            raise CorruptPickleError(f"Can only {verb} lists, but got {type(target)}")

    # ------------------------------------------------------------ opcodes that the rules are about

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self.call(self.stack[-1], args)

    def _instantiate(self, cls: Any, args: list[Any]) -> None:
        self.append(self.call(cls, tuple(args)))

    def load_newobj(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self.make(self.stack[-1], args)

    def load_newobj_ex(self) -> None:
        named, args = self.stack.pop(), self.stack.pop()
        if type(named) is not dict:
            raise CorruptPickleError(f"named arguments are of type {type(named).__name__}, not dict")
        self.stack[-1] = self.make(self.stack[-1], args, named)

    def load_build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if self.is_own(type(made)):
            outside(_set_own_state, made, state)
        elif not self.build(made, state):
            raise CorruptPickleError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(made)}"
            )

    def load_dict(self) -> None:
        items = self.pop_mark()
        made: dict[Any, Any] = {}
        self.set_items(made, items, "SETITEMS")
        self.append(made)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.set_items(self.stack[-1], [key, value], "SETITEM")

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.set_items(self.stack[-1], items, "SETITEMS")

    def load_append(self) -> None:
        item = self.stack.pop()
        self.add_items(self.stack[-1], [item], "append to")

    def load_appends(self) -> None:
        items = self.pop_mark()
        self.add_items(self.stack[-1], items, "extend")

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.check_keys(items)
        self.append(frozenset(items))

    def load_additems(self) -> None:
        items = self.pop_mark()
        target = self.stack[-1]
        if type(target) is not set:
            raise CorruptPickleError(f"Can only add items to sets, but got {type(target)}")
        self.check_keys(items)
        target.update(items)


def _numbers(code: bytes, form: str) -> Callable[[Machine], None]:
    """A reader of numbers, which reads consecutive numbers, as in lists, at once."""
    size = struct.calcsize(form)
    run = re.compile(b"(?s:%s.{%d}){16,}" % (re.escape(code), size))
    step = np.dtype([("code", "u1"), ("value", np.dtype(form))])
    unpack = struct.Struct(form).unpack_from
    first = code[0]

    def push(machine: Machine) -> None:
        at, data = machine.at, machine.data
        value = unpack(data, at)[0]  # raises where the file ends
        machine.at = at + size
        machine.append(value)
        if data[at + size] == first:
            found = run.match(data, at + size)
            if found is not None:
                machine.at = found.end()
                values = np.frombuffer(data, step, (found.end() - found.start()) // (size + 1), found.start())
                machine.stack += values["value"].tolist()

    return push


#: The implementation of each opcode.
Machine.dispatch = {code: getattr(Machine, pickle._Unpickler.dispatch[code].__name__) for code in _OPCODES} | {
    code[0]: _numbers(code, form) for code, form in ((b"K", "<B"), (b"M", "<H"), (b"J", "<i"), (b"G", ">d"))
}


def _set_own_state(made: Any, state: Any) -> None:
    """Sets the state of an object of the program's own class, as pickle does."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    plain, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if plain:
        made.__dict__.update(plain)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


class _Own:
    """A dictionary of a class of the program."""

    def __init__(self, target: Any):
        self.target = target

    def __setitem__(self, key: Any, value: Any) -> None:
        outside(self.target.__setitem__, key, value)


def _shown(value: Any) -> str:
    """A value in a message: other objects than classes and functions may be long, or infinite."""
    named = isinstance(value, (type, FunctionType, BuiltinFunctionType, MethodDescriptorType))
    return repr(value) if named else f"of type {type(value).__name__}"


# ---------------------------------------------------------------- calls of builtin types


def _filled(cls: Any, machine: Machine, *args: Any) -> Any:
    """A builtin container, made from at most one other."""
    if len(args) > 1:
        raise TypeError(f"{cls.__name__} expected at most 1 argument, got {len(args)}")
    for given in args:
        machine.spend(len(given))
        pairs = cls is OrderedDict and not isinstance(given, dict)
        machine.check_keys([pair[0] for pair in given] if pairs else given)
    return cls(*args)


def _bytearray(machine: Machine, given: Any = b"", *encoding: Any) -> bytearray:
    if not isinstance(given, (bytes, bytearray, str, list, tuple)):  # an integer would be a length
        raise TypeError(f"bytearray() of {type(given).__name__}")
    machine.spend(len(given))
    return bytearray(_encode(machine, given, *encoding) if isinstance(given, str) else given)


def _encode(machine: Machine, text: Any, encoding: Any = "utf-8") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise TypeError(f"encode() of {type(text).__name__} as {encoding!r:.40}")
    machine.spend(len(text))
    return text.encode(encoding)


def _complex(machine: Machine, *args: Any) -> complex:
    return complex(*args)


#: The calls of builtin types, by id, with checks of size and cost.
CALLS: dict[Any, Callable[..., Any]] = {
    **{cls: partial(_filled, cls) for cls in (set, OrderedDict, Counter)},
    bytearray: _bytearray,
    codecs.encode: _encode,
    complex: _complex,
}
