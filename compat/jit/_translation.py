"""Translation of TorchScript code to Python: checks that it is TorchScript, removes types, resolves operators.

Operators, the file's definitions and helpers are globals of the result with names in angle brackets, ``<...>``, which
no code in a file can contain.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from compat.jit._operators import find

__all__ = ["Translation", "Unsupported"]

#: The syntax of TorchScript.
_NODES = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp,
    ast.Dict, ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript, ast.Name, ast.List, ast.Tuple,
    ast.Slice, ast.Load, ast.Store, ast.keyword, ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.Assert,
    ast.With, ast.withitem, ast.Break, ast.Continue,
)  # fmt: skip


class Unsupported(NotImplementedError):
    """Part of a file is not supported."""


class Translation(ast.NodeTransformer):
    """The code of one of a file's modules.

    Args:
        source: the code.
        path: the path of the code in the file.
        scope: the globals of the result, to which operators that the code calls are added.
        kind_of: the type for the syntax tree of an annotation.
    """

    def __init__(self, source: str, path: str, scope: dict[str, Any], kind_of: Callable[[ast.AST], Any]):
        self._lines, self._path, self._scope, self._kind_of = source.split("\n"), path, scope, kind_of
        self._line = 0
        self.tree = ast.parse(source, path)

    def translated(self, statement: ast.stmt) -> Any:
        """A translated statement."""
        return ast.fix_missing_locations(self.visit(statement))

    def compiled(self, statements: list[ast.stmt]) -> Any:
        """Compiled code of translated statements."""
        body = [self.translated(s) for s in statements]
        return compile(ast.Module(body, []), self._path, "exec")

    def _unsupported(self, what: str) -> Unsupported:
        line = self._lines[self._line - 1].strip() if self._line else ""
        return Unsupported(f"torch.jit.load: {what} ({self._path}, line {self._line}: {line})")

    def _bound(self, name: str, value: Any) -> ast.expr:
        """Adds a global to the scope; returns the expression for it."""
        self._scope.setdefault(name, value)
        return ast.Name(name, ast.Load())

    def _later_error(self, error: Unsupported) -> ast.expr:
        """The expression of a function that raises the error when it is called, since the code may never run."""

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise error

        return self._bound(f"<unsupported {id(error)}>", refuse)

    def visit(self, node: ast.AST) -> Any:
        self._line = getattr(node, "lineno", self._line)
        return super().visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _NODES):
            raise self._unsupported(f"the file's code has a {type(node).__name__}, which is not supported")
        return super().generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns, node.decorator_list = None, []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and not node.value.isascii():
            # Characters are written as the bytes of UTF-8.
            try:
                return ast.Constant(node.value.encode("latin-1").decode())
            except UnicodeError:
                return node
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        names = _dotted(node)
        if names and names[0] == "__torch__":
            return ast.Subscript(self._bound("<file>", None), ast.Constant(".".join(names)), ast.Load())
        if names and (names[0] == "torch" or (names[0] == "ops" and len(names) == 3)):
            library = "aten" if names[0] == "torch" else names[1]
            found = find(library, names[-1])
            if found is None:
                missing = "is not supported" if library in ("aten", "prim") else "no package that was imported declares"
                return self._later_error(self._unsupported(f"the file calls {library}::{names[-1]}, which {missing}"))
            return self._bound(f"<{library}::{names[-1]}>", found)
        if node.attr.startswith("__"):
            raise self._unsupported(f"the file's code uses {node.attr}")
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        helper = getattr(self, f"_call_{node.func.id}", None) if isinstance(node.func, ast.Name) else None
        if helper is not None:
            return helper(*node.args)
        called = node.func
        if isinstance(called, ast.Attribute) and _is_special(called):
            of = [self.visit(called.value), ast.Constant(called.attr)]
            arguments = [self.visit(a) for a in node.args], [self.visit(k) for k in node.keywords]
            return ast.Call(ast.Call(self._bound("<method>", None), of, []), *arguments)
        return self.generic_visit(node)

    # ---------------------------------------------------------------- special forms with the syntax of calls

    def _call_annotate(self, kind: ast.expr, value: ast.expr) -> ast.AST:
        visited: ast.AST = self.visit(value)
        return visited

    _call_unchecked_cast = _call_annotate

    def _call_uninitialized(self, kind: ast.expr) -> ast.AST:
        return ast.Constant(None)

    def _call_isinstance(self, value: ast.expr, kinds: ast.expr) -> ast.AST:
        several = kinds.elts if isinstance(kinds, (ast.Tuple, ast.List)) else [kinds]
        tests = [self._kind_of(k) for k in several]
        name = f"<isinstance {', '.join(map(ast.unparse, several))}>"
        test = self._bound(name, lambda v: any(t.holds(v) for t in tests))
        return ast.Call(test, [self.visit(value)], [])

    def _call_getattr(self, value: ast.expr, name: ast.expr) -> ast.AST:
        return ast.Call(self._bound("<getattr>", getattr), [self.visit(value), self._attribute(name)], [])

    def _call_setattr(self, value: ast.expr, name: ast.expr, new: ast.expr) -> ast.AST:
        where = [self.visit(value), self._attribute(name), self.visit(new)]
        return ast.Call(self._bound("<setattr>", setattr), where, [])

    def _attribute(self, name: ast.expr) -> ast.expr:
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            raise self._unsupported("the file's code uses a computed attribute")
        if name.value.startswith("__"):
            raise self._unsupported(f"the file's code uses {name.value}")
        return name


def _dotted(node: ast.AST) -> list[str]:
    """The names in ``a.b.c``; empty for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _is_special(called: ast.Attribute) -> bool:
    """Whether the call is of a method such as ``__add__`` or ``__new__`` of a class of the file."""
    return called.attr.startswith("__") and (_dotted(called) or [""])[0] not in ("torch", "ops")
