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
    """A function compiled for certain shapes and dtypes, independent of its Python code.

    It may also be called inside other functions under ``jit``. It is not differentiable: export the derivative too.

    Attributes:
        name: the name of the function.
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
        """The serialized function, for ``load``.

        Raises:
            ImportError: without the package ``flatbuffers``, which JAX needs for this.
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
    """``f`` compiled for arguments of these types, to be saved and loaded without its code.

    Args:
        f: takes and returns pytrees of arrays, in dicts, lists and tuples; or the result of ``jit``.
        args, kwargs: arrays, numbers, or anything with a ``shape`` and a ``dtype``.
        platforms: ``"cpu"``, ``"cuda"``, ``"tpu"``, ...; by default that of this process.

    Returns:
        An ``Exported``, which takes arguments of these shapes and dtypes and has ``serialize`` and ``save``.

    Raises:
        TypeError: if ``f`` is not a function or returns a non-array, or an argument has neither a shape nor a dtype.
        ConcretizationError: if ``f`` needs the value of an array.

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
    """Loads a function that ``export`` serialized, from bytes or a file.

    Args:
        source: the bytes of ``Exported.serialize``, or the path of a file with them.

    Returns:
        The ``Exported``.

    Raises:
        FileNotFoundError: if there is no such file.
        TypeError: for an argument that is neither bytes nor a path.
        struct.error: for truncated bytes.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> doubled = load(export(lambda x: 2 * x, fnp.ones(2)).serialize())
        >>> print(doubled(fnp.array([1.0, 2.0])))
        [2. 4.]
    """
    data = source if isinstance(source, (bytes, bytearray)) else Path(source).read_bytes()
    return Exported(jax.export.deserialize(bytearray(data)))
