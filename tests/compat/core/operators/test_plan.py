"""Declared operations: derived backward programs, and errors of wrong declarations."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import compat as torch
from compat._core.operators.declaration import Gradients, OpDeclarationError
from compat._core.operators.op import Op, aten, pointwise
from compat._core.operators.view_op import view
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of

# Operations for these tests only: they are not published.


@pointwise(
    "scaled(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "scaled.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor",
    node="ScaledBackward0", saves="other self alpha", names="",
)  # fmt: skip
def scaled(input: Any, other: Any, *, alpha: Any) -> Any:
    return np.multiply(np.multiply(input, other), np.astype(alpha, type_of(input).dtype))


@aten("logistic(Tensor self) -> Tensor", node="LogisticBackward0", saves="result", names="")
def logistic(input: Any) -> Any:
    return np.divide(1, np.add(1, np.exp(np.negative(input))))


@logistic.backward
def logistic_backward(ct: Any, result: Any) -> Any:
    return np.multiply(ct, np.multiply(result, np.subtract(1, result)))


@aten(
    "pair(Tensor self, int dim) -> (Tensor total, Tensor square)",
    node="PairBackward0", saves="self dim result1", names="",
)  # fmt: skip
def pair(input: Any, dim: int) -> Any:
    return np.sum(input, axis=dim), np.multiply(input, input)


@aten("join(Tensor[] tensors, Tensor? weight=None) -> Tensor", node="JoinBackward0", saves="tensors", names="")
def join(tensors: Any, weight: Any) -> Any:
    total = tensors[0]
    for t in tensors[1:]:
        total = np.multiply(total, t)
    return total if weight is None else np.multiply(total, weight)


@aten(
    "pick(Tensor self, Tensor index) -> Tensor",
    node="PickBackward0", saves="index self.sym_sizes", names="", gradients=Gradients(without="index"),
)  # fmt: skip
def pick(input: Any, index: Any) -> Any:
    return np.take(input, index, axis=0)


@aten("undeclared(Tensor self, Tensor other) -> Tensor", node="UndeclaredBackward0", saves="self", names="")
def undeclared(input: Any, other: Any) -> Any:
    return np.multiply(input, other)


@view("reversed_dims(Tensor(a) self) -> Tensor(a)", node="ReversedDimsBackward0", saves="self.sym_sizes", names="")
def reversed_dims(input: Any) -> Any:
    return input._replace(size=input.size[::-1], stride=input.stride[::-1])


def grown(*shape: int) -> Any:
    """A leaf with distinct numbers."""
    rng = numpy.random.default_rng(len(shape))
    return torch.tensor(rng.standard_normal(shape)).requires_grad_()


def test_only_needed_values_are_saved() -> None:
    a, b = grown(3), grown(3)
    both = scaled(a, b).grad_fn
    assert both._saved_self is a
    assert both._saved_other is b
    one = scaled(a, b.detach()).grad_fn
    assert one._saved_self is None
    assert one._saved_other is not None
    assert one.next_functions[1] == (None, 0)
    assert [n for n in dir(one) if "saved" in n] == [
        "_raw_saved_other", "_raw_saved_self", "_saved_alpha", "_saved_other", "_saved_self",
    ]  # fmt: skip


def test_a_number_is_an_operand_without_an_edge() -> None:
    a = grown(2)
    node = scaled(a, 3, alpha=2.5).grad_fn
    assert node._saved_other.item() == 3
    assert node._saved_alpha == 2.5
    assert node.next_functions[1] == (None, 0)
    (g,) = torch.autograd.grad(scaled(a, 3, alpha=2.5).sum(), a)
    assert g.tolist() == [7.5, 7.5]


def test_undeclared_saved_values_raise() -> None:
    with pytest.raises(
        OpDeclarationError, match=r"undeclared: its backward needs 'other', .*declares to save \(input\)"
    ):
        undeclared(grown(2), grown(2).detach())
    # This is valid if that gradient is not needed.
    undeclared(grown(2).detach(), grown(2).detach())


def test_an_explicit_backward_is_differentiable() -> None:
    x = grown(4)
    y = logistic(x)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    s = 1 / (1 + numpy.exp(-x.detach().numpy()))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    numpy.testing.assert_allclose(g.detach().numpy(), s * (1 - s))
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    numpy.testing.assert_allclose(h.detach().numpy(), s * (1 - s) * (1 - 2 * s))
    (third,) = torch.autograd.grad(h.sum(), x)
    numpy.testing.assert_allclose(third.numpy(), s * (1 - s) * (1 - 6 * s + 6 * s * s))


def test_several_results_with_some_gradients() -> None:
    x = grown(2, 3)
    out = pair(x, -1)
    assert type(out).__name__ == "pair"
    assert out.total is out[0]
    assert out.square.output_nr == 1
    assert out.total.grad_fn._saved_dim == 2**64 - 1
    (g,) = torch.autograd.grad(out.square.sum(), x, retain_graph=True)
    numpy.testing.assert_allclose(g.numpy(), 2 * x.detach().numpy())
    (g,) = torch.autograd.grad(out.total.sum(), x, retain_graph=True)
    assert g.tolist() == [[1.0] * 3] * 2
    (g,) = torch.autograd.grad(out.total.sum() + out.square.sum(), x)
    numpy.testing.assert_allclose(g.numpy(), 1 + 2 * x.detach().numpy())


def test_sequences_and_absent_operands() -> None:
    a, b, c = grown(2), grown(2), grown(2)
    y = join([a, b.detach(), c])
    assert [f is not None for f, _ in y.grad_fn.next_functions] == [True, False, True, False]
    ga, gc = torch.autograd.grad(y.sum(), [a, c])
    numpy.testing.assert_allclose(ga.numpy(), (b * c).detach().numpy())
    numpy.testing.assert_allclose(gc.numpy(), (a * b).detach().numpy())
    (gw,) = torch.autograd.grad(join((a.detach(),), b).sum(), b)
    assert gw.tolist() == a.tolist()
    with pytest.raises(TypeError, match="argument 'tensors' \\(position 1\\) must be tuple of Tensors, not Tensor"):
        join(a)
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        join([a, 3])


def test_an_index_has_no_edge() -> None:
    x = grown(4, 2)
    y = pick(x, torch.tensor([0, 0, 3]))
    assert len(y.grad_fn.next_functions) == 1
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def test_a_view_is_undone_by_a_view() -> None:
    x = grown(2, 3, 4)
    y = reversed_dims(x)
    assert y._base is x
    assert y.grad_fn._saved_self_sym_sizes == (2, 3, 4)
    ct = torch.ones(4, 3, 2, dtype=torch.float64)
    (g,) = torch.autograd.grad(y, x, ct)
    assert g.untyped_storage().data_ptr() == ct.untyped_storage().data_ptr()
    assert g.shape == (2, 3, 4)


def test_results_follow_the_operands_memory_order() -> None:
    a = torch.ones(4, 3, 2).permute(2, 0, 1)
    assert scaled(a, a).stride() == a.stride()
    assert logistic(a).is_contiguous()
    sliced = torch.ones(4, 6)[::2, ::3]
    assert scaled(sliced, 2.0).stride() == (2, 1)


def test_programs_are_shared_by_calls_that_differ_in_numbers() -> None:
    x = torch.ones(2, 5)
    scaled(x, x, alpha=0.5)
    before = len(scaled.plans)
    for i in range(20):
        scaled(x, x, alpha=i + 0.25)
    assert len(scaled.plans) == before
    scaled(x, x, alpha=3)  # an int is another kind
    assert len(scaled.plans) == before + 1


def test_checks_run_once_and_inspections_always() -> None:
    checked, inspected = [], []

    @aten(
        "shaped(Tensor self, SymInt[] size) -> Tensor",
        names="",
        check=lambda x, size: checked.append(size),
        values=lambda x, size: inspected.append(size),
    )
    def shaped(input: Any, *size: int) -> Any:
        return np.reshape(input, size)

    for _ in range(3):
        assert shaped(torch.ones(6), 2, 3).shape == (2, 3)
        assert shaped(torch.ones(6), [3, 2]).shape == (3, 2)
    assert checked == [(2, 3), (3, 2)]
    assert inspected == [(2, 3), (3, 2)] * 3


def test_a_failing_check_is_not_remembered() -> None:
    def refuse(input: Any, dim: Any = None) -> None:
        raise RuntimeError("not today")

    @aten("never(Tensor self, int[]? dim=None) -> Tensor", names="", check=refuse)
    def never(input: Any, dim: Any) -> Any:
        return input

    for _ in range(2):
        with pytest.raises(RuntimeError, match="not today"):
            never(torch.ones(2))
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 3\)"):
        pair(grown(2), 3)


def test_an_operation_without_a_derivative() -> None:
    @aten("odd(Tensor self) -> Tensor", names="", gradients=Gradients(undefined=True))
    def odd(input: Any) -> Any:
        return np.floor(input)

    x = grown(2)
    y = odd(x)
    assert y.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::odd is not implemented"):
        y.sum().backward()


def test_a_public_name_is_given_once() -> None:
    with pytest.raises(ValueError, match=r"publish: torch\.add is already"):
        aten("another(Tensor self) -> Tensor", node="AnotherBackward0", names="torch.add")(lambda x: x)


def test_nodes_save_only_needed_tensors() -> None:
    import weakref

    x = torch.ones(3, requires_grad=True)
    z = x * 1
    ref = weakref.ref(z)
    y = z * 2.0  # needs only the number
    del z
    assert ref() is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_transforms_reach_declared_operations() -> None:
    x = grown(3).detach()
    value, tangent = torch.func.jvp(lambda v: scaled(logistic(v), v, alpha=2.0), (x,), (torch.ones_like(x),))
    s = 1 / (1 + numpy.exp(-x.numpy()))
    numpy.testing.assert_allclose(value.numpy(), 2 * s * x.numpy())
    numpy.testing.assert_allclose(tangent.numpy(), 2 * (s + x.numpy() * s * (1 - s)))
    rows = torch.func.vmap(lambda v: pair(v, 0).total)(grown(4, 3).detach())
    assert rows.shape == (4,)
    hessian = torch.func.hessian(lambda v: (v**3).sum())(x)
    numpy.testing.assert_allclose(hessian.numpy(), numpy.diag(6 * x.numpy()))


def test_transforms_reach_mutation() -> None:
    def f(x: Any) -> Any:
        y = x.new_zeros(3)  # one for each batch element, where torch.zeros would be one for all
        y[1:] = x[:2] * 2
        y[0].add_(x[2])
        y.mul_(y)
        return y.sum()

    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    numpy.testing.assert_allclose(torch.func.grad(f)(x).numpy(), [8.0, 16.0, 6.0])
    batch = torch.func.vmap(torch.func.grad(f))(torch.stack([x, 2 * x]))
    numpy.testing.assert_allclose(batch.numpy(), [[8.0, 16.0, 6.0], [16.0, 32.0, 12.0]])


def test_detach_stops_every_transform() -> None:
    x = torch.tensor([2.0, 3.0])
    numpy.testing.assert_allclose(torch.func.grad(lambda v: (v.detach() * v).sum())(x).numpy(), x.numpy())


def test_a_dimension_given_as_a_number_finds_its_plan_again(monkeypatch: Any) -> None:
    missed: list[str] = []
    miss = Op.miss
    monkeypatch.setattr(Op, "miss", lambda self, *given: missed.append(self.name) or miss(self, *given))
    x = torch.ones(2, 3)
    total = aten("total(Tensor self, int[] dim) -> Tensor", names="")(_total)
    for dim in (1, 1, (1,), [1]):
        assert total(x, dim).tolist() == [3.0, 3.0]
    assert missed == [total.name]


def _total(input: Any, dim: Any) -> Any:
    return np.sum(input, axis=dim)
