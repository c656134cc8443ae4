"""The opcodes of pickles, for the machine of ``compat._serialization.pickle_machine``: one function for each."""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.types.errors import CorruptFileError, CorruptPickleError
from compat._serialization.pickle_machine import Machine, outside

_HIGHEST_PROTOCOL = 5

#: Errors of the machine, and of functions that it calls, for a damaged pickle.
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError,
    ValueError, struct.error,
)  # fmt: skip


def run(machine: Machine) -> Any:
    """What the pickle makes.

    Raises:
        UnpicklingError: for a name that is not listed.
        CorruptPickleError: for a pickle that makes no sense, or breaks another rule.
        OutsideError: with what code of the program's own raised.
    """
    data, opcodes = machine.data, OPCODES
    begin = machine.at
    try:
        while not machine.done:
            begin = machine.at
            machine.at = begin + 1
            opcodes[data[begin]](machine)
        return machine.stack.pop()
    except CorruptPickleError as error:
        raise CorruptPickleError(f"{error} (at byte {begin} of {machine.record})") from error.__cause__
    except CorruptFileError:
        raise  # of another record, which it names
    except _FAULTS as error:
        raise CorruptPickleError(f"{_reason(machine, begin, error)} (at byte {begin} of {machine.record})") from error


def _reason(machine: Machine, at: int, error: Exception) -> str:
    """What to say of what went wrong at an opcode."""
    if at >= len(machine.data):
        return "the file ends before the pickle does"
    text = str(error)
    if isinstance(error, RuntimeError | TypeError | ValueError) and text:
        return text
    if isinstance(error, struct.error):
        return "the file ends within an opcode"
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    return f"{type(error).__name__}: {text or 'the stack or the memo lacks what the opcode needs'}"


def _unsupported(machine: Machine) -> None:
    raise CorruptPickleError(f"Unsupported operand {machine.data[machine.at - 1]}")


#: What each opcode does.
OPCODES: list[Callable[[Machine], None]] = [_unsupported] * 256


def _opcode(code: bytes) -> Callable[[Callable[[Machine], None]], Callable[[Machine], None]]:
    """Says that a function is what these opcodes, of a byte each, do."""

    def declare(function: Callable[[Machine], None]) -> Callable[[Machine], None]:
        for byte in code:
            OPCODES[byte] = function
        return function

    return declare


def _constant(code: bytes, make: Callable[[], Any]) -> None:
    def push(machine: Machine) -> None:
        machine.stack.append(make())

    _opcode(code)(push)


_constant(b"N", lambda: None)
_constant(b"\x88", lambda: True)
_constant(b"\x89", lambda: False)
_constant(b")", tuple)
_constant(b"\x8f", set)


@_opcode(b"]")
def _empty_list(machine: Machine) -> None:
    machine.stack.append([])


@_opcode(b"}")
def _empty_dict(machine: Machine) -> None:
    machine.stack.append({})


@_opcode(b"\x80")
def _proto(machine: Machine) -> None:
    protocol = machine.number(1)
    if protocol > _HIGHEST_PROTOCOL:
        raise CorruptPickleError(f"unsupported pickle protocol: {protocol}")


@_opcode(b"\x95")
def _frame(machine: Machine) -> None:
    length = machine.number(8)
    if machine.at + length > len(machine.data):
        raise CorruptPickleError(f"a frame of {length} bytes is longer than the file")


@_opcode(b".")
def _stop(machine: Machine) -> None:
    machine.done = True


#: What reads a number without sign, by how many bytes it has.
_UNSIGNED = {width: struct.Struct(form).unpack_from for width, form in ((1, "<B"), (4, "<I"), (8, "<Q"))}
_unpack4 = _UNSIGNED[4]

# numbers; of many in a row, as in lists, all are read at once


def _numbers(code: bytes, form: str) -> None:
    size = struct.calcsize(form)
    run = re.compile(b"(?s:%s.{%d}){16,}" % (re.escape(code), size))
    step = np.dtype([("code", "u1"), ("value", np.dtype(form))])
    unpack = struct.Struct(form).unpack_from
    first = code[0]

    def push(machine: Machine) -> None:
        at, data = machine.at, machine.data
        value = unpack(data, at)[0]  # raises where the file ends
        machine.at = at + size
        machine.stack.append(value)
        if data[at + size] == first:
            found = run.match(data, at + size)
            if found is not None:
                machine.at = found.end()
                values = np.frombuffer(data, step, (found.end() - found.start()) // (size + 1), found.start())
                machine.stack += values["value"].tolist()

    _opcode(code)(push)


_numbers(b"K", "<B")
_numbers(b"M", "<H")
_numbers(b"J", "<i")
_numbers(b"G", ">d")


@_opcode(b"I")
def _int(machine: Machine) -> None:
    text = machine.line()
    machine.stack.append({b"00": False, b"01": True}[text] if text in (b"00", b"01") else int(text))


@_opcode(b"L")
def _long(machine: Machine) -> None:
    machine.stack.append(int(machine.line().removesuffix(b"L")))


@_opcode(b"F")
def _float(machine: Machine) -> None:
    machine.stack.append(float(machine.line()))


def _sized(code: bytes, width: int, make: Callable[[Machine, bytes], Any]) -> None:
    """An opcode with a length of ``width`` bytes, and so many bytes behind it."""
    unpack = _UNSIGNED[width]

    def push(machine: Machine) -> None:
        data = machine.data
        start = machine.at + width
        machine.at = end = start + unpack(data, machine.at)[0]
        if end > len(data):
            raise CorruptPickleError(f"the file ends where {end - start} bytes were to come")
        machine.stack.append(make(machine, data[start:end]))

    _opcode(code)(push)


def _python_2_text(machine: Machine, found: bytes) -> Any:
    return found if machine.encoding == "bytes" else found.decode(machine.encoding)


def _text(machine: Machine, found: bytes) -> str:
    return found.decode("utf-8", "surrogatepass")


_sized(b"\x8a", 1, lambda machine, found: int.from_bytes(found, "little", signed=True))
_sized(b"\x8b", 4, lambda machine, found: int.from_bytes(found, "little", signed=True))
_sized(b"X", 4, _text)
_sized(b"\x8c", 1, _text)
_sized(b"\x8d", 8, _text)
_sized(b"T", 4, _python_2_text)
_sized(b"U", 1, _python_2_text)
_sized(b"B", 4, lambda machine, found: found)
_sized(b"C", 1, lambda machine, found: found)
_sized(b"\x8e", 8, lambda machine, found: found)
_sized(b"\x96", 8, lambda machine, found: bytearray(found))


@_opcode(b"S")
def _string(machine: Machine) -> None:
    text = machine.line()
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[:1] != text[-1:]:
        raise CorruptPickleError("a string has no quotes")
    unescape: Any = vars(codecs)["escape_decode"]
    machine.stack.append(_python_2_text(machine, unescape(text[1:-1])[0]))


@_opcode(b"V")
def _unicode(machine: Machine) -> None:
    machine.stack.append(machine.line().decode("raw-unicode-escape"))


# the stack and the memo


@_opcode(b"(")
def _mark(machine: Machine) -> None:
    machine.stacks.append(machine.stack)
    machine.stack = []


@_opcode(b"0")
def _pop(machine: Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


@_opcode(b"1")
def _drop(machine: Machine) -> None:
    machine.pop_mark()


@_opcode(b"2")
def _dup(machine: Machine) -> None:
    machine.stack.append(machine.stack[-1])


@_opcode(b"\x94")
def _memoize(machine: Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


@_opcode(b"q")
def _put(machine: Machine) -> None:
    machine.memo[machine.data[machine.at]] = machine.stack[-1]
    machine.at += 1


@_opcode(b"h")
def _get(machine: Machine) -> None:
    machine.stack.append(machine.memo[machine.data[machine.at]])
    machine.at += 1


@_opcode(b"r")
def _long_put(machine: Machine) -> None:
    machine.memo[_unpack4(machine.data, machine.at)[0]] = machine.stack[-1]
    machine.at += 4


@_opcode(b"j")
def _long_get(machine: Machine) -> None:
    machine.stack.append(machine.memo[_unpack4(machine.data, machine.at)[0]])
    machine.at += 4


@_opcode(b"p")
def _text_put(machine: Machine) -> None:
    machine.memo[int(machine.line())] = machine.stack[-1]


@_opcode(b"g")
def _text_get(machine: Machine) -> None:
    machine.stack.append(machine.memo[int(machine.line())])


# containers


@_opcode(b"t")
def _tuple(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.stack.append(tuple(items))


@_opcode(b"\x85\x86\x87")
def _short_tuple(machine: Machine) -> None:
    count = machine.data[machine.at - 1] - 0x84
    stack = machine.stack
    if len(stack) < count:
        raise CorruptPickleError(f"a tuple of {count} is made of a stack of {len(stack)}")
    stack[-count:] = [tuple(stack[-count:])]


@_opcode(b"l")
def _list(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.stack.append(items)


@_opcode(b"d")
def _dict(machine: Machine) -> None:
    items = machine.pop_mark()
    made: dict[Any, Any] = {}
    machine.set_items(made, items, "SETITEMS")
    machine.stack.append(made)


@_opcode(b"\x91")
def _frozenset(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.check_keys(items)
    machine.stack.append(frozenset(items))


@_opcode(b"a")
def _append(machine: Machine) -> None:
    item = machine.stack.pop()
    machine.add_items(machine.stack[-1], [item], "append to")


@_opcode(b"e")
def _appends(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.add_items(machine.stack[-1], items, "extend")


@_opcode(b"s")
def _set_item(machine: Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.set_items(machine.stack[-1], [key, value], "SETITEM")


@_opcode(b"u")
def _set_items(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.set_items(machine.stack[-1], items, "SETITEMS")


@_opcode(b"\x90")
def _add_items(machine: Machine) -> None:
    items = machine.pop_mark()
    target = machine.stack[-1]
    if type(target) is not set:
        raise CorruptPickleError(f"Can only add items to sets, but got {type(target)}")
    machine.check_keys(items)
    target.update(items)


# names, calls and states


@_opcode(b"c")
def _global(machine: Machine) -> None:
    machine.name(machine.line().decode(), machine.line().decode())


@_opcode(b"\x93")
def _stack_global(machine: Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise CorruptPickleError("STACK_GLOBAL requires str")
    machine.name(module, name)


@_opcode(b"R")
def _reduce(machine: Machine) -> None:
    args = machine.stack.pop()
    machine.stack[-1] = machine.call(machine.stack[-1], args)


@_opcode(b"\x81")
def _new_object(machine: Machine) -> None:
    args = machine.stack.pop()
    machine.stack[-1] = machine.make(machine.stack[-1], args)


@_opcode(b"\x92")
def _new_object_ex(machine: Machine) -> None:
    named, args = machine.stack.pop(), machine.stack.pop()
    if type(named) is not dict:
        raise CorruptPickleError(f"named arguments are of type {type(named).__name__}, not dict")
    machine.stack[-1] = machine.make(machine.stack[-1], args, named)


@_opcode(b"i")
def _instance(machine: Machine) -> None:
    args = tuple(machine.pop_mark())
    machine.name(machine.line().decode(), machine.line().decode())
    machine.stack[-1] = machine.call(machine.stack[-1], args)


@_opcode(b"o")
def _object(machine: Machine) -> None:
    cls, *args = machine.pop_mark()
    machine.stack.append(machine.call(cls, tuple(args)))


@_opcode(b"b")
def _build(machine: Machine) -> None:
    state = machine.stack.pop()
    made = machine.stack[-1]
    if machine.is_own(type(made)):
        outside(_set_own_state, made, state)
    elif not machine.build(made, state):
        raise CorruptPickleError(
            "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
            f"{type(made)}"
        )


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


@_opcode(b"Q")
def _persistent(machine: Machine) -> None:
    machine.stack[-1] = machine.persistent(machine.stack[-1])
