"""Rows that contradict themselves or their schemas, and the signatures of operators."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.dispatch.dispatcher import every
from compat._core.operators.declaration import Arguments, Declaration, Dtypes, Gradients, OpDeclarationError, Overlap
from compat._core.operators.op import Op, aten, pointwise
from compat._core.operators.view_op import ViewDeclaration, view

TWO = "odd(Tensor self, Tensor other, int dim) -> Tensor"
PAIR = "odd(Tensor self, Tensor other, int dim) -> (Tensor values, Tensor indices)"


def body(input: Any, other: Any, dim: int) -> Any:
    return input


#: By what they contradict: the schema, and other options.
CONTRADICTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "saves has the unknown name 'weight'": (TWO, dict(node="OddBackward0", saves="self weight")),
    "saves has the unknown name 'mat'": (TWO, dict(node="OddBackward0", saves="mat.sym_sizes")),
    "saves has the unknown name 'dim'": (TWO, dict(node="OddBackward0", saves="dim.sym_sizes")),
    "saves has 'self' twice": (TWO, dict(node="OddBackward0", saves="self self!")),
    "saves, though there is no node": (TWO, dict(saves="self")),
    "dtypes.of has the unknown name 'dim'": (TWO, dict(dtypes=Dtypes(promote="common", of="input dim"))),
    "dtypes.unrounded has the unknown name 'alpha'": (TWO, dict(dtypes=Dtypes(promote="common", unrounded="alpha"))),
    "dtypes.fits has the unknown name 'alpha'": (
        TWO,
        dict(dtypes=Dtypes(fits={"alpha": lambda dtype: lambda value: value})),
    ),
    "'alpha' is not an argument": (TWO, dict(arguments=Arguments(static="alpha"))),
    "'beta' is not an argument": (TWO, dict(arguments=Arguments(traced="beta"))),
    "arguments.integers has the unknown name 'dim'": (TWO, dict(arguments=Arguments(integers="dim"))),
    "arguments.deprecated has the unknown name 'alpha'": (TWO, dict(arguments=Arguments(deprecated="alpha"))),
    "'index' is not an argument": (TWO, dict(gradients=Gradients(without="index"))),
    "gradients.without has the unknown name 'dim'": (TWO, dict(gradients=Gradients(without="dim"))),
    "a node, though gradients.undefined": (TWO, dict(node="OddBackward0", gradients=Gradients(undefined=True))),
    "without a node": (PAIR, dict(gradients=Gradients(constant=(1,)))),
    "that there is not": (PAIR, dict(node="OddBackward0", gradients=Gradients(constant=(2,)))),
    "overlap without an in-place variant": (TWO, dict(names="torch.odd", overlap=Overlap(inputs=True))),
    "layout has the unknown name 'mat'": (TWO, dict(layout="like:mat")),
    "layout is 'pointwise'": (TWO, dict(layout="elementwise")),
    "its first argument is not a tensor": ("odd(int n, Tensor self, int dim) -> Tensor", dict(names="Tensor.odd_")),
    "its body is called with": ("odd(Tensor self) -> Tensor", {}),
    "which it does not take": ("odd(Tensor self, Tensor other, *, int dim) -> Tensor", {}),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradiction_raises_where_the_row_stands(what: str) -> None:
    schema, options = CONTRADICTIONS[what]
    before = len(every())
    with pytest.raises(OpDeclarationError) as raised:
        aten(schema, **{"names": "", **options})(body)
    assert what in str(raised.value)
    assert len(every()) == before


@pytest.mark.parametrize("declare", [aten, pointwise, view])
def test_an_unknown_option_raises(declare: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="stirdes"):
        declare("odd(Tensor self) -> Tensor", node="OddBackward0", names="", stirdes="nonsense")
    for record in (Dtypes, Arguments, Gradients, Overlap, Declaration, ViewDeclaration):
        with pytest.raises(TypeError, match="stirdes"):
            record(stirdes="nonsense")


def test_a_row_is_a_frozen_record_of_few_fields() -> None:
    for record in (Declaration, ViewDeclaration, Dtypes, Arguments, Gradients, Overlap):
        assert len(record.__dataclass_fields__) <= 12
    with pytest.raises(AttributeError):
        torch._core.operators.scalars.add_number.row.node = "OddBackward0"


def test_invalid_declarations_raise() -> None:
    with pytest.raises(OpDeclarationError, match="begins with a schema"):
        aten(names="")
    with pytest.raises(OpDeclarationError, match="schemas of aten::even, aten::odd"):
        aten("odd(Tensor self) -> Tensor", "even(Tensor self) -> Tensor", names="")
    with pytest.raises(OpDeclarationError, match="promote is 'common', 'float' or None, not 'double'"):
        aten(TWO, names="", dtypes="double")  # type: ignore[arg-type]
    with pytest.raises(OpDeclarationError, match="'of' and 'unrounded' need 'promote'"):
        Dtypes(of="input")
    with pytest.raises(RuntimeError, match="is no schema"):
        aten("odd(Tensor self)", names="")


def test_contradictions_of_views() -> None:
    with pytest.raises(OpDeclarationError, match="saves has the unknown name 'size'"):
        view("odd(Tensor(a) self) -> Tensor(a)", node="OddBackward0", saves="size", names="")(lambda x: x)
    with pytest.raises(OpDeclarationError, match="saves has the unknown name 'other'"):
        view("odd(Tensor(a) self) -> Tensor(a)", node="OddBackward0", saves="other.sym_sizes", names="")(lambda x: x)
    with pytest.raises(OpDeclarationError, match="undone is"):
        view("odd(Tensor(a) self) -> Tensor(a)", node="OddBackward0", undone="often", names="")  # type: ignore[arg-type]
    with pytest.raises(OpDeclarationError, match="'dim' is not an argument"):
        view("odd(Tensor(a) self) -> Tensor(a)", node="OddBackward0", static="dim", names="")
    with pytest.raises(OpDeclarationError, match="its body is called with"):
        view("odd(Tensor(a) self, int dim) -> Tensor(a)", node="OddBackward0", names="")(lambda x: x)


def test_contradictions_of_an_explicit_backward() -> None:
    plain: Op = aten("odd(Tensor self) -> Tensor", names="")(lambda input: input)
    with pytest.raises(OpDeclarationError, match="there is a backward formula, but the row has no node"):
        plain.backward(lambda ct: ct)
    with pytest.raises(OpDeclarationError, match="there is a gradient formula, but the row has no node"):
        plain.gradient_if("input")(lambda node, grad: grad)
    noded: Op = aten("odd(Tensor self) -> Tensor", node="OddBackward0", names="")(lambda input: input)
    with pytest.raises(OpDeclarationError, match="the explicit backward has the unknown name 'weight'"):
        noded.backward(lambda ct, weight: ct)
    with pytest.raises(OpDeclarationError, match="gradient_if has the unknown name 'weight'"):
        noded.gradient_if("weight")(lambda node, grad: grad)


# ---------------------------------------------------------------- signatures


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (
            lambda: torch.add,
            "(input: 'Tensor', other: 'Tensor | Number', *, alpha: 'Number' = 1, out: 'Tensor | None' = None) "
            "-> 'Tensor'",
        ),
        (
            lambda: torch.Tensor.add_,
            "(input: 'Tensor', other: 'Tensor | Number', *, alpha: 'Number' = 1) -> 'Tensor'",
        ),
        (lambda: torch.ones(2).add, "(other: 'Tensor | Number', *, alpha: 'Number' = 1) -> 'Tensor'"),
        (lambda: torch.permute, "(input: 'Tensor', *dims: 'int') -> 'Tensor'"),
        (
            lambda: torch.split_with_sizes,
            "(input: 'Tensor', split_sizes: 'Sequence[int]', dim: 'int' = 0) -> 'Sequence[Tensor]'",
        ),
        (
            lambda: torch.kthvalue,
            "(input: 'Tensor', k: 'int', dim: 'int' = -1, keepdim: 'bool' = False, *, "
            "out: '(Tensor values, Tensor indices) | None' = None) -> '(Tensor values, Tensor indices)'",
        ),
    ],
)
def test_the_signature_that_users_see_is_made_of_the_schema(function: Callable[[], Any], shown: str) -> None:
    assert str(inspect.signature(function())) == shown


def test_every_operator_has_a_signature() -> None:
    for declared in every():
        for entry in declared.entries:
            assert list(inspect.signature(entry.function).parameters)[: len(declared.params)] == [
                p.name for p in declared.params
            ]


def test_a_signature_is_one_like_any() -> None:
    shown = inspect.signature(torch.add)
    assert shown.bind(1, other=2, alpha=3).arguments == {"input": 1, "other": 2, "alpha": 3}
    assert shown == copy.copy(shown) == pickle.loads(pickle.dumps(shown))
    assert shown.replace(return_annotation=int).return_annotation is int
    assert "out=" not in str(shown) and "alpha" in repr(shown)
    assert "aten" in inspect.getsource(torch.kthvalue)  # the row, with its formula
