"""Writes printing_golden.json: how real PyTorch prints many tensors. Run it beside PyTorch (the ``parity`` extra)."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent


def arrays() -> dict[str, np.ndarray]:
    """Arrays by name, from which the cases are made, so that the test can make them without PyTorch."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal
    made: dict[str, np.ndarray] = {}
    for shape in [(), (1,), (5,), (30,), (2, 3), (3, 1), (2, 3, 4), (1, 2, 1, 3), (40,), (5, 40)]:
        label = "x".join(map(str, shape)) or "scalar"
        made[f"normal {label}"] = normal(shape).astype(np.float32)
        made[f"whole {label}"] = rng.integers(-9, 10, shape).astype(np.float32)
        made[f"int {label}"] = np.asarray(rng.integers(-100, 100, shape))
        made[f"bool {label}"] = np.asarray(rng.integers(0, 2, shape) > 0)
        made[f"complex {label}"] = np.asarray(normal(shape) + 1j * normal(shape), np.complex64)
        made[f"wide {label}"] = (normal(shape) * np.exp(normal(shape) * 6)).astype(np.float32)
    for scale in (1e-6, 1e-4, 1e-3, 1, 99, 1e3, 1e5, 1e8, 1e12, 1e30):
        made[f"times {scale:g}"] = (normal((2, 4)) * scale).astype(np.float32)
        made[f"double times {scale:g}"] = normal((2, 4)) * scale
        made[f"whole times {scale:g}"] = np.round(normal((2, 4)) * scale).astype(np.float32)
    nan, inf = np.nan, np.inf
    specials = {
        "zeros": [0, 0], "minus zero": [-0.0, 0.0], "nan": [nan], "inf": [inf, -inf],
        "nan one": [nan, 1], "inf half": [inf, 0.5],
        "nan tiny": [nan, 1e-7], "only specials": [nan, inf, -inf, 0], "inf big": [-inf, 1e9], "zero half": [0, 0.5],
        "thousand": [1000, 1], "thousand and one": [1001, 1], "1e8": [1e8], "over 1e8": [1.1e8], "1e-4": [1e-4],
        "under": [9e-5],
        "ones": [1, 1, 1], "minus": [-1, 1], "rounds": [0.99999, 0.00005], "third": [1 / 3], "max": [3.4e38],
        "denormal": [1e-40],
    }  # fmt: skip
    for name, values in specials.items():
        made[f"special {name}"] = np.array(values, np.float32)
        made[f"special double {name}"] = np.array(values, np.float64)
    made["complex specials"] = np.array([complex(nan, 1), complex(0, -inf), 1 - 2j, complex(-0.0, -0.0)], np.complex64)
    made["complex whole"] = np.array([[1 + 2j, -3 - 4j], [10j, 5]], np.complex64)
    made["complex wide"] = np.array([1e-5 + 1e5j, 1 + 1j], np.complex128)
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.uint16, np.uint32, np.uint64, np.float16):
        made[f"dtype {np.dtype(kind).name}"] = np.array([[1, 2], [3, 100]], kind)
    made["half fractions"] = np.array([0.1, 0.25, 1e-3], np.float16)
    made["int extremes"] = np.array([-(2**63), 2**63 - 1])
    for shape in [(0,), (0, 3), (2, 0), (1, 0, 2)]:
        for kind in (np.float32, np.float64, np.int64, np.bool_, np.complex64):
            made[f"empty {shape} {np.dtype(kind).name}"] = np.zeros(shape, kind)
    for shape in [
        (1001,),
        (2000,),
        (50, 50),
        (7, 200),
        (1100, 2),
        (12, 12, 12),
        (3, 3, 3, 3, 20),
        (1, 1, 1002),
        (6, 6, 40),
    ]:
        label = "x".join(map(str, shape))
        made[f"big {label}"] = normal(shape).astype(np.float32)
        made[f"big int {label}"] = rng.integers(0, 1000, shape)
        made[f"big complex {label}"] = (normal(shape) + 1j * normal(shape)).astype(np.complex64)
    return made


def cases() -> list[dict[str, Any]]:
    """Which arrays are printed, under which options, and with which suffix."""
    made = arrays()
    result: list[dict[str, Any]] = [dict(array=name, options={}, suffix="") for name in made]
    few = [
        "normal 2x3x4",
        "wide 30",
        "big 50x50",
        "big int 2000",
        "complex 5",
        "times 1e+08",
        "normal 5x40",
        "special nan one",
    ]
    settings: list[dict[str, Any]] = [
        dict(precision=2), dict(precision=8), dict(precision=0), dict(edgeitems=1), dict(edgeitems=5, threshold=10),
        dict(threshold=5),
        dict(linewidth=40), dict(linewidth=200), dict(profile="short"), dict(profile="full", linewidth=120),
        dict(sci_mode=True),
        dict(sci_mode=False), dict(profile="short", precision=6),
    ]  # fmt: skip
    result += [
        dict(array=n, options=o, suffix="")
        for n in few
        for o in settings
        if o.get("profile") != "full" or "big" not in n
    ]
    for suffix in ("requires_grad", "grad_fn"):
        result += [
            dict(array=n, options={}, suffix=suffix)
            for n in (
                "normal scalar",
                "normal 5",
                "normal 2x3",
                "normal 30",
                "double times 1",
                "complex 5",
                "empty (0, 3) float64",
                "wide 30",
            )
        ]
    return result


def main() -> None:
    import torch

    made, golden = arrays(), []
    for case in cases():
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**case["options"])
        t = torch.from_numpy(np.array(made[case["array"]]))
        if case["suffix"]:
            t.requires_grad_()
        if case["suffix"] == "grad_fn":
            t = t * 1
        golden.append(dict(case, text=repr(t)))
    (HERE / "printing_golden.json").write_text(json.dumps(golden, indent=0))
    print(len(golden), "cases")


if __name__ == "__main__":
    main()
