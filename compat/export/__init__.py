"""``torch.export``: models as graphs of operators and as StableHLO, saved without their Python code.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
    >>> torch.export.save(program, file)
    >>> torch.export.load(file).module()(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._decomp import core_aten_decompositions
from compat.export._files import load, save
from compat.export._program import export
from compat.export._sizes import Dim, dims
from compat.export.dynamic_shapes import AdditionalInputs, ShapesCollection
from compat.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from compat.export.graph_signature import (
    ExportBackwardSignature,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from compat.export.unflatten import UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram", "InputKind",
    "InputSpec", "ModuleCallEntry", "ModuleCallSignature", "OutputKind", "OutputSpec", "ShapesCollection",
    "UnflattenedModule", "default_decompositions", "dims", "export", "load", "save", "unflatten",
]  # fmt: skip

export_for_training = export


def default_decompositions() -> dict[Any, Callable[..., Any]]:
    """The table of ``run_decompositions()``, to add decompositions to or remove them from.

    Example:
        >>> table = torch.export.default_decompositions()
        >>> kept = table.pop(torch.ops.aten.silu.default)
    """
    return core_aten_decompositions()
