"""Attention whose scores a function changes, masks by blocks, and causal masks that are not materialized."""

from typing import Any

import pytest

import compat as torch
from compat.nn.attention import bias
from compat.nn.attention import flex_attention as flex

F = torch.nn.functional


def _qkv(*heads: int) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(2, n, 6, 4, requires_grad=True) for n in heads]


def _same(got: Any, want: Any, leaves: list[Any]) -> None:
    assert torch.allclose(got, want, atol=1e-6)
    for a, b in zip(*(torch.autograd.grad((y * y).sum(), leaves) for y in (got, want))):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("gqa", [False, True])
def test_changed_scores_are_a_mask_or_a_bias(gqa: bool) -> None:
    q, k, v = _qkv(4, 2, 2) if gqa else _qkv(4, 4, 4)
    slopes = torch.tensor([0.5, 0.25, 0.125, 1.0])
    blocks = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (b + h != 2), 2, 4, 6, 6, BLOCK_SIZE=2)
    got = flex.flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i), block_mask=blocks, enable_gqa=gqa
    )
    places = torch.arange(6)
    bias = slopes[:, None, None] * (places[None] - places[:, None])
    mask = flex.create_mask(blocks.mask_mod, 2, 4, 6, 6)
    bias = torch.where(mask, bias, torch.tensor(-float("inf")))
    _same(got, F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=gqa), [q, k, v])


def test_attention_gives_the_sums_of_exponentials_too() -> None:
    q, k, v = _qkv(2, 2, 2)
    scores = q @ k.mT / 2
    _, lse = flex.flex_attention(q, k, v, return_lse=True)
    assert torch.allclose(lse, scores.logsumexp(-1))
    _, aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(max_scores=True))
    assert aux.lse is None and torch.equal(aux.max_scores, scores.amax(-1))


def test_blocks_of_a_mask() -> None:
    blocks = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 5, 6, BLOCK_SIZE=2)
    assert blocks.shape == (1, 1, 5, 6) and blocks.numel() == 30 and blocks.sparsity() == pytest.approx(20)
    # The last row of blocks is only half inside, so no block of it is full.
    assert blocks.kv_num_blocks.tolist() == [[[1, 1, 3]]] and blocks.kv_indices[0, 0, :, 0].tolist() == [0, 1, 0]
    assert blocks.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert blocks.q_num_blocks.tolist() == [[[2, 2, 1]]] and blocks.full_q_num_blocks.tolist() == [[[1, 0, 0]]]
    assert repr(blocks[0]).splitlines()[1:4] == ["(0, 0)", "██    ", "████  "]
    assert blocks._adjust(4, 2).to_dense().tolist() == [[[[1], [1]]]]
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        blocks[0].mask_mod(0, 0, 0, 0)
    given = flex.BlockMask.from_kv_blocks(blocks.kv_num_blocks, blocks.kv_indices, BLOCK_SIZE=2)
    assert torch.equal(given.q_indices, blocks.q_indices) and given.seq_lengths == (6, 6)


@pytest.mark.parametrize(
    ("sizes", "options", "error", "text"),
    [
        (((6, 4),) * 3, {}, NotImplementedError, "must be 4D"),
        (((1, 2, 6, 4), (1, 2, 6, 3), (1, 2, 6, 3)), {}, ValueError, "same embedding dimension but got E=4 and E=3"),
        (((1, 4, 6, 4), (1, 2, 6, 4), (1, 2, 6, 4)), {}, ValueError, "Try setting enable_gqa=True"),
        (((1, 4, 6, 4), (1, 3, 6, 4), (1, 3, 6, 4)), {"enable_gqa": True}, ValueError, "multiple of kv heads"),
        (((2, 2, 6, 4), (1, 2, 6, 4), (1, 2, 6, 4)), {}, ValueError, "Bq=2, and Bkv=1"),
    ],
)
def test_attention_with_changed_scores_refuses(sizes: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        flex.flex_attention(*[torch.zeros(size) for size in sizes], **options)


def test_block_masks_must_match_the_sequence_length() -> None:
    x = torch.zeros(1, 1, 4, 2)
    for length, text in ((8, "for a larger length"), (2, "for a smaller length")):
        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length)
        with pytest.raises(ValueError, match=text):
            flex.flex_attention(x, x, x, block_mask=mask)


@pytest.mark.parametrize("keys", [3, 5])
def test_causal_masks_that_are_not_materialized(keys: int) -> None:
    q, k = torch.randn(1, 2, 3, 4, requires_grad=True), torch.randn(1, 2, keys, 4)
    for mask in (bias.causal_upper_left(3, keys), bias.causal_lower_right(3, keys)):
        want = F.scaled_dot_product_attention(q, k, k, attn_mask=mask._materialize())
        _same(F.scaled_dot_product_attention(q, k, k, attn_mask=mask), want, [q])
        with pytest.raises(ValueError, match="should not be used with causal=True"):
            F.scaled_dot_product_attention(q, k, k, attn_mask=mask, is_causal=True)
    assert bias.causal_lower_right(2, 3)._materialize().tolist() == [[True, True, False], [True] * 3]
