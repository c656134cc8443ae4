"""The checker of the house rules finds what it is there to find, and nothing else."""

from __future__ import annotations

import pytest

from tools import house_rules


def found(path: str, source: str) -> list[str]:
    return [f"{line}: {message}" for line, message in house_rules.findings(path, source)]


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
def test_everything_else_is_left_alone(source: str) -> None:
    assert found("funcgrad/x.py", source) == []


def test_length() -> None:
    assert found("funcgrad/x.py", "x = 1\n" * 599) == []
    assert found("tests/x.py", "x = 1\n" * 600) == ["600: 600 lines; a file stays under 600"]


def test_the_repository_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert house_rules.main() == 0, capsys.readouterr().out


def test_what_functions_look_up_is_not_changed() -> None:
    for source in ("f.__globals__['x'] = 1", "getattr(f, '__globals__')"):
        assert found("compat/_core/x.py", source)
        assert found("compat/_compile/guards.py", source) == []
