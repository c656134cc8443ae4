"""What a row says of an operator: its overloads, and how it is seen from outside.

Everything is typed and looked at when the row is declared: an option that is not known, one that names what there is
not, or one that contradicts another raises ``OpDeclarationError`` where the row stands.
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
    """Whether an option of a row names what there is.

    Raises:
        OpDeclarationError: naming what there is not.
    """
    for name in given:
        if name not in known:
            there = ", ".join(known) or "nothing"
            raise OpDeclarationError(f"{operator}: {option} names {name!r}, which is none of what there is: {there}")


class OpDeclarationError(Exception):
    """An operation's declaration does not fit what it does."""


class Late:
    """A check made when operands are known to go together: code for their dtype is what PyTorch looks for last.

    Args:
        check: the check.
        early: what is checked before.
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
        OpDeclarationError: for none, for those of different operators, and for ``marked`` names that there are not.
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
    """How operands come to the dtype that is computed in.

    Attributes:
        promote: ``"common"``: operands may be numbers and are brought to their common dtype; ``"float"``: to a floating
            one at least; None: operands come as they are.
        of: which operands are promoted; all of them if empty.
        numbers: whether operands may be numbers; by default where an overload has a ``Scalar`` in place of a
            ``Tensor``.
        unrounded: operands that, where they are numbers or have no dimensions, promotion leaves in single precision
            though the others are in half; the body rounds the result (``compat._core.operators.opmath``).
        converts: whether operands are brought to the dtype of the result, with PyTorch's warning where that leaves out
            imaginary parts; by default where there is an argument ``dtype``.
        fits: numbers that PyTorch converts to the dtype it computes in, by name, each with the rule that says which
            that is (``compat._core.types.scalar_conversion``): one that does not fit is refused.
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
            raise OpDeclarationError("'of' and 'unrounded' are about operands that are promoted, and none is")


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """What a schema does not say of its arguments; names are separated by blanks.

    Attributes:
        static: numbers that the program is compiled for, and dimensions that the body gets as they were given.
        traced: floats that the compiled program takes as arguments.
        integers: operands that PyTorch takes as integers instead of as a tensor of them: nodes show them so.
        deprecated: the keyword arguments that came among the tensors in PyTorch's deprecated overloads.
        shows: more names that nodes show: functions of the static arguments by name, and of ``layouts``, a dictionary.
        results: the names by which ``saves`` and the backward formula know several results, in the order in which the
            body gives them; by default as the schema has them.
        without_out: the names of overloads that have no ``out`` though others do, as messages say.
        alone: raises PyTorch's own error where all operands are numbers; by default the first is said to be no tensor.
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
    """What has no gradient.

    Attributes:
        without: operands that never have one, and for which a node has no edge: indices, masks, weights of classes.
        constant: which results have none though they are floating.
        detached: which results the node shows as if they had none, though its own derivative goes through them.
        undefined: whether PyTorch has no derivative for it, though tensors are floating: its node raises when run.
    """

    without: str = ""
    constant: tuple[int, ...] = ()
    detached: tuple[int, ...] = ()
    undefined: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """What an in-place call does with memory that is shared.

    Attributes:
        itself: a target whose elements share places: True if it may be written, since the same is written everywhere,
            or a function with the operator's parameters that does it; by default it is refused.
        inputs: whether inputs that share memory with the target are refused, even all of it.
    """

    itself: bool | Callable[..., Any] = False
    inputs: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A row.

    Attributes:
        schemas: the overloads that the body computes, in PyTorch's grammar.
        node: the name of the backward node; None if there is no derivative.
        saves: what the node shows as ``_saved_...``: operands (``self``), results (``result``, ``result1``, or the name
            that the schema gives them), arguments, metadata of operands (``self.sym_sizes``). It keeps what its
            gradients need; with ``!`` a name is kept though they may do without, with ``?`` where the operand's own
            gradient is wanted.
        names: the addresses of the function and of its in-place variant, which ends with an underscore; by default
            ``torch`` and ``Tensor`` under its own name, pointwise also ``Tensor.NAME_``. ``""`` for an operator that
            only others call.
        dtypes: how operands come to the dtype that is computed in.
        layout: the memory order of the results: ``"pointwise"`` for that of the operands, which broadcast;
            ``"contiguous"``; ``"like:NAME"`` for an operand's; or a function ``(operands, types) -> strides per
            result`` of a dictionary of layouts. After ``"pointwise, "`` the others broadcast, too.
        check: a function with the operator's parameters that raises PyTorch's errors; called before anything else, and
            only for combinations of layouts and static arguments not seen before (so it must not look at values).
        values: a function with the operator's parameters, called before every run, for errors that depend on values (an
            index out of bounds). It makes every call slower and waits for the values: only where PyTorch looks.
        out: whether there is an ``out=`` variant; by default for what appears in ``torch``. ``"cast"``: one that takes
            a tensor of any dtype that the result can be cast to, as those that promote do. A function ``(result, out,
            operands)`` that raises where one result may not be written into one tensor
            (``compat._core.operators.out.of_dtype``). An operator with a ``dtype`` computes in that of ``out``.
        arguments, gradients, overlap: as their classes say.
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
    """Whether a row fits the operator's parameters, and itself.

    Args:
        results: the names of several results.
        inplace: where the in-place variant appears.

    Raises:
        OpDeclarationError: naming the operator, the option and what is wrong.
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
    also = ["self"] if "input" in every else []  # which is what nodes call it
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
    """Whether a function can be called with the operator's arguments.

    Raises:
        OpDeclarationError: if not.
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
