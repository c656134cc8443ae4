"""The rules of this repository that neither ruff nor import-linter can express.

    python tools/house_rules.py

- JAX is the backend, not the autodiff: ``funcgrad`` and ``compat`` never name ``jax.grad``, ``jax.vjp``, ``jax.vmap``
  and their kin, under whatever alias. ``funcgrad/interop.py`` may: it wraps foreign JAX functions.
- What a function looks up is not changed from outside: ``compat`` names ``__globals__`` only where it reads the user's
  functions, to trace them or to know what a compiled step depends on.
- A file stays under 600 lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("funcgrad", "compat")
CHECKED = (*PRODUCT, "tests", "tools", "examples", "benchmarks")
MAY_DIFFERENTIATE_WITH_JAX = ("funcgrad/interop.py",)
MAY_READ_GLOBALS = ("compat/_compile/guards.py", "compat/fx/_symbolic_trace.py")
MOST_LINES = 600

# Dotted names under which JAX differentiates or batches a function. Whatever begins with one is forbidden too.
JAX_AUTODIFF = frozenset(
    "jax." + name
    for names in (
        "grad value_and_grad vjp jvp linearize linear_transpose vmap jacobian jacfwd jacrev hessian fwd_and_bwd",
        "checkpoint checkpoint_policies remat ad_checkpoint closure_convert",
        "custom_vjp custom_jvp custom_gradient custom_batching custom_derivatives custom_transpose",
        "interpreters.ad interpreters.batching",
        "numpy.vectorize lax.stop_gradient lax.custom_root lax.custom_linear_solve",
        "experimental.jet experimental.sparse.grad experimental.sparse.value_and_grad",
        "_src.api.grad _src.api.vjp _src.api.jvp _src.api.linearize _src.api.vmap _src.ad_util _src.ad_checkpoint",
        "_src.custom_derivatives _src.interpreters.ad _src.interpreters.batching",
    )
    for name in names.split()
)

Finding = tuple[int, str]


def autodiff_name(dotted: str) -> str | None:
    """The forbidden name that ``dotted`` is or lies under."""
    parts = dotted.split(".")
    return next((name for n in range(2, len(parts) + 1) if (name := ".".join(parts[:n])) in JAX_AUTODIFF), None)


def aliases(tree: ast.AST) -> dict[str, str]:
    """What the names bound by imports of JAX stand for, in whichever scope: ``{"jnp": "jax.numpy"}``."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "jax":
                    bound[alias.asname or "jax"] = alias.name if alias.asname else "jax"
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jax":
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return bound


def dotted_name(node: ast.AST, bound: dict[str, str]) -> str | None:
    """What an expression names, if it is a chain of attributes of something imported from JAX."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value, bound)
        return base and f"{base}.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        match node.args:
            case [value, ast.Constant(value=str(attr)), *_]:
                base = dotted_name(value, bound)
                return base and f"{base}.{attr}"
    return None


def imported_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def jax_autodiff(tree: ast.AST) -> Iterator[Finding]:
    bound = aliases(tree)
    seen = set()
    for node in ast.walk(tree):
        for dotted in [*imported_names(node), dotted_name(node, bound)]:
            if dotted == "jax.*":
                yield node.lineno, "import * from jax hides what is used of it"
            name = dotted and autodiff_name(dotted)
            if name and (node.lineno, name) not in seen:
                seen.add((node.lineno, name))
                yield node.lineno, f"{name}: JAX is the backend here, not the autodiff"


def read_globals(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if name == "__globals__":
            yield node.lineno, "__globals__: pass a function what it needs instead of changing what it looks up"


def findings(path: str, source: str) -> Iterator[Finding]:
    """What is wrong with a file, given its path from the repository's root."""
    length = source.count("\n")
    if length >= MOST_LINES:
        yield length, f"{length} lines; a file stays under {MOST_LINES}"
    if Path(path).parts[0] in PRODUCT and path not in MAY_DIFFERENTIATE_WITH_JAX:
        yield from jax_autodiff(ast.parse(source, path))
    if path.startswith("compat/") and path not in MAY_READ_GLOBALS:
        yield from read_globals(ast.parse(source, path))


def main() -> int:
    paths = [path for folder in CHECKED for path in sorted((ROOT / folder).rglob("*.py"))]
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {message}"
        for path in paths
        for line, message in findings(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    print(f"house rules: {len(paths)} files checked, {len(wrong) or 'nothing'} found")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
