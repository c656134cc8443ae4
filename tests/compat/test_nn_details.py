"""What of ``nn`` only shows at the edges: bags with a last offset, other modules' tensors, handles, empty sequences."""

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


def test_nothing_cannot_be_packed() -> None:
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        nn.utils.rnn.pack_padded_sequence(torch.zeros(0, 0), [])


def test_a_handle_knows_the_dictionaries_it_is_in() -> None:
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


def test_what_is_no_tensor_is_refused_before_anything_changes() -> None:
    module = nn.Linear(1, 1)
    weight = module.weight
    with pytest.raises(TypeError, match=r"1 is not an instance of torch\.Tensor"):
        torch.func.functional_call(module, {"weight": torch.ones(1, 1), "bias": 1}, torch.ones(1, 1))
    assert module.weight is weight
