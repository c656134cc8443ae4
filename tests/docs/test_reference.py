"""The reference has exactly one entry for every public name."""

from __future__ import annotations

import importlib
import re
import types
from collections import Counter

import pytest

pytest.importorskip("pygments")
from tools.docs import catalog, families, names, operators, render

#: Namespaces whose callables are listed without the reference's own code.
NAMESPACES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.linalg", "torch.fft", "torch.special", "torch.func", "torch.autograd", "torch.autograd.functional",
    "torch.autograd.forward_ad", "torch.autograd.graph", "torch.distributions", "torch.utils.data",
    "torch.utils.checkpoint", "torch.nn.utils", "torch.sparse", "torch.masked", "torch.signal.windows", "torch.cuda",
    "torch.library", "torch.overrides", "torch.random", "torch.amp", "torch.compiler", "torch.jit", "torch.testing",
    "funcgrad", "funcgrad.numpy", "funcgrad.linalg", "funcgrad.fft", "funcgrad.lax", "funcgrad.nn", "funcgrad.random",
    "funcgrad.special", "funcgrad.trees", "funcgrad.parallel", "funcgrad.initializers", "funcgrad.scipy.linalg",
    "funcgrad.lax.linalg", "funcgrad.numpy.linalg", "funcgrad.numpy.fft", "funcgrad.scipy.special",
    "funcgrad.nn.initializers", "torch.functional", "torch.mps", "torch.xpu", "torch.backends.mps",
    "torch.multiprocessing", "torch.nn.parameter", "torch.nn.modules.utils", "torch.distributions.utils",
    "torch.utils.hooks", "torch.fx.node", "torch.utils.data.dataloader", "torch.distributed",
)  # fmt: skip
#: Names that a module imports for its own use, or defines for other modules.
HELPERS = {
    "typing",
    "collections",
    "builtins",
    "importlib",
    "contextlib",
    "functools",
    "itertools",
    "abc",
    "jaxlib",
    "numpy",
}
CORE = ("compat._core.", "compat._absent", "funcgrad.core.", "funcgrad.primitives.", "funcgrad.arguments.")


def of(address: str) -> object:
    first, *rest = address.split(".")
    found: object = importlib.import_module("compat" if first == "torch" else first)
    for part in rest:
        if isinstance(found, types.ModuleType) and not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_callable_has_a_place(namespace: str) -> None:
    owner = of(namespace)
    missing = []
    for name in getattr(owner, "__all__", None) or dir(owner):
        value = None if name.startswith("_") else getattr(owner, name, None)
        if not callable(value) or isinstance(value, types.ModuleType | types.GenericAlias):
            continue
        home = str(getattr(value, "__module__", None) or type(value).__module__)
        # Names of the package count wherever they are defined; elsewhere names from the core are a module's own
        # imports.
        helper = home.partition(".")[0] in HELPERS or (home.startswith(CORE) and namespace.count(".") > 0)
        if f"{namespace}.{name}" not in catalog.places() and not helper:
            missing.append(f"{name} of {home}")
    assert missing == []


@pytest.mark.parametrize(
    "address",
    [
        "torch.nn.modules.activation.MultiheadAttention", "torch.nn.modules.pooling.LPPool2d", "torch.sparse.mm",
        "torch.nn.UninitializedParameter", "torch.utils.swap_tensors", "torch.backends.mps.is_available",
        "torch.functional.einsum", "funcgrad.numpy.floating", "funcgrad.linalg.LinAlgError",
        "funcgrad.lax.with_sharding_constraint",
    ],
)  # fmt: skip
def test_names_that_another_file_writes_have_a_place(address: str) -> None:
    assert callable(of(address)) and address in catalog.places()


def test_classes_have_entries_of_their_own() -> None:
    joined = {e.title: {n.value for n in e.names if isinstance(n.value, type)} for e in catalog.entries()}
    assert {title: kinds for title, kinds in joined.items() if len(kinds) > 1} == {}


def test_no_name_has_two_places() -> None:
    count = Counter(n.address for page in catalog.pages() for entry in page.entries for n in entry.names)
    assert [name for name, n in count.items() if n > 1] == []
    assert set(count) == {n.address for n in names.public_names()} == set(catalog.places())


def test_every_anchor_is_on_its_page_once() -> None:
    for page in catalog.pages():
        ids = re.findall(r' id="([^"]+)"', render.page_html(page)[0])
        assert [i for i, n in Counter(ids).items() if n > 1] == []
        assert {n.address for e in page.entries for n in e.names} <= set(ids)


def test_pages_are_light() -> None:
    heavy = {page.path: size for page in catalog.pages() if (size := len(render.page_html(page)[0].encode())) > 125_000}
    assert heavy == {}


def test_families_name_existing_modules() -> None:
    missing = []
    for path, _, _, modules in families.FAMILIES:
        package = "funcgrad" if path.startswith("funcgrad") else "compat"
        for module in modules.split():
            try:
                importlib.import_module(f"{package}.{module}")
            except ImportError:
                missing.append(f"{path}: {package}.{module}")
    known = {"funcgrad: funcgrad.trees", "_compile"}
    assert [m for m in missing if not m.endswith((".trees", "._compile"))] == [], known


@pytest.mark.parametrize(
    ("address", "signature"),
    [
        ("torch.exp", "(input: Tensor, *, out: Tensor | None = None) → Tensor"),
        ("torch.Tensor.exp", "() → Tensor"),
        ("torch.nn.functional.relu", "(input: Tensor, inplace: bool = False) → Tensor"),
        ("funcgrad.numpy.sin", "(x, /)"),
    ],
)
def test_signatures_are_those_that_users_write(address: str, signature: str) -> None:
    found = next(n for n in names.public_names() if n.address == address)
    assert render.arguments(found.value, found.module) == signature


def test_operators_have_pytorchs_node_and_saved_tensors() -> None:
    addmm = operators.describe(of("torch.addmm"))
    assert addmm is not None and addmm.node == "AddmmBackward0" and {"mat1", "mat2", "alpha"} <= set(addmm.saves)
    relu = operators.describe(of("torch.nn.functional.relu"))
    assert relu is not None and relu.uses == ("ReluBackward0",)


def test_variants_are_one_entry() -> None:
    entry = next(e for e in catalog.entries() if e.title == "torch.exp")
    assert {n.address for n in entry.names} >= {"torch.exp", "torch.exp_", "torch.Tensor.exp", "torch.Tensor.exp_"}
