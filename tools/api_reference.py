"""What the API reference has to be told of this code; mkdocs.yml loads it into griffe, which reads the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

HEADING = re.compile(r"^Example:[ \t]*$", re.MULTILINE)


class Headings(griffe.Extension):
    """Makes ``Example:`` the same heading as ``Examples:``, which is the only one griffe takes doctests from."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = HEADING.sub("Examples:", obj.docstring.value)


class MadeFunctions(griffe.Extension):
    """Shows functions that other functions make (``exp = _unary(...)``) as the functions they are.

    To griffe, which does not run the code, they are attributes without a docstring.
    """

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        for attribute in list(_attributes(pkg)):
            assert attribute.parent is not None
            value = griffe.dynamic_import(attribute.path)
            if inspect.isfunction(value) and value.__doc__ and not attribute.docstring:
                function = _function(attribute, value)
                function.docstring = griffe.Docstring(
                    _text(attribute, value),
                    parent=function,
                    parser=loader.docstring_parser,
                    parser_options=loader.docstring_options,
                )
                attribute.parent.set_member(attribute.name, function)


class PublicBases(griffe.Extension):
    """Names the public bases behind a private one: that ``Conv2d`` is a ``Module`` is what a reader wants to know."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        for member in _classes(pkg):
            if any(str(base).split("[")[0].split(".")[-1].startswith("_") for base in member.bases):
                member.bases = [_reference(base, loader) for base in _public(griffe.dynamic_import(member.path))]


class PublicNames(griffe.Extension):
    """Says under which of PyTorch's names a function of ``compat`` is found; leaves out helpers that have none.

    ``compat._operators`` holds functions by family, and their own names are not what users write.
    """

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        if pkg.name != "compat":
            return
        names = _published()
        for family in pkg["_operators"].modules.values():
            for module in family.modules.values():
                for name, member in list(module.members.items()):
                    if member.is_alias or not (member.is_function or member.is_class):
                        continue
                    found = names.get(id(griffe.dynamic_import(member.path)), [])
                    if not found:
                        module.del_member(name)
                    elif member.docstring:
                        member.docstring.value = f"{', '.join(found)}\n\n{member.docstring.value}"


def _published() -> dict[int, list[str]]:
    """The public names of functions, by their identity, as they stand in a docstring."""
    registry = griffe.dynamic_import("compat._core.tensor.registry")
    griffe.dynamic_import("compat")
    names: dict[int, list[str]] = {}
    for place in registry.places():
        path = place if place in ("torch", "Tensor") else f"torch.{place}"
        for name, value in registry.names_of(place).items():
            if not name.startswith("_") and not place.startswith("_"):
                names.setdefault(id(value), []).append(f"`{path}.{name}`")
    return names


def _classes(place: griffe.Module | griffe.Class) -> Iterator[griffe.Class]:
    for member in place.members.values():
        if not member.is_alias and isinstance(member, griffe.Module | griffe.Class):
            yield from _classes(member)
            if isinstance(member, griffe.Class):
                yield member


def _public(kind: type) -> list[type]:
    """The nearest bases of a class whose names are public, each once."""
    found: dict[type, None] = {}
    for base in kind.__bases__:
        found |= dict.fromkeys(_public(base) if base.__name__.startswith("_") else [base])
    found.pop(object, None)
    return list(found)


def _reference(kind: type, loader: griffe.GriffeLoader) -> str | griffe.Expr:
    """A class's name, with a link to it if it stands in the code that is documented."""
    package = kind.__module__.split(".")[0]
    if package not in loader.modules_collection:
        return kind.__name__
    return griffe.ExprName(kind.__name__, parent=loader.modules_collection[kind.__module__])


def _attributes(module: griffe.Module) -> Iterator[griffe.Attribute]:
    for member in module.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Module):
            yield from _attributes(member)
        elif isinstance(member, griffe.Attribute) and not member.name.startswith("_"):
            yield member


def _function(attribute: griffe.Attribute, value: Any) -> griffe.Function:
    kinds = dict(zip(inspect._ParameterKind, griffe.ParameterKind, strict=True))
    parameters = [
        griffe.Parameter(
            parameter.name,
            kind=kinds[parameter.kind],
            annotation=None if parameter.annotation is parameter.empty else str(parameter.annotation),
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(value).parameters.values()
    ]
    return griffe.Function(
        attribute.name,
        parameters=griffe.Parameters(*parameters),
        lineno=attribute.lineno,
        endlineno=attribute.endlineno,
        parent=attribute.parent,
    )


def _text(attribute: griffe.Attribute, value: Any) -> str:
    if value.__name__ != attribute.name:
        return f"Another name of [`{value.__name__}`][{value.__module__}.{value.__name__}]."
    return HEADING.sub("Examples:", inspect.getdoc(value) or "")
