"""Compiled functions as bytes: ``export`` and ``load``, through ``jax.export``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import abstract
from funcgrad.core import trees
from funcgrad.interop import from_jax
from funcgrad.transforms.jit import Jitted, jit


class Exported:
    """A function compiled for certain shapes and dtypes, which needs none of the Python that made it.

    Calling it runs it; it may be called inside other functions under ``jit``. It has no derivative: export that too.

    Attributes:
        name: the function's.
        platforms: the platforms that it was lowered for.
        stablehlo: its StableHLO as text.
    """

    def __init__(self, exported: jax.export.Exported):
        self._exported = exported
        self._call = from_jax(exported.call)
        self.name = exported.fun_name
        self.platforms: tuple[str, ...] = tuple(exported.platforms)

    @property
    def stablehlo(self) -> str:
        return self._exported.mlir_module()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def serialize(self) -> bytes:
        """The function as bytes, for ``load``.

        Raises:
            ImportError: without the package ``flatbuffers``, in which JAX writes them.
        """
        try:
            return bytes(self._exported.serialize())
        except ImportError as error:
            raise ImportError("a function is written as bytes by flatbuffers: pip install funcgrad[export]") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the function to a file, for ``load``."""
        Path(path).write_bytes(self.serialize())

    def __repr__(self) -> str:
        inputs = ", ".join(f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in self._exported.in_avals)
        return f"<exported {self.name}({inputs}) for {', '.join(self.platforms)}>"


def export(f: Callable[..., Any], *args: Any, platforms: Sequence[str] | None = None, **kwargs: Any) -> Exported:
    """``f``, compiled for arguments like these, to be saved and loaded where ``f`` is not known.

    Args:
        f: takes and returns pytrees of arrays, in dicts, lists and tuples; or what ``jit`` returned.
        args, kwargs: arrays, numbers, or anything with a ``shape`` and a ``dtype``.
        platforms: ``"cpu"``, ``"cuda"``, ``"tpu"``, ...; by default what this process runs on.

    Returns:
        An ``Exported``, which takes arguments of these shapes and dtypes, returns what ``f`` does, and has
        ``serialize`` and ``save``.

    Raises:
        TypeError: if ``f`` is no function or returns what is no array, or an argument has neither a shape nor a dtype.
        ConcretizationError: where ``f`` asks for values, as ``if`` does.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> data = export(fg.grad(lambda x: fnp.sum(x**2)), fnp.ones(3)).serialize()
        >>> print(load(data)(fnp.array([1.0, 2.0, 3.0])))
        [2. 4. 6.]
    """
    jitted: Any = f if isinstance(f, Jitted) else jit(validate.function("export", f))
    types = trees.map(lambda x: _struct(abstract("export", x)), (args, kwargs))
    made = jax.export.export(jitted.compiled, platforms=platforms)
    return Exported(made(*types[0], **types[1]))


def _struct(type: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(type.shape, type.dtype)


def load(source: bytes | bytearray | str | os.PathLike[str]) -> Exported:
    """Loads a program that ``export`` made, from bytes or a file.

    Args:
        source: the bytes of ``Exported.serialize``, or the path of a file with them.

    Returns:
        The ``Exported``, to be called.

    Raises:
        FileNotFoundError: if there is no such file.
        TypeError: for what is neither bytes nor a path.
        struct.error: for bytes that are too few to be a function.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> doubled = load(export(lambda x: 2 * x, fnp.ones(2)).serialize())
        >>> print(doubled(fnp.array([1.0, 2.0])))
        [2. 4.]
    """
    data = source if isinstance(source, bytes | bytearray) else Path(source).read_bytes()
    return Exported(jax.export.deserialize(bytearray(data)))
