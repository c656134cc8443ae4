"""The result of a few lines of PyTorch as plain data: the last expression's value, printed output, warnings, the
error.

``golden/make_scripts.py`` records real PyTorch's results; the tests compare them with compat's.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent / "golden"


#: PyTorch's warnings about layouts whose interfaces may still change, and about disabled checks; since 3.12 Python's
#: about forks.
_UNFINISHED = re.compile(
    "is in beta state|is in prototype stage|invariant checks are implicitly disabled|is multi-threaded, use of fork"
)


def plain(torch: Any, value: Any) -> Any:
    """A value as plain data: tensors as dtype, size, whether they require grad, and values; other objects as text."""
    inner = lambda v: plain(torch, v)
    if isinstance(value, torch.Tensor) and value.is_sparse:
        parts = {"indices": inner(value._indices()), "elements": inner(value._values())}
        return {"sparse": [list(value.shape), value.requires_grad], **parts}
    if isinstance(value, torch.Tensor) and "sparse" in str(value.layout):
        names = ["crow_indices", "col_indices"] if str(value.layout)[-1] == "r" else ["ccol_indices", "row_indices"]
        parts = {name: inner(getattr(value, name)()) for name in names} | {"elements": inner(value.detach().values())}
        return {"compressed": [text(str(value.layout)), list(value.shape), value.requires_grad], **parts}
    if isinstance(value, torch.Tensor):
        wide = value.dtype is torch.bfloat16 or "float8" in str(value.dtype)
        array = np.asarray(value.detach().to(torch.float32 if wide else value.dtype).numpy())
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], -1)
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": [dtype, list(value.shape), value.requires_grad], "values": array.ravel().tolist()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": str(value.dtype), "values": value.ravel().tolist()}
    if isinstance(value, dict):
        return {"mapping": type(value).__name__, "items": [[inner(k), inner(v)] for k, v in value.items()]}
    if type(value) in (list, tuple, set):
        return {type(value).__name__: [inner(v) for v in (sorted(value) if type(value) is set else value)]}
    return text(repr(value))


def text(shown: str) -> str:
    """A representation without the parts that differ between libraries and runs."""
    shown = re.sub(r" \(Triggered internally at [^)]*\)", "", re.sub(r"0x[0-9a-f]+", "0x", shown))
    shown = re.sub(r" 'aten::\S+' is only available for these backends: .*", "", shown, flags=re.DOTALL)
    return shown.replace("compat.", "torch.")


def graph(torch: Any, *results: Any) -> list[str]:
    """All nodes behind some tensors: name, edges, metadata of the expected gradients, saved values."""
    lines, number, nodes = [], {None: "-"}, []

    def place(node: Any) -> str:
        if node not in number:
            number[node] = str(len(nodes))
            nodes.append(node)
        return number[node]

    def saved(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            size = "x".join(map(str, value.shape))
            return f"{value.dtype}[{size}]{' leaf' * value.is_leaf}{' grad' * value.requires_grad}"
        return f"[{', '.join(map(saved, value))}]" if isinstance(value, tuple | list) else repr(value)

    lines.append(" ".join(f"{place(t.grad_fn)}:{t.output_nr}" for t in results))
    for node in nodes:  # grows
        edges = " ".join(f"{place(f)}:{nr}" for f, nr in node.next_functions)
        expected = " ".join(f"{m.dtype}{list(m.shape)}" for m in node._input_metadata)
        found = [f"{n[7:]}={saved(getattr(node, n))}" for n in sorted(dir(node)) if n.startswith("_saved_")]
        lines.append(f"{node.name()} ({edges}) {expected} {' '.join(found)}")
    return lines


def observe(torch: Any, source: str) -> dict[str, Any]:
    """The result of ``source``, after ``manual_seed(0)``; ``torch`` and its modules have their usual names."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed: list[str] = []
    scope = dict(
        torch=torch,
        nn=torch.nn,
        F=torch.nn.functional,
        init=torch.nn.init,
        optim=torch.optim,
        data=torch.utils.data,
        np=np,
        graph=lambda *results: graph(torch, *results),
        print=lambda *values: printed.append(" ".join(map(str, values))),
    )
    torch.manual_seed(0)
    torch.set_warn_always(True)  # otherwise warnings that are issued once would depend on the scripts before
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            exec(compile(tree, "<script>", "exec"), scope)
            if last is not None:
                found["value"] = plain(torch, eval(compile(ast.Expression(last.value), "<script>", "eval"), scope))
        except Exception as error:  # the error is the result
            found["error"] = [type(error).__name__, text(str(error))]
        finally:
            torch.set_warn_always(False)
    if printed:
        found["printed"] = [text(line) for line in printed]
    told = [[w.category.__name__, text(str(w.message))] for w in seen if not _UNFINISHED.search(str(w.message))]
    if told:
        found["warnings"] = told
    return json.loads(json.dumps(found))


def cases(family: str) -> list[Any]:
    """The scripts of a family, and PyTorch's results."""
    return list(json.loads((GOLDEN / f"{family}.json").read_text()).items())


#: Relative errors of a few dozen operations, by dtype.
TOLERANCE = {
    "float16": 5e-3,
    "bfloat16": 2e-2,
    "float32": 2e-6,
    "float64": 1e-12,
    "complex64": 2e-6,
    "complex128": 1e-12,
}


def assert_same(got: Any, want: Any, where: str = "", exact: bool = False) -> None:
    """Floats may differ by rounding unless ``exact``; everything else must be equal."""
    if isinstance(want, dict) and "tensor" in want:
        assert isinstance(got, dict) and got.get("tensor") == want["tensor"], f"{where}: {got}, wanted {want}"
        tolerance = 0 if exact else TOLERANCE.get(want["tensor"][0], 0)
        np.testing.assert_allclose(got["values"], want["values"], rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), f"{where}: {got}, wanted {want}"
        for key in want:
            assert_same(got[key], want[key], f"{where}/{key}", exact)
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{where}: {got}, wanted {want}"
        for i, (g, w) in enumerate(zip(got, want)):
            assert_same(g, w, f"{where}/{i}", exact)
    elif isinstance(want, float) and isinstance(got, float) and not exact:
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15, err_msg=where)
    else:
        assert got == want and type(got) is type(want), f"{where}: {got!r}, wanted {want!r}"
