"""The page on the architecture names modules that exist, and every folder of the core."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = set(re.findall(r"`((?:funcgrad|compat)/[\w/.]*)`", (ROOT / "docs" / "how" / "architecture.md").read_text()))


def test_named_modules_exist() -> None:
    assert len(NAMED) > 30
    missing = [path for path in NAMED if not (ROOT / path).exists() or (ROOT / path).is_dir() != path.endswith("/")]
    assert not missing


def test_every_folder_of_the_core_is_named() -> None:
    folders = {f"funcgrad/{path.parent.name}/" for path in (ROOT / "funcgrad").glob("*/__init__.py")}
    assert not folders - NAMED
