"""Edge cases of ``nn``: bags with a last offset, other modules' tensors, handles, empty sequences."""

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import compat as torch
from compat import nn
from compat.nn import functional as F


@pytest.mark.parametrize(("mode", "padding"), [("mean", 61), ("max", None), ("sum", 61)])
def test_where_the_last_bag_ends_counts_in_the_fast_code_only(mode: str, padding: int | None) -> None:
    table, indices = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 1, 2, 3])
    weight = torch.cat([table, torch.zeros(96, 3)])
    bags = lambda end, **more: F.embedding_bag(
        indices, weight, torch.tensor([0, 3, end]), mode=mode, include_last_offset=True, **more
    )
    assert torch.equal(bags(3, padding_idx=padding), bags(4, padding_idx=padding))
    assert torch.equal(bags(3, padding_idx=padding)[1], table[3])
    if mode != "max":
        assert torch.equal(bags(3)[1], torch.zeros(3))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (dict(padding_idx=4), "padding_idx must be within the number of embeddings, -4 through 3, but got 4"),
        (dict(per_sample_weights=torch.ones(1, 2).double(), mode="sum"), "to have the same type as"),
    ],
)
def test_bags_refuse(given: dict, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        F.embedding_bag(torch.tensor([[0, 1]]), torch.zeros(4, 3), **given)


def test_bags_with_last_offset_need_an_offset() -> None:
    empty = torch.tensor([], dtype=torch.int64)
    with pytest.raises(RuntimeError, match="number of offset should be at least 1"):
        F.embedding_bag(torch.tensor([1]), torch.zeros(4, 3), empty, include_last_offset=True)


def test_empty_sequences_cannot_be_packed() -> None:
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        nn.utils.rnn.pack_padded_sequence(torch.zeros(0, 0), [])


def test_handles_reference_their_dictionaries() -> None:
    module = nn.Linear(1, 1)
    handle = module.register_forward_hook(lambda *_: None, always_call=True)
    assert list(handle.hooks_dict_ref()) == [handle.id] and len(handle.extra_dict_ref) == 2
    handle.remove()
    assert not handle.hooks_dict_ref()


def test_a_public_hook_of_saving_is_no_private_one() -> None:
    module, hook = nn.Linear(1, 1), lambda *_: None
    module.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        module._register_state_dict_hook(hook)


def test_a_module_that_holds_itself_is_called_with_other_tensors() -> None:
    module = nn.Sequential(nn.Linear(1, 1))
    module[0].back = module
    tensors = {"0.back.0.weight": torch.tensor([[2.0]]), "0.bias": torch.tensor([1.0])}
    assert torch.func.functional_call(module, tensors, torch.tensor([[3.0]]), tie_weights=False).item() == 7
    assert module[0].weight is not tensors["0.back.0.weight"]


def test_a_parameter_under_a_new_name_is_a_parameter_for_the_call() -> None:
    class Counting(nn.Module):
        def forward(self) -> list[str]:
            return [name for name, _ in self.named_parameters()]

    module = Counting()
    assert torch.func.functional_call(module, {"extra": nn.Parameter(torch.ones(1))}, ()) == ["extra"]
    assert torch.func.functional_call(module, {"extra": torch.ones(1)}, ()) == []
    assert module() == [] and not hasattr(module, "extra")


def test_functional_call_checks_types_before_it_replaces_parameters() -> None:
    module = nn.Linear(1, 1)
    weight = module.weight
    with pytest.raises(TypeError, match=r"1 is not an instance of torch\.Tensor"):
        torch.func.functional_call(module, {"weight": torch.ones(1, 1), "bias": 1}, torch.ones(1, 1))
    with pytest.raises(TypeError, match=r"attribute `in_features`: 1 is not an instance of torch\.Tensor"):
        torch.func.functional_call(module, {"in_features": torch.ones(1)}, torch.ones(1, 1))
    assert module.weight is weight


@pytest.mark.parametrize(
    "step",
    [
        lambda x: F.elu(x, -2.0, inplace=True),
        lambda x: F.celu(x, -2.0, inplace=True),
        lambda x: F.leaky_relu(x, -2.0, inplace=True),
        lambda x: F.rrelu(x, -5.0, -2.0, inplace=True),
    ],
)
def test_in_place_activations_with_a_negative_slope_raise_in_backward(step: Any) -> None:
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    y = step(x * 1)
    with pytest.raises(RuntimeError, match="negative slope which is not supported"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_compared_with_a_threshold_that_is_not_rounded(dtype: Any) -> None:
    x = torch.tensor([0.1, 0.05]).to(dtype)
    above = (x.float() > 0.1).tolist()
    assert (F.threshold(x, 0.1, 20.0) != 20).tolist() == above


def test_threshold_in_place_on_an_expanded_tensor() -> None:
    x = torch.arange(4.0).expand(3, 4)
    F.threshold(x, 1.5, 7.0, inplace=True)
    assert x.tolist() == [[7.0, 7.0, 2.0, 3.0]] * 3


def test_a_buffer_takes_no_other_name_and_registers_as_the_class_does() -> None:
    module = nn.Module()
    module.kept = 5
    with pytest.raises(KeyError, match="attribute 'kept' already exists"):
        module.kept = nn.Buffer(torch.ones(1))

    class Older(nn.Module):
        def register_buffer(self, name: str, tensor: Any) -> None:  # type: ignore[override]
            super().register_buffer(name, tensor)

    older = Older()
    older.one = nn.Buffer(torch.ones(1))
    assert list(older.state_dict()) == ["one"]
    with pytest.raises(RuntimeError, match="without the persistent argument is not allowed"):
        older.two = nn.Buffer(torch.ones(1), persistent=False)


@pytest.mark.parametrize("size", [(1, 2, 1), (1, 2)])
def test_groups_of_one_value_are_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.group_norm(torch.ones(size), 2)
    assert torch.group_norm(torch.ones(size), 2).tolist() == torch.zeros(size).tolist()


@pytest.mark.parametrize("make", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_cells_may_have_no_state_at_all(make: Any) -> None:
    found = make(3, 0)(torch.ones(2, 3))
    assert (found[0] if make is nn.LSTMCell else found).shape == (2, 0)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_of_no_batch(need_weights: bool) -> None:
    x = torch.ones(3, 0, 8)
    out, weights = nn.MultiheadAttention(8, 2)(x, x, x, need_weights=need_weights)
    assert out.shape == (3, 0, 8) and (weights is None or weights.shape == (0, 3, 3))


def test_modules_are_moved_not_copied() -> None:
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        nn.Linear(1, 1).to("cpu", copy=True)


def test_grids_of_one_place_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="behavior has changed for unit-size grids"):
        F.affine_grid(torch.zeros(1, 2, 3), (1, 1, 2, 1), align_corners=True)


def test_too_few_blocks_and_too_large_images_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"sliding blocks as \(-4, -3\), which is too small"):
        nn.Fold((4, 5), 2, dilation=8)(torch.ones(1, 12, 12))
    with pytest.raises(RuntimeError, match="to type int64_t without overflow"):
        F.interpolate(torch.ones(1, 1, 4, 4), scale_factor=1e20)


def test_gradients_have_a_private_alias() -> None:
    x, g = torch.zeros(2, requires_grad=True), torch.ones(2)
    x._grad = g
    assert x.grad is g and x._grad is g


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_recurrent_layers_within_autocast(dtype: Any) -> None:
    x, sequence = torch.ones(2, 3), torch.ones(5, 2, 3)
    packed = nn.utils.rnn.pack_padded_sequence(sequence, [5, 3])
    with torch.autocast("cpu", dtype):
        assert nn.RNNCell(3, 4)(x).dtype is dtype
        assert nn.GRUCell(3, 4)(x).dtype is nn.LSTMCell(3, 4)(x)[1].dtype is torch.float32
        for layer in (nn.RNN(3, 4), nn.LSTM(3, 4)):
            assert layer(sequence)[0].dtype is dtype
        assert nn.RNN(3, 4)(packed)[0].data.dtype is dtype
        assert nn.LSTM(3, 4)(packed)[0].data.dtype is nn.GRU(3, 4)(sequence)[0].dtype is torch.float32


# ---------------------------------------------------------------- parameters that are swapped or overwritten


@pytest.fixture
def swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_two_tensors_become_each_other() -> None:
    class Own(torch.Tensor):
        pass

    a, b = torch.ones(2).as_subclass(Own), torch.zeros(3)
    a.note = 1
    torch.utils.swap_tensors(a, b)
    assert type(a) is torch.Tensor and a.shape == (3,) and type(b) is Own and b.note == 1
    held = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        torch.utils.swap_tensors(b, a)
    assert held() is a and a.shape == (3,)


def test_backward_through_a_swapped_tensor_raises() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    torch.utils.swap_tensors(x, torch.zeros(2))
    with pytest.raises(RuntimeError, match="was poisoned by swap_tensors"):
        y.backward()


@pytest.mark.usefixtures("swapping")
def test_conversions_and_loading_swap_parameters() -> None:
    module = nn.Linear(2, 2)
    module(torch.ones(1, 2)).sum().backward()
    weight, grad = module.weight, module.weight.grad
    module.double()
    assert module.weight is weight and weight.grad is grad
    assert weight.dtype is grad.dtype is torch.float64 and type(weight) is nn.Parameter
    module.load_state_dict({"weight": torch.zeros(2, 2), "bias": torch.ones(2)}, assign=True)
    assert module.weight is weight and weight.dtype is torch.float32 and weight.requires_grad
    held = weakref.ref(module.bias)
    with pytest.raises(RuntimeError, match=r"Couldn't swap Linear\.bias"):
        module.double()
    assert held() is module.bias


def test_conversions_may_overwrite_parameters() -> None:
    module = nn.Linear(2, 2)
    weight = module.weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        module.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert module.weight is not weight and weight.dtype is torch.float32 and module.weight.dtype is torch.float64


# ---------------------------------------------------------------- a linear map fused with its loss


@pytest.mark.parametrize("places", [(), (2,)])
def test_a_linear_map_with_its_loss_is_both(places: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(4, 3), torch.rand(5)
    target = torch.randint(0, 5, (4, *places))
    loss = nn.LinearCrossEntropyLoss(3, 5, out_features=places, bias=True, weight=weight, ignore_index=2)
    scores = loss.linear(x).view(4, 5, *places)
    want = F.cross_entropy(scores, target, weight, ignore_index=2)
    assert torch.equal(loss(x, target), want)
    assert list(loss.state_dict()) == ["weight", "linear.weight", "linear.bias"]


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (((2, 4, 3), (5, 3)), "dimensionality 1 or 2, got 3"),
        (((4, 3), (5,)), "dimensionality at least 2, got 1"),
        (((4, 3), (5, 2)), r"\(in_features\), got 3 and 2"),
        (((3,), (5, 2, 3)), r"requires batched input, \(N, 3\), got unbatched input with shape \(3,\)"),
    ],
)
def test_a_linear_map_with_its_loss_refuses(sizes: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        F.linear_cross_entropy(*map(torch.ones, sizes), torch.zeros(4).long())
