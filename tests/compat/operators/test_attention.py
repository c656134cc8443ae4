"""Einstein summation, norms, distances, attention, transformers, and margin losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional
GOLDEN = [case for family in ("einsum", "norms_of_vectors", "attention", "margins") for case in cases(family)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("source", "want"), GOLDEN)
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


# ---------------------------------------------------------------- Einstein summation


def test_einsum_equals_numpys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        sizes = {c: int(rng.integers(1, 4)) for c in "abcde"}
        terms = ["".join(rng.choice(list("abcde"), rng.integers(0, 4))) for _ in range(rng.integers(1, 4))]
        letters = sorted(set("".join(terms)))
        output = "".join(rng.permutation(letters)[: rng.integers(0, 4)])
        arrays = [rng.standard_normal([sizes[c] for c in term]) for term in terms]
        equation = f"{','.join(terms)}->{output}"
        got = torch.einsum(equation, *[torch.tensor(a) for a in arrays])
        np.testing.assert_allclose(got.numpy(), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- derivatives

X = np.random.default_rng(6).standard_normal((4, 3))
Y = torch.tensor(np.random.default_rng(7).standard_normal((4, 3)))
HEADS = torch.tensor(np.random.default_rng(8).standard_normal((1, 2, 5, 3)))
LABELS = torch.tensor([[1, 2], [2, 2]])


def _as_heads(x: Any) -> Any:
    return x.reshape(1, 2, 2, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.einsum("ij,kj,k->i", x, Y, Y[:, 0]),
        lambda x: torch.linalg.vector_norm(x, 3, dim=1),
        lambda x: torch.linalg.matrix_norm(x, 1),
        F.normalize,
        lambda x: F.cosine_similarity(x, Y),
        lambda x: torch.cdist(x, Y, 3.0),
        lambda x: torch.cdist(x, Y, compute_mode="use_mm_for_euclid_dist"),
        F.pdist,
        lambda x: torch.renorm(x, 2, 0, 1.0),
        lambda x: torch.linalg.cross(x, Y),
        lambda x: F.bilinear(x, Y, Y.reshape(2, 2, 3).repeat(1, 2, 1)[:, :3]),
        lambda x: F.scaled_dot_product_attention(_as_heads(x), HEADS, HEADS, is_causal=True),
        lambda x: F.scaled_dot_product_attention(HEADS, _as_heads(x), _as_heads(x)),
        lambda x: F.soft_margin_loss(x, Y.sign()),
        lambda x: F.multi_margin_loss(x, torch.tensor([0, 2, 1, 1]), p=2),
        lambda x: F.ctc_loss(x.reshape(2, 2, 3).repeat(2, 1, 1).log_softmax(-1), LABELS, (4, 4), (1, 1)),
        lambda x: F.embedding_bag(torch.tensor([[0, 1], [3, 3]]), x, mode="mean"),
    ],
)
def test_derivatives_equal_finite_differences(f: Callable[[Any], Any]) -> None:
    assert_derivatives(torch, f, X)


# ---------------------------------------------------------------- attention


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    scores = np.where(hidden, -np.inf, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_heads_that_share_keys_are_those_with_the_keys_repeated() -> None:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal(s) for s in ((2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)))
    want = _attention(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1), np.zeros((3, 5), bool))
    got = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), enable_gqa=True)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_a_row_without_attention_is_zero_and_has_no_gradient() -> None:
    q = torch.ones(1, 1, 2, 3, requires_grad=True)
    k = torch.ones(1, 1, 4, 3)
    mask = torch.tensor([[True] * 4, [False] * 4])
    output = F.scaled_dot_product_attention(q, k, k, attn_mask=mask)
    assert output[0, 0, 1].tolist() == [0.0] * 3
    output.sum().backward()
    assert q.grad.isfinite().all()


def test_large_scores_do_not_overflow() -> None:
    x = torch.full((1, 1, 2, 4), 1e4)
    assert F.scaled_dot_product_attention(x, x, x).tolist() == x.tolist()


def test_a_causal_transformer_ignores_later_tokens() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    x = torch.randn(1, 5, 8)
    changed = x.clone()
    changed[0, 3:] = 7.0
    a, b = model(x, mask=mask), model(changed, mask=mask)
    np.testing.assert_allclose(a[0, :3].detach().numpy(), b[0, :3].detach().numpy(), rtol=1e-5, atol=1e-6)
    assert not np.allclose(a[0, 3:].detach().numpy(), b[0, 3:].detach().numpy())


def test_layers_of_a_stack_have_separate_parameters() -> None:
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 1, 4), 2, enable_nested_tensor=False)
    first, second = (layer.linear1.weight for layer in model.layers)
    assert first is not second
    assert first.tolist() == second.tolist()


# ---------------------------------------------------------------- losses


def test_ctc_sums_over_all_alignments() -> None:
    probabilities = np.random.default_rng(2).dirichlet(np.ones(3), 4)
    total = 0.0
    for path in np.ndindex(3, 3, 3, 3):
        merged = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in merged if c != 0] == [1, 2]:
            total += float(np.prod(probabilities[np.arange(4), path]))
    log_probs = torch.tensor(np.log(probabilities))
    loss = F.ctc_loss(log_probs, torch.tensor([1, 2]), torch.tensor(4), torch.tensor(2), reduction="sum")
    assert loss.item() == pytest.approx(-np.log(total), rel=1e-12)


def test_an_adaptive_softmax_sums_to_one() -> None:
    torch.manual_seed(0)
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
    x = torch.randn(6, 8)
    log_probs = layer.log_prob(x)
    np.testing.assert_allclose(log_probs.exp().sum(1).detach().numpy(), np.ones(6), rtol=1e-5)
    assert layer.predict(x).tolist() == log_probs.argmax(1).tolist()
    target = torch.tensor([0, 4, 5, 9, 10, 19])
    want = log_probs.gather(1, target.unsqueeze(1)).squeeze(1)
    np.testing.assert_allclose(layer(x, target).output.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_empty_bags_are_zero() -> None:
    table = torch.ones(3, 2, requires_grad=True)
    for mode in ("sum", "mean", "max"):
        bags = F.embedding_bag(torch.tensor([0, 1]), table, torch.tensor([0, 0, 2]), mode=mode)
        assert bags[0].tolist() == bags[2].tolist() == [0.0, 0.0]


def test_in_inference_an_encoder_is_zero_at_the_padding() -> None:
    type("Tensor of another kind", (torch.Tensor,), {})  # from here on functions may be overridden
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 1).eval()
    x = torch.randn(2, 4, 8)
    padding = torch.tensor([[False, False, True, True], [False] * 4])
    with torch.no_grad():
        output = model(x, src_key_padding_mask=padding)
        alone = model(x[:1, :2])
    assert (output[0, 2:] == 0).all()
    assert (output[1] != 0).all()
    np.testing.assert_allclose(output[0, :2].numpy(), alone[0].numpy(), rtol=1e-5, atol=1e-6)
    recorded = model(x, src_key_padding_mask=padding)
    assert (recorded[0, 2:] != 0).all()
