"""The Mersenne Twister of PyTorch's CPU generator, with PyTorch's own state layout.

Source of the algorithm: M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
uniform pseudorandom number generator", ACM TOMACS 8 (1998). The stream itself comes from ``numpy.random.RandomState``,
whose seeding and stream NumPy guarantees never to change and whose loop is C.
"""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

__all__ = ["DEFAULT_SEED", "STATE_SIZE", "Engine"]

#: The default seed of ``torch.Generator()``.
DEFAULT_SEED = 67280421310721

_WORDS = 624
_SHIFT = np.uint64(32)

# The layout of torch.get_rng_state(), byte for byte.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", (_WORDS,)),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_valid", "<i4"),
        ("gap", "<u4"),
        ("float_normal", "<f4"),
        ("float_valid", "<u4"),
    ]
)

#: Bytes in NumPy's own: the words, and the place among them, as ``mt19937_state`` has them in C.
_MT19937 = 4 * _WORDS + 4
#: Bytes in a state.
STATE_SIZE = _STATE.itemsize


class _Words:
    """The capsule of a bit generator, whose lock is held."""

    __slots__ = ("bits",)

    def __init__(self, bits: np.random.MT19937) -> None:
        self.bits = bits

    def __enter__(self) -> Any:
        self.bits.lock.acquire()
        return self.bits.capsule

    def __exit__(self, *exc: object) -> None:
        self.bits.lock.release()


class _Unseeded(ISeedSequence):
    """Stands for a seed where the engine seeds the stream itself: NumPy would mix one into 624 words first."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


class Engine:
    """A stream of 32-bit words equal to that of ``torch.Generator()``, and its cached normal numbers.

    ``seed`` is any integer in ``[-2**63, 2**64)``; negative ones wrap, and only the low 32 bits reach the stream, as in
    PyTorch.

    >>> engine = Engine(0)
    >>> engine.next32()
    2357136044
    >>> engine.random32(2)
    array([2546248239, 3071714933], dtype=uint32)
    """

    __slots__ = ("_bits", "_parked", "_seed", "_stream", "next_double_normal", "next_float_normal")

    #: The cached second normal of the last scalar Box-Muller pair, or None.
    next_double_normal: float | None
    #: A field of PyTorch's state; nothing on the CPU uses it.
    next_float_normal: float | None

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._bits = np.random.MT19937(_Unseeded())  # type: ignore[arg-type]  # any ISeedSequence
        self._stream = np.random.RandomState(self._bits)  # seeds it as PyTorch does, and has its state
        self.seed(seed)

    # ---- seeding

    def seed(self, seed: int) -> Engine:
        """Restarts the stream from ``seed`` and drops the cached normal; returns the engine.

        Raises ValueError for a seed outside ``[-2**63, 2**64)``.
        """
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        self._stream.seed(self._seed & 0xFFFF_FFFF)
        self._parked = 0  # the "next" PyTorch reports while the word block is used up: 0 before any draw, then 624
        self.next_double_normal = None
        self.next_float_normal = None
        return self

    def seed_from_entropy(self) -> int:
        """Seed with 64 bits from the operating system, as ``Generator.seed()`` does; returns the seed."""
        self.seed(secrets.randbits(64))
        return self._seed

    @property
    def initial_seed(self) -> int:
        """The seed last given, in ``[0, 2**64)``."""
        return self._seed

    # ---- drawing

    def next32(self) -> int:
        """The next 32-bit word."""
        self._parked = _WORDS
        return int(self._bits.random_raw())

    def next64(self) -> int:
        """The next two words as one 64-bit number, the first word high."""
        self._parked = _WORDS
        high, low = self._bits.random_raw(2).tolist()
        return int(high << 32 | low)

    def random32(self, n: int) -> np.ndarray:
        """The next ``n`` words: uint32, shape ``(n,)``."""
        if n:
            self._parked = _WORDS
        return self._bits.random_raw(n).astype(np.uint32)

    def random64(self, n: int) -> np.ndarray:
        """The next ``n`` pairs of words as 64-bit numbers: uint64, shape ``(n,)``."""
        if n:
            self._parked = _WORDS
        words = self._bits.random_raw(2 * n)
        return words[::2] << _SHIFT | words[1::2]

    def words(self, n: int) -> _Words:
        """Context that gives NumPy's capsule of the stream to C code that draws ``n`` words or more of it, or none if
        ``n`` is not positive. Other threads wait."""
        if n > 0:
            self._parked = _WORDS
        return _Words(self._bits)

    # ---- state

    def get_state(self) -> np.ndarray:
        """The whole state as the 5056 bytes of ``torch.get_rng_state()``: uint8, shape ``(5056,)``.

        >>> engine = Engine(3)
        >>> state = engine.get_state()
        >>> first = engine.next32()
        >>> engine.set_state(state).next32() == first
        True
        """
        words, position = self._words()
        state = np.zeros((), _STATE)
        state["seed"] = self._seed
        state["seeded"] = 1
        state["words"] = words
        state["next"] = self._parked if position == _WORDS else position
        state["left"] = _WORDS + 1 - position
        if self.next_double_normal is not None:
            state["normal_y"] = self.next_double_normal
            state["normal_valid"] = 1
        if self.next_float_normal is not None:
            state["float_normal"] = self.next_float_normal
            state["float_valid"] = 1
        return state.reshape(1).view(np.uint8).copy()

    def set_state(self, state: np.ndarray) -> Engine:
        """Sets the state to one of ``get_state`` or ``torch.get_rng_state().numpy()``; returns the engine.

        Raises TypeError when ``state`` is not uint8 and RuntimeError when it is not a state; the engine is then
        unchanged.
        """
        state = np.asarray(state)
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_SIZE} "
                f"but found the input RNG state size to be {state.size}"
            )
        fields = np.frombuffer(state.tobytes(), _STATE)[0]
        left, position = int(fields["left"]), int(fields["next"])
        # Words left and position always add up, except that with one left the whole block is used up already.
        consistent = left == 1 or left + position == _WORDS + 1
        if fields["seeded"] != 1 or not 0 < left <= _WORDS or position > _WORDS or not consistent:
            raise RuntimeError("Invalid mt19937 state")
        self._seed = int(fields["seed"])
        key = {"key": fields["words"].astype(np.uint32), "pos": _WORDS + 1 - left}
        self._stream.set_state({"bit_generator": "MT19937", "state": key})
        self._parked = position if left == 1 else _WORDS
        self.next_double_normal = float(fields["normal_y"]) if fields["normal_valid"] else None
        self.next_float_normal = float(fields["float_normal"]) if fields["float_valid"] & 0xFF else None
        return self

    def mark(self) -> Any:
        """The present position, for ``back``; much faster than a state."""
        address = self._bits.ctypes.state_address
        words = ctypes.string_at(address, _MT19937)
        return address, words, self._seed, self._parked, self.next_double_normal, self.next_float_normal

    def back(self, mark: Any) -> None:
        """Restores the marked state."""
        address, words, *others = mark
        ctypes.memmove(address, words, _MT19937)
        self._seed, self._parked, self.next_double_normal, self.next_float_normal = others

    def _words(self) -> tuple[np.ndarray, int]:
        """The block of 624 words and how many of them are used up."""
        held = np.frombuffer(ctypes.string_at(self._bits.ctypes.state_address, _MT19937), np.uint32)
        return held[:_WORDS], int(held[_WORDS])

    def clone(self) -> Engine:
        """An independent engine in the same state."""
        return Engine(0).set_state(self.get_state())

    @contextmanager
    def fork(self) -> Iterator[Engine]:
        """Context at whose end the engine's state is restored.

        >>> engine = Engine(1)
        >>> with engine.fork():
        ...     inside = engine.next32()
        >>> engine.next32() == inside
        True
        """
        state = self.get_state()
        try:
            yield self
        finally:
            self.set_state(state)
