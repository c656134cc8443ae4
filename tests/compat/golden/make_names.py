"""Records the names of real PyTorch's modules, the module of each of its public classes, and private names of classes.

    python tests/compat/golden/make_names.py      # where torch==2.13.0 is installed

It lists the modules of packages that compat has, and the classes that are found in ``PLACES``.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
#: Folders whose modules programs do not import.
INNER = ("_inductor", "testing._internal", "_dynamo", "_export", "onnx._internal", "ao", "_refs", "_prims")
#: Those inside of these folders that programs do import.
USED = ("_dynamo.backends",)
PLACES = """
amp autograd autograd.forward_ad autograd.function autograd.functional autograd.grad_mode autograd.graph
autograd.profiler cpu.amp cuda cuda.amp distributed distributions distributions.constraints distributions.transforms
func futures fx fx.graph fx.interpreter fx.node fx.proxy hub jit library masked multiprocessing nn nn.attention
nn.attention.bias nn.attention.flex_attention nn.modules nn.modules.container nn.modules.lazy nn.modules.module
nn.parallel nn.parameter nn.utils.parametrize nn.utils.prune nn.utils.rnn optim optim.lr_scheduler optim.optimizer
optim.swa_utils overrides profiler quasirandom serialization sparse storage testing utils utils.benchmark
utils.checkpoint utils.data utils.data.dataset utils.data.sampler utils.dlpack utils.flop_counter utils.hooks
utils.module_tracker utils.weak utils._python_dispatch utils._pytree
"""
SUBCLASSED = "nn optim optim.lr_scheduler distributions autograd utils.data"


def module_names() -> list[str]:
    """Every module, found by its file or in ``sys.modules`` after PyTorch is imported; without ``torch.``."""
    root = Path(torch.__file__).parent
    found = {name for name in sys.modules if name.startswith("torch.")}
    for path in [*root.rglob("*.py"), *root.glob("*.so")]:
        parts = path.relative_to(root).with_name(path.name.split(".")[0]).parts
        found.add(".".join(("torch", *parts[: -1 if parts[-1] == "__init__" else None])))
    names = {name.removeprefix("torch.") for name in found} - {"torch"}
    inside = {n for n in names if n.count(".") > 1 and n.startswith(tuple(f"{folder}." for folder in INNER))}
    return sorted(n for n in names if n not in inside or n.startswith(tuple(f"{folder}." for folder in USED)))


def class_modules() -> dict[str, str]:
    """The ``__module__`` of each public class."""
    found = {}
    for place in ["", *PLACES.split()]:
        module = importlib.import_module(f"torch.{place}".removesuffix("."))
        for name in dir(module):
            value = getattr(module, name, None)
            if isinstance(value, type) and not name.startswith("_") and value.__module__.startswith("torch"):
                found[f"{place}.{name}".removeprefix(".")] = value.__module__
    return found


def private_names() -> dict[str, str]:
    """The private names of tensors, and of the classes of modules in which programs subclass them."""
    found = {"": {name for name in dir(torch.Tensor) if name.startswith("_")}}
    for place in SUBCLASSED.split():
        module = importlib.import_module(f"torch.{place}")
        kinds = [v for v in vars(module).values() if isinstance(v, type)]
        found[place] = {name for kind in kinds for name in dir(kind) if name.startswith("_")}
    return {place: " ".join(sorted(n for n in names if not n.startswith("__"))) for place, names in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    modules: dict[str, list[str]] = {}
    for name in module_names():
        folder, _, last = name.rpartition(".")
        modules.setdefault(folder, []).append(last)
    classes: dict[str, list[str]] = {}
    for name, module in class_modules().items():
        classes.setdefault(module.removeprefix("torch").removeprefix("."), []).append(name)
    private = {place: [names] for place, names in private_names().items()}
    for file, table in (("modules", modules), ("classes", classes), ("private", private)):
        lines = [f"{key}: {' '.join(names)}" for key, names in sorted(table.items())]
        (HERE / f"{file}.txt").write_text("\n".join(lines) + "\n")
