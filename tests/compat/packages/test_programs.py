"""Regressions found by random programs: nodes, gradients and memory after rare combinations of operations."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import compat as torch


def leaf(*numbers: float) -> Any:
    return torch.tensor(numbers, requires_grad=True)


def stale() -> Any:
    """One of several views, whose base was written since: using it in a recorded operation raises."""
    x = leaf(1.0, 2.0, 3.0)
    part, *_ = x.unbind()
    x.detach().add_(1)
    return part


# ---------------------------------------------------------------- views of modified tensors


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t > 1,
        lambda t: t.long(),
        lambda t: t.to(torch.int64, copy=True),
        lambda t: t.argmax(),
        torch.isnan,
        torch.empty_like,
        lambda t: t.item(),
        lambda t: t.tolist(),
        lambda t: t.requires_grad,
        repr,
    ],
)
def test_unrecorded_operations_on_stale_views_do_not_raise(use: Any) -> None:
    use(stale())


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t * 2,
        lambda t: t[::2],  # a number cannot be sliced, but that error comes later
        lambda t: t.sum(5),
        lambda t: t.to(torch.float64),
        lambda t: t.retain_grad(),
        lambda t: t.register_hook(print),
        lambda t: t.round(),
    ],
)
def test_recorded_operations_on_stale_views_raise(use: Any) -> None:
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified"):
        use(stale())


def test_numpy_of_a_stale_view_that_requires_grad_raises() -> None:
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        stale().numpy()


# ---------------------------------------------------------------- tensors that become their own views


def test_retain_grad_before_an_in_place_view_keeps_the_old_tensors_gradient() -> None:
    y = leaf(1.0, 2.0, 3.0) * 2
    y.retain_grad()
    y.unsqueeze_(0)
    y.sum().backward()
    assert y.grad.shape == (3,)


def test_in_place_views_keep_tensor_hooks_until_the_tensor_is_written() -> None:
    y = leaf(1.0, 2.0, 3.0) * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(("first", tuple(g.shape))))
    y.unsqueeze_(0)
    y.register_hook(lambda g: seen.append(("second", tuple(g.shape))))
    y.mul_(2)
    y.register_hook(lambda g: seen.append(("third", tuple(g.shape))))
    y.sum().backward()
    assert seen == [("third", (1, 3)), ("first", (3,)), ("second", (3,))]


# ---------------------------------------------------------------- versions, gradients


def test_parameters_share_the_version_counter_of_their_data() -> None:
    t = torch.zeros(2)
    t.add_(1)
    t.data = torch.ones(2)
    parameter = torch.nn.Parameter(t)
    assert parameter._version == 1
    t.add_(1)
    assert parameter._version == 2


class Double(torch.autograd.Function):
    """Writes into its operand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_in_place_custom_functions_clear_the_retained_gradient() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    assert y.grad is not None
    Double.apply(y)
    assert y.grad is None
    plain = torch.ones(2)
    plain.grad = torch.ones(2)
    Double.apply(plain)  # not recorded
    assert plain.grad is not None


@pytest.mark.parametrize(
    ("seen", "shared"),
    [
        (lambda x: x.view(3, 1), True),
        (lambda x: x.ravel(), True),
        (lambda x: x.unsqueeze(0).squeeze(), True),
        (lambda x: x.view(1, 3).t().view(3), True),
        (lambda x: (x + 1).view(3, 1), True),
        (lambda x: x, False),
        (lambda x: x[...], False),
        (lambda x: x.squeeze(), False),
        (lambda x: x[:], False),
        (lambda x: x.expand(3), False),
        (lambda x: x + 1, False),
        (lambda x: x.view(3, 1) * 1, False),
        (lambda x: x[...].view(3, 1)[...].squeeze(0), True),
    ],
)
def test_a_gradient_through_views_aliases_the_argument_of_backward(seen: Any, shared: bool) -> None:
    x = leaf(1.0, 2.0, 3.0)
    for _ in range(3):  # also once the graph is known
        x.grad = None
        y = seen(x)
        given = torch.ones(y.shape)
        y.backward(given)
        x.grad.add_(1)
        np.testing.assert_array_equal(given.numpy(), np.full(tuple(y.shape), 2.0 if shared else 1.0))
        assert given._version == int(shared)


def test_the_last_of_two_leaves_with_one_gradient_takes_its_storage() -> None:
    x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
    given = torch.ones(2)
    (x + z).view(2).backward(given)
    memory = given.untyped_storage().data_ptr()
    assert x.grad.untyped_storage().data_ptr() != memory
    assert z.grad.untyped_storage().data_ptr() == memory


def test_gradients_of_empty_tensors_are_differentiable() -> None:
    x = leaf(0.0)
    (g,) = torch.autograd.grad((1 - x[x > 0]).square().sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = torch.autograd.grad(g.square().sum(), x)
    assert h.tolist() == [0.0]


def test_backward_twice_through_an_empty_selection_raises() -> None:
    y = leaf(-1.0, -2.0)
    y = y[y > 0]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_values_of_batched_retained_gradients_raise_runtime_errors() -> None:
    y = leaf(1.0, 2.0) * 2
    y.sum().backward(inputs=[y])  # it retains its gradient from now on
    torch.autograd.grad(y.clone(), y, torch.eye(2), is_grads_batched=True)
    with pytest.raises(RuntimeError):
        y.grad.detach().reshape(-1).tolist()


# ---------------------------------------------------------------- errors and their lines


@pytest.mark.parametrize(
    "write",
    [
        torch.nn.functional.leaky_relu_,
        lambda t: t.sin_(),
        lambda t: t.mul_(torch.ones(5)),
        lambda t: t.round_() if t.is_complex() else t.add_(1.5),
    ],
)
def test_overlap_errors_precede_errors_about_operands(write: Any) -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(torch.ones(2, dtype=torch.int64).expand(3, 2))


def test_storage_offsets_of_empty_slices() -> None:
    x = torch.zeros(4, 3)
    assert [part.storage_offset() for part in (x[:, 3:][2], x[4:][:, 1:], x[:, 1:1][0], x[:, 1:1][1:2])] == [
        9,
        13,
        1,
        4,
    ]


def test_view_dtype_of_lazily_conjugated_or_negated_tensors_raises() -> None:
    x = torch.tensor([1 + 1j])
    for view, kind in ((x.conj(), "conjugate view"), (x.conj().imag, "negative bit")):
        with pytest.raises(RuntimeError, match=kind):
            view.view(view.dtype)


def test_masked_fill_with_a_complex_number_without_imaginary_part() -> None:
    x, mask = torch.ones(2), torch.tensor([True, False])
    value = torch.tensor(2 + 0j, requires_grad=True)
    y = x.requires_grad_().masked_fill(mask, value)
    y.sum().backward()
    assert y.tolist() == [2.0, 1.0]
    assert x.grad.tolist() == [0.0, 1.0]
    assert value.grad.item() == 1
    with pytest.raises(RuntimeError, match="without overflow"):
        x.masked_fill(mask, torch.tensor(1j))


@pytest.mark.parametrize("compare", [torch.gt, torch.le, torch.logaddexp, torch.atan2, torch.special.zeta])
def test_errors_about_sizes_precede_errors_about_dtypes(compare: Any) -> None:
    operands = torch.ones(3, 2), torch.ones(4, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="must match the size of tensor b") as caught:
        compare(*operands)
    assert not isinstance(caught.value, NotImplementedError)


def test_transforms_read_stale_views_under_no_grad() -> None:
    x = leaf(1.0, 1.0)
    with torch.no_grad():
        part = x[...]
        x.fill_(3)  # about which ``part`` would have to raise
        gradient = torch.func.grad(lambda v: (v * part).sum())(x)
    assert gradient.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="no_grad mode"):
        torch.func.grad(lambda v: (v * part).sum())(x)


def test_saved_tensors_of_resized_storages_raise() -> None:
    factor, x = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    y = x * factor
    factor.data = torch.ones(4, 3)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(4\)"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("view", "gradient"),
    [
        (lambda x: x.expand(2, 3), [[0.5, 1.0, 0.0], [0.5, 1.0, 0.0]]),
        (lambda x: x.unfold(0, 2, 1), [[1.0, 1.0], [1.0, 0.0]]),
        (lambda x: x[0].expand(3), [1 / 3] * 3),
    ],
)
def test_as_strided_of_an_overlapping_tensor_has_averaged_gradients(view: Any, gradient: list[Any]) -> None:
    whole = view(leaf(1.0, 2.0, 3.0) * 2)
    part = whole.as_strided((1,) if whole.dim() == 1 else (2,), (1,))
    (g,) = torch.autograd.grad(part, whole, torch.arange(1.0, 1 + len(part)))
    np.testing.assert_allclose(g.numpy(), gradient, rtol=1e-6)


def test_saved_operands_of_in_place_operations_are_copies() -> None:
    y = leaf(1.0, 2.0) * 2
    before = y.grad_fn
    y.sin_()
    kept = y.grad_fn._saved_self
    assert kept.tolist() == [2.0, 4.0]
    assert kept.grad_fn.name() == "CloneBackward0"
    assert kept.grad_fn.next_functions[0][0] is before
    assert y.grad_fn.next_functions[0][0] is before


def test_imag_of_a_conjugate_is_a_slice_of_its_negation() -> None:
    x = torch.tensor([1 + 1j], requires_grad=True)
    node, names = x.conj().imag.grad_fn, []
    while node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    assert names == ["SelectBackward0", "NegViewBackward0", "ViewAsRealBackward0", *["ConjBackward0"] * 2]


def test_saved_ord_has_the_type_of_the_argument() -> None:
    x = leaf(3.0, 4.0)
    for given in (2, 2.0, 1.0, 1):
        shown = torch.linalg.vector_norm(x, given).grad_fn._saved_ord
        assert (shown, type(shown)) == (given, type(given))


def test_amax_without_an_equal_element_has_a_zero_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x.max()
    y.data.add_(1)
    y.backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_saved_dims_are_unwrapped_and_saved_weights_broadcast() -> None:
    def all_of(node: Any, name: str) -> list[Any]:
        below = [found for following, _ in node.next_functions if following for found in all_of(following, name)]
        return [node, *below] if node.name() == name else below

    x = torch.ones(2, 3, requires_grad=True)
    shown = [node._saved_dims for node in all_of(torch.inner(x, x).grad_fn, "PermuteBackward0")]
    assert shown == [(0, 2**64 - 1), (2**64 - 1, 0)]
    slopes = torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 4.0]),), dim=1)[0]
    assert {tuple(node._saved_self.shape) for node in all_of(slopes.grad_fn, "MulBackward0")} == {(1, 1)}


@pytest.mark.parametrize(
    ("function", "depends"),
    [
        (lambda x: x.clamp(0.5, 1.5), False),
        (lambda x: torch.maximum(x, torch.ones(3)), False),
        (lambda x: x.amax(), False),
        (lambda x: x.gather(0, torch.tensor([0])), False),
        (lambda x: x.masked_select(x > 1), False),
        (lambda x: x.abs(), True),
        (lambda x: x.relu(), True),
        (lambda x: torch.nn.functional.avg_pool1d(x[None], 2), True),
        (
            lambda x: torch.nn.functional.grid_sample(x.view(1, 1, 1, 3), torch.zeros(1, 1, 1, 2), align_corners=False),
            True,
        ),
        (lambda x: x.exp(), True),
    ],
)
def test_create_graph_marks_the_same_gradients_as_pytorch(function: Any, depends: bool) -> None:
    x = leaf(0.25, 1.0, 2.0)
    (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    assert g.requires_grad == depends


def test_view_as_complex_of_a_slice_of_an_odd_buffer() -> None:
    x = torch.arange(5.0)
    z = torch.view_as_complex(x[2:4])
    assert z.item() == 2 + 3j
    z.mul_(2)
    assert x.tolist() == [0.0, 1.0, 4.0, 6.0, 4.0]


def test_post_accumulate_hooks_run_without_a_gradient() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x, called = leaf(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(called.append)
    Nothing.apply(x * 2).sum().backward()
    assert called == [x]
    assert x.grad is None


def test_prehooks_get_a_gradient_for_each_differentiable_result() -> None:
    y, _ = leaf(2.0, 1.0).sort()
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    y.sum().backward()
    assert seen == [1]


def test_hooks_get_no_gradients_of_nondifferentiable_results() -> None:
    x = leaf(1.0, 2.0, 4.0)
    y = torch.nn.functional.layer_norm(x, (3,))
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    y.grad_fn.register_hook(lambda _, grads: seen.append(len(grads)))
    (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
    torch.autograd.grad(g.square().sum(), x)
    assert seen == [1] * 4


@pytest.mark.parametrize("put", [
    lambda x, y: x.slice_scatter(y),
    lambda x, y: x[:1].select_scatter(y[0], 0, 0),
    lambda x, y: x[:1, None].diagonal_scatter(y[:1]),
    lambda x, y: x.as_strided_scatter(y, (3,), (1,)),
])  # fmt: skip
def test_gradients_of_fully_overwritten_tensors_are_differentiable(put: Any) -> None:
    x, y = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
    (g,) = torch.autograd.grad(put(x.clone(), y).square().sum(), x, create_graph=True)
    assert g.requires_grad
    assert torch.autograd.grad(g.square().sum(), x)[0].tolist() == [0.0, 0.0, 0.0]


def test_prod_of_nan_has_nan_gradients() -> None:
    for product in (lambda x: x.prod(), lambda x: x.prod(0)):
        x = leaf(1.0, 2.0, float("nan"))
        product(x).backward()
        assert np.isnan(x.grad.numpy()).all()
        x = leaf(0.0, 2.0, float("nan"))
        product(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [np.nan, np.nan, 0.0])


def test_all_gradients_of_one_operation_require_grad() -> None:
    operands = [torch.ones(1, 1, 3), torch.ones(1, 1, 2), torch.ones(1)]
    for t in operands:
        t.requires_grad_()
    out = torch.nn.functional.conv1d(*operands)
    gradients = torch.autograd.grad(out.sum(), operands, create_graph=True)
    assert [g.requires_grad for g in gradients] == [True, True, True]


def test_set_beyond_the_storage_resizes_it() -> None:
    storage = torch.ones(3).untyped_storage()
    x = torch.zeros(2).set_(storage, 0, (5,), (1,))
    assert storage.nbytes() == 20
    assert x[:3].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="invalid storage offset -1"):
        x.set_(storage, -1, (1,), (1,))


# ---------------------------------------------------------------- leaves of changed size


def outgrown() -> tuple[Any, Any]:
    """A leaf whose size was changed after a result was computed from it."""
    x = torch.tensor([[2.0, -1.5, 1.0], [0.75, -0.25, 1.5]], requires_grad=True)
    y = x * 2
    with torch.no_grad():
        x.unsqueeze_(-1)
    return x, y


def test_resized_leaves_expect_gradients_of_the_old_size() -> None:
    x, y = outgrown()
    with pytest.raises(RuntimeError, match=r"^invalid gradient at index 0 - got \[2, 3, 1\] but expected shape compat"):
        x.backward(torch.ones_like(x))
    with pytest.raises(
        RuntimeError, match=r"^Function MulBackward0 returned an invalid gradient at index 0 - got \[2,"
    ):
        (x * 3).sum().backward()
    y.sum().backward()
    assert x.shape == (2, 3, 1) and x.grad.shape == (2, 3)


def test_a_dtype_change_by_data_makes_a_new_accumulator() -> None:
    x = torch.tensor([2.0, -1.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = x.sin()
    x.data = x.data[:2].float()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, -3.0] and y.shape == (3,)


def test_deepcopy_of_a_leaf_with_a_gradient_of_another_size_raises() -> None:
    x = torch.ones(1, 3, requires_grad=True)
    x.sum().backward()
    with torch.no_grad():
        x.squeeze_()
    with pytest.raises(RuntimeError, match=r"a gradient of size '\[1, 3\]' to a tensor of size '\[3\]'"):
        copy.deepcopy(x)


# ---------------------------------------------------------------- saved values, and hooks


def test_saved_versions_are_checked_even_without_gradients() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x = leaf(0.5, 2.0).cumprod(0)
    x.clamp_(0, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        Nothing.apply(x).sum().backward()


def test_set_of_a_saved_result_raises_in_backward() -> None:
    values, places = leaf(2.0, 1.0).sort()
    places.set_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()


def test_hooks_get_gradients_of_edges_without_a_node() -> None:
    class Swap(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return y, x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return second * 2, first * 3

    seen: list[Any] = []
    x, _ = Swap.apply(torch.tensor([1]), leaf(2.0))
    x.grad_fn.register_hook(lambda grads, _: seen.extend(grads))
    x.sum().backward()
    assert [g.tolist() for g in seen] == [[0], [3.0]] and seen[0].dtype is torch.int64


def test_multi_grad_hooks_are_not_called_for_unreachable_inputs() -> None:
    seen: list[Any] = []
    x, y = leaf(1.0), leaf(2.0)
    torch.autograd.graph.register_multi_grad_hook([x, y], seen.append)
    torch.autograd.backward(x, torch.ones(1), inputs=y)
    torch.autograd.grad(x, y, torch.ones(1), allow_unused=True)
    assert not seen
    with pytest.raises(RuntimeError, match="A leaf node was passed to _will_engine_execute_node"):
        torch.autograd.grad([x, y], y, [torch.ones(1), torch.ones(1)])


# ---------------------------------------------------------------- errors, their order, and valid cases


def test_setitem_of_a_0d_tensor_from_itself() -> None:
    x = torch.tensor(-0.75, requires_grad=True)
    with torch.no_grad():
        x[None] = x
    assert x.item() == -0.75 and x._version == 1


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda: torch.tensor(1 + 2j, requires_grad=True).kthvalue(1), RuntimeError, "kthvalue does not support autom"),
        (lambda: torch.tensor(1 + 2j, requires_grad=True).mode(), RuntimeError, "mode does not support automatic diff"),
        (lambda: torch.tensor(1j, requires_grad=True).cummax(0), RuntimeError, "cummax does not support automatic dif"),
        (lambda: torch.tensor([True]).cumsum_(0), NotImplementedError, "\"cumsum_out_cpu\" not implemented for 'Bool'"),
        (lambda: torch.tensor([1.0]).cumprod_(0, dtype=torch.float64), RuntimeError, "dtype float and output tensor d"),
        (lambda: torch.tensor([1]).cumsum(0, dtype=torch.bool), NotImplementedError, '"cumsum_out_cpu" not implement'),
        (lambda: torch.ones(3, 2)[:0].index_copy(0, torch.tensor([0]), torch.ones(1, 2)), RuntimeError, "setStorage: "),
        (lambda: torch.ones(3, 2)[:0].index_copy_(0, torch.tensor([0]), torch.ones(1, 2)), IndexError, "out of bounds"),
    ],
)
def test_errors(use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use()


def test_overlap_errors_precede_size_and_dtype_errors() -> None:
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([True, False])):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to"):
            x[:1].addcmul_(x, x)
    assert torch.tensor(True).cumsum_(0).item() is True
    assert torch.zeros(0, dtype=torch.bool).cumprod_(0).tolist() == []


def test_angle_of_complex_tensors_is_row_major() -> None:
    x = torch.ones(2, 3, dtype=torch.complex64).t()
    assert x.angle().stride() == (2, 1) and x.sin().stride() == x.real.angle().stride() == (1, 3)


def test_rsqrt_of_complex_zero_is_infinite() -> None:
    found = torch.zeros(1, dtype=torch.complex128).rsqrt()
    assert found.real.item() == float("inf") and np.isnan(found.imag.item())


def test_set_with_a_storage_resizes_it_only_from_a_tensor() -> None:
    small, x = torch.zeros(0), torch.ones(2, 3)
    with pytest.raises(
        RuntimeError, match=r"setStorage: sizes \[2, 3\], strides \[\], storage offset 0.*size of 24 are"
    ):
        x.set_(small.untyped_storage(), 0, (2, 3))
    assert (x.tolist(), x._version, small.untyped_storage().nbytes()) == ([[1.0] * 3] * 2, 0, 0)
    x.set_(small, 1, (2, 2))
    assert (x.shape, small.untyped_storage().nbytes()) == ((2, 2), 20)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        x.set_(small, 0, (2,), (-1,))
    with pytest.raises(TypeError, match=r"got \(Tensor, int\)"):
        x.set_(small, 0)
