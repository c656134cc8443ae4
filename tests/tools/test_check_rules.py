"""The checker of the repository rules reports violations, and nothing else."""

from __future__ import annotations

import pytest

from tools import check_rules


def found(path: str, source: str) -> list[str]:
    return [f"{line}: {message}" for line, message in check_rules.findings(path, source)]


@pytest.mark.parametrize(
    "source",
    [
        "import jax\njax.grad(f)",
        "import jax as j\nj.vmap(f)",
        "import jax\ng = jax.value_and_grad",
        "import jax\ngetattr(jax, 'vjp')",
        "import jax.numpy as jnp\njnp.vectorize(f)",
        "import jax\njax.lax.stop_gradient(x)",
        "from jax import lax\nlax.stop_gradient(x)",
        "from jax import grad",
        "from jax import grad as g",
        "from jax import *",
        "from jax.interpreters import ad",
        "from jax.interpreters.ad import JVPTracer",
        "import jax.interpreters.ad",
        "import jax.interpreters.batching as b",
        "import jax._src.interpreters.ad as ad",
        "from jax import custom_derivatives\ncustom_derivatives.custom_vjp",
        "def f():\n    import jax\n    return jax.checkpoint",
        "class A:\n    from jax import jvp",
        "@jax.custom_vjp\ndef f(): ...\nimport jax",
        "import jax\njax.custom_batching.custom_vmap(f)",
    ],
)
def test_jax_autodiff_is_found(source: str) -> None:
    for path in ("funcgrad/x.py", "compat/nn/x.py"):
        assert found(path, source)
    assert found("funcgrad/interop.py", source) == []
    assert found("tests/x.py", source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import jax\njax.jit(f).lower(jax.numpy.zeros(3))",
        "import funcgrad\nfuncgrad.grad(f)",
        "from funcgrad import vmap",
        "from jax import lax\nlax.exp_p, lax.scan, lax.linalg",
        "import jax\njax.gradient, jax.tree_util.tree_map",
        "grad = 1\nx.grad",
        "from .jax import grad",
        "from jax.interpreters import mlir",
    ],
)
def test_other_code_is_accepted(source: str) -> None:
    assert found("funcgrad/x.py", source) == []


def test_length() -> None:
    assert found("funcgrad/x.py", "x = 1\n" * 599) == []
    assert found("tests/x.py", "x = 1\n" * 600) == ["600: 600 lines; a file has fewer than 600"]


def test_modules_per_folder() -> None:
    files = [f"compat/nn/utils/m{i}.py" for i in range(26)]
    assert list(check_rules.crowded_folders(files[:25])) == []
    assert list(check_rules.crowded_folders(files)) == ["compat/nn/utils: 26 modules; a folder has at most 25"]
    assert list(check_rules.crowded_folders([f"compat/nn/modules/m{i}.py" for i in range(99)])) == []
    assert list(check_rules.crowded_folders([f"compat/m{i}.py" for i in range(45)])) == []
    assert len(list(check_rules.crowded_folders([f"compat/m{i}.py" for i in range(46)]))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "operations are noted down",
        "Windows are written out first",
        "one door is the front door",
        "all examples of a ``vmap``",
        "where a type has a say",
        "whoever asks for it",
        "a level of duals",
        "the stated backward",
        "sums of halves",
        "the older name of ``abs``",
        "``psum`` and its kin",
        "what nobody holds",
        "kept for the way back",
        "an argument of no consequence",
        "tensors are moved unasked",
        "a window that is seen again",
        "an axis that is no int",
        "for shapes that do not fit",
        "all elements in a row",
        "the hook takes it away",
        "an axis that is not there",
    ],
)
def test_unclear_words(text: str) -> None:
    for broken in (text, text.title(), text.replace(" ", "\n    # "), text.replace(" ", "\n    ")):
        assert found("tests/x.py", f'"""{broken}"""\n')
    assert found("docs/x.md", text)
    assert found("tools/check_rules.py", f'"""{text}"""\n') == []


def test_unclear_words_in_names_of_tests() -> None:
    assert found("tests/x.py", "def test_it_is_as_ever(): ...")
    assert found("tests/x.py", "def test_it_is_unchanged(): ...") == []


@pytest.mark.parametrize(
    "text",
    [
        "HALVES = dtype in HALVES",
        "the two halves of an array",
        "a householder reflection",
        "read an example of the format",
        "files of older versions",
        "the floor of a number",
        "write outputs",
        "notes about downloads",
        "there is no module of that name",
        "three steps in a row",
        "take the step",
    ],
)
def test_similar_words_are_accepted(text: str) -> None:
    assert found("tests/x.py", f'"""{text}"""\n') == []


def test_the_repository_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_rules.main() == 0, capsys.readouterr().out


def test_globals_of_functions_are_not_changed() -> None:
    for source in ("f.__globals__['x'] = 1", "getattr(f, '__globals__')"):
        assert found("compat/_core/x.py", source)
        assert found("compat/_compile/guards.py", source) == []
