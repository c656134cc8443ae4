"""Repository rules that neither ruff nor import-linter can express.

    python tools/check_rules.py

- JAX is the backend, not the autodiff: ``funcgrad`` and ``compat`` never name ``jax.grad``, ``jax.vjp``, ``jax.vmap``
  or another of JAX's transforms, under any alias. ``funcgrad/interop.py`` may: it wraps foreign JAX functions.
- Code does not change what a function looks up: ``compat`` names ``__globals__`` only where it reads the user's
  functions, to trace them or to find the dependencies of a compiled step.
- A file has fewer than 600 lines.
- A folder has at most 25 modules.
- Code and pages use the terms of the field: ``WORDS`` lists expressions that have a clearer term, with the term.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("funcgrad", "compat")
CHECKED = (*PRODUCT, "tests", "tools", "examples", "benchmarks")
MAY_DIFFERENTIATE_WITH_JAX = ("funcgrad/interop.py",)
MAY_READ_GLOBALS = ("compat/_compile/guards.py", "compat/fx/_symbolic_trace.py")
MOST_LINES = 600
MOST_MODULES = 25
#: PyTorch's own lists of modules: one for each family of layers and of distributions.
LARGE_FOLDERS = ("compat/nn/modules", "compat/distributions")
#: Folders with their own limit: ``compat`` has PyTorch's top-level modules.
MOST_IN = {"compat": 45}
#: Texts that are checked for words, besides the code: folders and files.
TEXTS = ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
#: The rules themselves name the words.
QUOTES_WORDS = ("tools/check_rules.py", "tests/tools/test_check_rules.py")

#: Expressions with a clearer term, and the term. Case is ignored; a space also matches a line break.
WORDS = {
    r"\bnot(?:e|es|ed|ing) (?:\w+ )?down\b": "record",
    r"\bwr(?:ite|ites|itten|iting|ote) (?:it |them )?out\b": "generate, unroll or materialize",
    r"\bhouse(?:s|keeping)?\b|\b(?:engine|machine) rooms?\b|\b(?:front|back) doors?\b": "architecture, module or API",
    r"\b(?:old|older|new|public) faces?\b|\bground floors?\b": "API, layer or deprecated form",
    r"\bexamples? of (?:a|the|this|any|each) `*vmap|\b(?:single|all) examples (?:at once|along)\b": "batch elements",
    r"\b(?:has|have) (?:a |no )?say\b": "override",
    r"\bwho(?:ever)? (?:watch|watches|asks|looks|wants|holds)\b": "the mode, caller or owner",
    r"\b(?:call|operation)s? (?:as it )?(?:is|are) shown\b": "is intercepted",
    r"\blevels? of dual(?:s| numbers)\b": "forward-mode level",
    r"\bstated (?:backward|derivative|formula|gradient)s?\b": "explicit backward formula",
    r"\b(?:of|in|as|for|are) (?-i:(?!HALVES))halves\b(?! of)": "float16 and bfloat16, or ties",
    r"\bmisfits?\b": "argument error",
    r"\bold(?:er)? (?:forms?|signatures?|overloads?|spellings?|way|names?|constructors?)\b": "deprecated or legacy",
    r"\b(?:put|puts|set|sets|kept) aside\b|\bcounts? apart\b": "detached, collected or counted separately",
    r"\band (?:its|their) kin\b": "the names of the things",
    r"\bnobody (?:asked|asks|holds|watches|looks|wants)\b": "what is meant",
    r"\bthe way back\b": "the backward pass, or the inverse",
    r"\bmany examples at once\b": "automatic vectorization",
    r"\bwhere arrays are\b": "devices",
    r"\bof no consequence\b": "ignored",
    r"\bunasked\b|\bunless told\b": "implicitly, or by default",
    r"\b(?:seen|com(?:e|es|ing)) again\b": "recurs, or the occurrence",
    r"(?<!there )\b(?:is|are) no (?:ints?|integers?|tensors?|bools?|sequences?|mappings?|dtypes?|modules?)\b": "not a",
    r"\bshapes? that do(?:es)? not fit\b": "incompatible shapes",
    r"\bwalked together\b": "batch axes",
    r"\ball (?:elements )?in (?:a|one) row\b": "flattened",
    r"\bwith respect to which arguments\b": "the arguments to differentiate with respect to",
    r"\btak(?:e|es|ing) (?:it |them |everything )?away\b": "remove",
    r"\bwhether to climb\b": "whether to maximize",
    r"\bit is given back\b": "it is returned unchanged",
    r"\bwhere (?:the )?numbers come from\b": "the random number generator",
    r"\bas (?:JAX|NumPy|PyTorch) has (?:it|them)\b": "as in NumPy",
    r"\bas often as (?:you|one) likes?\b": "to any order",
    r"\b(?:axis|axes|dimensions?) that (?:is|are) not there\b": "out of range",
    r"\bas ever\b": "unchanged, or as usual",
    r"\bwhat (?:came|comes|come) out\b": "the result",
    r"\bcomplain(?:s|ed|ing|ts?)?\b": "raise an error",
    r"\b(?:PyTorch|NumPy|JAX)'s words\b": "PyTorch's message",
    r"\blet(?:s|ting)? (?:\w+ )?go\b": "free or release",
    r"\bof ones own\b|\bof one's own\b": "custom",
    r"\bfor ever\b": "forever, or bounded by",
}

# Dotted names under which JAX differentiates or batches a function. Names that begin with one are forbidden too.
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
    """The objects that imports of JAX bind names to, in any scope: ``{"jnp": "jax.numpy"}``."""
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
    """The dotted name of an expression that is a chain of attributes of something imported from JAX."""
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


def unclear_words(source: str) -> Iterator[Finding]:
    """Expressions of ``WORDS``, also those broken over two lines of a docstring or a comment, and in names of tests."""
    text = re.sub(r"\bdef test_(\w+)", lambda name: f"def test {name[1].replace('_', ' ')}", source)
    text = re.sub(r"\n[ \t]*(?:#:?[ \t]+)?", "\n", text)
    for expression, term in WORDS.items():
        for match in re.finditer(expression.replace(" ", r"\s"), text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield line, f"{' '.join(match[0].split())!r}: write {term}"


def crowded_folders(paths: Iterable[str]) -> Iterator[str]:
    """Folders with too many modules, given files by their paths from the repository's root."""
    for folder, count in sorted(Counter(Path(path).parent.as_posix() for path in paths).items()):
        most = MOST_IN.get(folder, MOST_MODULES)
        if count > most and folder not in LARGE_FOLDERS:
            yield f"{folder}: {count} modules; a folder has at most {most}"


def findings(path: str, source: str) -> Iterator[Finding]:
    """The violations in a file, given its path from the repository's root."""
    if path not in QUOTES_WORDS:
        yield from unclear_words(source)
    if not path.endswith(".py"):
        return
    length = source.count("\n")
    if length >= MOST_LINES:
        yield length, f"{length} lines; a file has fewer than {MOST_LINES}"
    if Path(path).parts[0] in PRODUCT and path not in MAY_DIFFERENTIATE_WITH_JAX:
        yield from jax_autodiff(ast.parse(source, path))
    if path.startswith("compat/") and path not in MAY_READ_GLOBALS:
        yield from read_globals(ast.parse(source, path))


def main() -> int:
    paths = [path for folder in CHECKED for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [path for name in TEXTS for path in ([ROOT / name] if "." in name else sorted((ROOT / name).rglob("*.md")))]
    modules = [path.relative_to(ROOT).as_posix() for path in paths]
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {message}"
        for path in [*paths, *texts]
        for line, message in findings(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    wrong += crowded_folders(modules)
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    print(f"repository rules: {len(paths) + len(texts)} files checked, {len(wrong) or 'nothing'} found")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
