"""``torch.export``: models as graphs of operators and as StableHLO, saved without their Python code.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
    >>> torch.export.save(program, file)
    >>> torch.export.load(file).module()(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
"""

from compat.export._files import load, save
from compat.export._program import ExportedProgram, export
from compat.export._sizes import Dim, dims
from compat.export.dynamic_shapes import AdditionalInputs, ShapesCollection
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
    "InputSpec", "OutputKind", "OutputSpec", "ShapesCollection", "UnflattenedModule", "dims", "export", "load",
    "save", "unflatten",
]  # fmt: skip

export_for_training = export
