"""Ten models saved by ``torch.export.save``, run as StableHLO in a process that does not import compat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import compat as torch
from tests.compat.export.models import MODELS

OUTSIDE = """
import io, pathlib, sys, zipfile
import numpy as np
from funcgrad.tools.export import load
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    archive = zipfile.ZipFile(folder / "net.pt2")
    parts = [dict(np.load(io.BytesIO(archive.read(name)))) for name in ("weights.npz", "constants.npz")]
    given = [np.load(path) for path in sorted(folder.glob("x*.npy"))]
    found = load(archive.read("program.stablehlo"))(parts[0] | parts[1], given)
    for n, value in enumerate(found):
        np.save(folder / f"y{n}.npy", np.asarray(value))
print("compat" in sys.modules)
"""


def test_models_run_where_compat_is_not_imported(tmp_path: Path) -> None:
    expected: dict[str, list[Any]] = {}
    for name, (make, example) in MODELS.items():
        torch.manual_seed(0)
        net, x, folder = make().eval(), example(2), tmp_path / name
        folder.mkdir()
        torch.export.save(torch.export.export(net, x), folder / "net.pt2")
        for n, t in enumerate(x):
            np.save(folder / f"x{n}.npy", t.numpy())
        with torch.no_grad():
            expected[name] = torch.utils._pytree.tree_leaves(net(*x))
            loaded = torch.export.load(folder / "net.pt2").module()
            torch.testing.assert_close(torch.utils._pytree.tree_leaves(loaded(*x)), expected[name])
    run = subprocess.run([sys.executable, "-c", OUTSIDE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    for name, values in expected.items():
        found = [np.load(tmp_path / name / f"y{n}.npy") for n in range(len(values))]
        for y, t in zip(found, values):
            np.testing.assert_allclose(y, t.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
