"""``torch.export.exported_program``: programs, and the calls of modules in them."""

from __future__ import annotations

from compat.export._module_calls import ModuleCallEntry, ModuleCallSignature
from compat.export._program import ExportedProgram

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]
