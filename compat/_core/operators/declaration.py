"""The declaration of an operator: its schemas and options.

Options are typed and checked when the row is declared: an unknown option, an unknown name, or a contradiction between
options raises ``OpDeclarationError`` at import.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any, Literal

from compat._core.schema.parameter import Param, parameters
from compat._core.schema.parser import FunctionSchema
from compat._core.types.scalar_conversion import Rule

Check = Callable[..., None]


def check_names(operator: str, option: str, given: Iterable[str], known: Collection[str]) -> None:
    """Checks the names in an option of a row.

    Raises:
        OpDeclarationError: for an unknown name.
    """
    for name in given:
        if name not in known:
            there = ", ".join(known) or "nothing"
            raise OpDeclarationError(f"{operator}: {option} has the unknown name {name!r}; known are: {there}")


class OpDeclarationError(Exception):
    """An operation's declaration contradicts itself, its schema or its body."""


class Late:
    """A check after those of devices, overlap and broadcasting: in PyTorch dtypes are checked last, by the kernel.

    Args:
        check: the check.
        early: a check before those.
    """

    __slots__ = ("check", "early")

    def __init__(self, check: Check, early: Check | None = None):
        self.check = check
        self.early = early

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if self.early is not None:
            self.early(*args, **kwargs)
        self.check(*args, **kwargs)


def declared(schemas: Sequence[str], **marked: Collection[str]) -> tuple[list[FunctionSchema], tuple[Param, ...]]:
    """The overloads of a row, and the parameters of its operator.

    Args:
        marked: ``static``, ``traced`` and ``without_edge``, as ``parameters`` takes them.

    Raises:
        OpDeclarationError: without schemas, for schemas of different operators, and for unknown names in ``marked``.
    """
    if not schemas:
        raise OpDeclarationError("a row begins with a schema")
    parsed = [FunctionSchema("aten", text) for text in schemas]
    if any(schema.name != parsed[0].name for schema in parsed):
        raise OpDeclarationError(f"one row, but schemas of {', '.join(sorted({s.name for s in parsed}))}")
    try:
        return parsed, parameters(parsed, **marked)
    except ValueError as error:
        raise OpDeclarationError(str(error)) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Dtypes:
    """The dtype in which an operation computes.

    Attributes:
        promote: ``"common"``: operands may be numbers and are promoted to their common dtype; ``"float"``: to a
            floating-point dtype at least; None: no promotion.
        of: the operands that are promoted; empty for all.
        numbers: whether operands may be numbers; by default if an overload has a ``Scalar`` in place of a ``Tensor``.
        unrounded: operands that stay in float32 among float16 or bfloat16 operands if they are numbers or
            zero-dimensional; the body rounds the result (``compat._core.operators.opmath``).
        converts: whether operands are converted to the dtype of the result, with PyTorch's warning about discarded
            imaginary parts; by default if there is an argument ``dtype``.
        fits: by name, numbers that the dtype of a rule must be able to represent
            (``compat._core.types.scalar_conversion``), as PyTorch converts them to it.
    """

    promote: Literal["common", "float"] | None = None
    of: str = ""
    numbers: bool | None = None
    unrounded: str = ""
    converts: bool | None = None
    fits: Mapping[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.promote not in (None, "common", "float"):
            raise OpDeclarationError(f"promote is 'common', 'float' or None, not {self.promote!r}")
        if self.promote is None and (self.of or self.unrounded):
            raise OpDeclarationError("'of' and 'unrounded' need 'promote'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Properties of arguments that a schema lacks; names are separated by blanks.

    Attributes:
        static: numbers that are static, and dimensions that the body gets as given.
        traced: floats that are inputs of the compiled program.
        integers: operands that nodes show as tuples of integers instead of tensors, as in PyTorch.
        deprecated: the keyword arguments that PyTorch's deprecated overloads have among the tensors.
        shows: further attributes of nodes: functions of the static arguments by name, and of a dictionary ``layouts``.
        results: the names of several results in ``saves`` and the backward formula, in the order of the body's results;
            by default those of the schema.
        without_out: the names of overloads without ``out``, for messages.
        alone: raises PyTorch's own error if all operands are numbers; by default the error is that of an argument that
            is not a tensor.
    """

    static: str = ""
    traced: str = ""
    integers: str = ""
    deprecated: str = ""
    shows: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    results: str = ""
    alone: Check | None = None
    without_out: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients:
    """Operands and results without a gradient.

    Attributes:
        without: operands without an edge: indices, masks, weights of classes.
        constant: the numbers of floating-point results without a derivative.
        detached: the numbers of results that users get detached, though the derivative goes through them.
        undefined: whether PyTorch has no derivative: the node's backward raises an error.
    """

    without: str = ""
    constant: tuple[int, ...] = ()
    detached: tuple[int, ...] = ()
    undefined: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """The handling of overlapping memory in an in-place call.

    Attributes:
        itself: for a target with internal overlap: True if it may be written, since all elements get the same value, or
            a function with the operator's parameters that writes it; by default an error.
        inputs: whether inputs that overlap with the target raise an error, even if they overlap fully.
    """

    itself: bool | Callable[..., Any] = False
    inputs: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A row.

    Attributes:
        schemas: the overloads that the body computes, in PyTorch's grammar.
        node: the name of the backward node; None if there is no derivative.
        saves: the ``_saved_...`` attributes of the node: operands (``self``), results (``result``, ``result1``, or the
            schema's names), arguments, metadata of operands (``self.sym_sizes``). A node saves only the tensors that
            its gradients need; with ``!`` a name is always saved, with ``?`` if that operand has a gradient.
        names: the addresses of the function and of its in-place variant, which ends with an underscore; by default
            ``torch`` and ``Tensor`` under its own name, pointwise also ``Tensor.NAME_``. ``""`` for an internal
            operator.
        dtypes: promotion and conversion of operands.
        layout: the memory order of the results: ``"pointwise"`` for that of the operands, which broadcast;
            ``"contiguous"``; ``"like:NAME"`` for an operand's; or a function ``(operands, types) -> strides per
            result`` of a dictionary of layouts. After ``"pointwise, "`` operands broadcast with the other layouts, too.
        check: a function with the operator's parameters that raises PyTorch's errors; called first, and only if there
            is no plan for the layouts and static arguments, so it must not depend on values.
        values: a function with the operator's parameters, called before every run, for errors that depend on values (an
            index out of bounds). It makes every call slower and waits for the values.
        out: whether there is an ``out=`` variant; by default for functions in ``torch``. ``"cast"``: ``out`` may have
            any dtype to which the result can be cast, as for operators that promote. A function ``(result, out,
            operands)`` that raises an error for a result that may not be written into ``out``
            (``compat._core.operators.out.of_dtype``). An operator with a ``dtype`` computes in that of ``out``.
        arguments, gradients, overlap: see their classes.
    """

    schemas: tuple[str, ...]
    node: str | None = None
    saves: str = ""
    names: str | None = None
    dtypes: Dtypes = Dtypes()
    layout: str | Callable[..., Any] = "contiguous"
    check: Check | None = None
    values: Check | None = None
    out: bool | Literal["cast"] | Callable[..., None] | None = None
    arguments: Arguments = Arguments()
    gradients: Gradients = Gradients()
    overlap: Overlap = Overlap()


# ---------------------------------------------------------------- contradictions


def check_row(
    name: str, row: Declaration, params: Sequence[Param], results: Sequence[str], inplace: Sequence[str]
) -> None:
    """Checks a row for contradictions with the operator's parameters and between options.

    Args:
        results: the names of several results.
        inplace: the addresses of the in-place variant.

    Raises:
        OpDeclarationError: naming the operator, the option and the contradiction.
    """
    tensors = [p.name for p in params if p.kind in ("array", "arrays")]
    dynamic = [p.name for p in params if p.dynamic]
    every = [p.name for p in params]
    for what, names, known in (
        ("dtypes.of", row.dtypes.of.split(), dynamic),
        ("dtypes.unrounded", row.dtypes.unrounded.split(), tensors),
        ("dtypes.fits", row.dtypes.fits, every),
        ("arguments.integers", row.arguments.integers.split(), tensors),
        ("arguments.deprecated", row.arguments.deprecated.split(), [p.name for p in params if p.keyword]),
        ("gradients.without", row.gradients.without.split(), tensors),
    ):
        if names:
            check_names(name, what, names, known)
    _check_saves(name, row, every, tensors, results)
    _check_layout(name, row, tensors)
    undefined = row.gradients.undefined
    contradictions = {
        "a node, though gradients.undefined says that there is no derivative": row.node is not None and undefined,
        "saves, though there is no node to show them": row.saves and row.node is None,
        "gradients.constant or gradients.detached without a node": row.node is None
        and (row.gradients.constant or row.gradients.detached),
        "overlap without an in-place variant": row.overlap != Overlap() and row.names != "" and not inplace,
        "an in-place variant, though its first argument is not a tensor": inplace and tensors[:1] != every[:1],
        "a result of gradients.constant or gradients.detached that there is not": results
        and max((*row.gradients.constant, *row.gradients.detached), default=0) >= len(results),
    }
    for what, holds in contradictions.items():
        if holds:
            raise OpDeclarationError(f"{name}: {what}")


def _check_saves(name: str, row: Declaration, every: list[str], tensors: list[str], results: Sequence[str]) -> None:
    also = ["self"] if "input" in every else []  # the name in nodes' attributes
    of_tensors = [s for s in row.saves.split() if "." in s]
    check_names(name, "saves", [s.partition(".")[0] for s in of_tensors], [*tensors, *also])
    plain = [s.rstrip("!?") for s in row.saves.split() if "." not in s]
    numbered = [s for s in plain if s.removeprefix("result").isdigit()]
    check_names(name, "saves", plain, [*every, *also, "result", *results, *row.arguments.shows, *numbered])
    for saved in {s for s in [*plain, *of_tensors] if [*plain, *of_tensors].count(s) > 1}:
        raise OpDeclarationError(f"{name}: saves has {saved!r} twice")


def _check_layout(name: str, row: Declaration, tensors: list[str]) -> None:
    if callable(row.layout) or row.layout == "pointwise":
        return
    rule = row.layout.removeprefix("pointwise, ")
    if rule.startswith("like:"):
        check_names(name, "layout", [rule.removeprefix("like:")], tensors)
    elif rule != "contiguous":
        raise OpDeclarationError(
            f"{name}: layout is 'pointwise', 'contiguous', 'like:NAME' or a function, not {row.layout!r}"
        )


def check_body(name: str, body: Callable[..., Any], params: Sequence[Param]) -> None:
    """Checks that a body can be called with the operator's arguments.

    Raises:
        OpDeclarationError: if it cannot.
    """
    code = getattr(body, "__code__", None)
    if code is None:
        return
    positional = sum(not p.keyword for p in params)
    least = code.co_argcount - len(getattr(body, "__defaults__", None) or ())
    own = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    keywords = {p.name for p in params if p.keyword}
    fits = least <= positional if code.co_flags & CO_VARARGS else least <= positional <= code.co_argcount
    if not fits or not (code.co_flags & CO_VARKEYWORDS or keywords == set(own)):
        given = [f"*{p.name}" if p.starred else f"{p.name}=" if p.keyword else p.name for p in params]
        raise OpDeclarationError(f"{name}: its body is called with ({', '.join(given)}), which it does not take")
