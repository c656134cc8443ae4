"""The schemas that public functions carry describe these functions."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.operators.composite import composite
from compat._core.operators.declaration import OpDeclarationError
from compat._core.schema.argument_errors import signatures_of
from compat._core.schema.overload import overloads_of
from compat._core.schema.parser import FunctionSchema
from compat._core.tensor import registry


def _carrying() -> list[tuple[str, Any]]:
    registry.load_all()
    found = [(f"{place}.{name}", f) for place in registry.places() for name, f in registry.names_of(place).items()]
    return [(address, function) for address, function in found if overloads_of(function)]


CARRYING = _carrying()


def test_most_functions_of_torch_have_schemas() -> None:
    assert len(CARRYING) > 1200


def test_every_schema_is_one_and_has_a_signature() -> None:
    for address, function in CARRYING:
        names = [FunctionSchema("aten", overload.schema).overload_name for overload in overloads_of(function)]
        assert len(set(names)) == len(names), address
        assert str(inspect.signature(function)).startswith("("), address
        if not address.startswith(("Tensor.", "sparse.")):
            assert signatures_of(address), address


def test_the_signature_is_made_of_the_schema() -> None:
    assert str(inspect.signature(torch.kron)) == (
        "(input: 'Tensor', other: 'Tensor', *, out: 'Tensor | None' = None) -> 'Tensor'"
    )
    assert list(inspect.signature(torch.Tensor.sum).parameters) == ["input", "dim", "keepdim", "dtype"]
    assert list(inspect.signature(torch.rand).parameters)[-2:] == ["out", "requires_grad"]


CALLS: list[Callable[[Any], Any]] = [
    lambda x: torch.broadcast_to(x, size=(2, 2)),
    lambda x: torch.tile(x, dims=(1,)),
    lambda x: x.tile(dims=(1,)),
    lambda x: x.clone().resize_(size=(2, 2)),
    lambda x: x.sum_to_size(size=(2, 2)),
    lambda x: torch.linalg.matrix_power(input=x, n=1),
    lambda x: torch.linalg.inv(A=x),
    lambda x: torch.tensor_split(x, sections=1)[0],
    lambda x: x.to(tensor=x),
]


@pytest.mark.parametrize("call", CALLS)
def test_arguments_have_the_names_of_the_schema(call: Callable[[Any], Any]) -> None:
    x = torch.eye(2)
    assert call(x).tolist() == x.tolist()


def test_numbers_have_the_names_of_their_overloads() -> None:
    x = torch.eye(2)
    assert torch.isin(element=1, test_elements=x).tolist() is True
    assert torch.result_type(scalar1=1, scalar2=2.0) is torch.float32
    assert torch.linalg.cond(input=x).item() == 1.0


def test_arguments_have_the_places_of_the_schema() -> None:
    logits, target, factors = torch.zeros(2), torch.ones(2), torch.tensor([1.0, 3.0])
    found = torch.binary_cross_entropy_with_logits(logits, target, None, factors, 0)
    want = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, pos_weight=factors, reduction="none")
    assert found.tolist() == want.tolist()
    assert found.tolist() != target.tolist()


def test_other_errors_of_a_composite_are_raised_unchanged() -> None:
    with pytest.raises(RuntimeError, match="is not expandable"):
        torch.eye(2).sum_to_size(size=(3, 2))


def test_composites_declare_when_errors_are_raised() -> None:
    with pytest.raises(OpDeclarationError, match="not 'never'"):
        composite("kron(Tensor self, Tensor other) -> Tensor", errors="never")  # type: ignore[arg-type]
    with pytest.raises(OpDeclarationError):
        composite()


def test_overloads_have_schemas() -> None:
    aten = torch.ops.aten
    assert str(aten.add.Tensor._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert str(aten.movedim.int._schema) == (
        "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"
    )
    assert str(aten.clamp_min_.Tensor._schema) == "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)"
    assert sorted(aten.movedim.overloads()) == ["int", "intlist"]
    assert aten.bitwise_and.overloads() == ["Tensor", "Scalar_Tensor", "Scalar"]
