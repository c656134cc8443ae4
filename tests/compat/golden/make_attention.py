"""Records real PyTorch's results of the expressions of the golden tests of
``tests/compat/operators/test_attention.py``.

pip install torch==2.13.0
python tests/compat/golden/make_attention.py
"""

import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from facts import GOLDEN, observe

EINSUM = """
torch.einsum("bij,bjk->bik", x(2, 3, 4), x(2, 4, 5))
torch.einsum("bij,bjk", x(2, 3, 4), x(2, 4, 5))
torch.einsum("ij->ji", x(2, 3))
torch.einsum("ii->i", x(3, 3))
torch.einsum("ii", x(3, 3))
torch.einsum("i,j->ij", x(3), x(4))
torch.einsum("bhqd,bhkd->bhqk", x(2, 3, 4, 5), x(2, 3, 6, 5))
torch.einsum("...ij,...jk->...ik", x(2, 3, 4), x(4, 5))
torch.einsum("i,i->", x(3), x(3))
torch.einsum("ij,kj->ki", x(2, 3), x(4, 3))
torch.einsum("ij,ij->", x(2, 1), x(2, 5))
torch.einsum("ij,i->i", x(2, 3), x(2))
torch.einsum("ij,kl,jk->il", x(2, 3), x(4, 5), x(3, 4))
torch.einsum("bn,anm,bm->ba", x(2, 5), x(3, 5, 4), x(2, 4))
torch.einsum("aab,bBc,cZ->BZ", x(2, 2, 3), x(3, 2, 4), x(4, 3))
torch.einsum(x(2, 3), [0, 1], x(3, 4), [1, 2], [0, 2])
torch.einsum(x(2, 3), [..., 1], [1])
torch.einsum("ij,j", [x(2, 3), x(3)])
torch.einsum("ij,jk", x.plain(2, 3), x.plain(4, 4))
torch.einsum("ij->iii", x.plain(2, 3))
torch.einsum("ij->k", x.plain(2, 3))
torch.einsum("i.j", x.plain(2, 3))
torch.einsum("ij,j", x.plain(2, 3))
torch.einsum("i", x.plain(2, 3))
torch.einsum("i1", x.plain(2, 3))
torch.einsum("ii", x.plain(2, 3))
torch.einsum("i...j...", x.plain(2, 3))
torch.einsum("ij->i->j", x.plain(2, 3))
torch.einsum("ij->i...j...", x.plain(2, 3))
torch.einsum(x.plain(2, 3), [0, 60])
torch.einsum("ij")
torch.einsum("ij", 3)
"""

NORMS = """
torch.norm(x(3, 4))
torch.norm(x(3, 4), 1)
torch.norm(x(3, 4), 3, dim=1, keepdim=True)
torch.norm(x(3, 4), inf, dim=0)
torch.norm(x(3, 4), 0, dim=1)
torch.norm(x(3, 4), 0.5, dim=(0, 1))
torch.norm(x.of(0.0, 0.0), 2)
torch.norm(x(3, 4), p="x")
torch.norm(x(2, 2, 2), p="fro", dim=(0, 1, 2))
torch.norm(x.ints(3), 2)
x(3, 4).norm(1.5, -1)
torch.linalg.norm(x(3, 4), 1)
torch.linalg.norm(x(3, 4), -inf)
torch.linalg.norm(x(3, 4), "fro", dim=(0, 1))
torch.linalg.norm(x.plain(2, 3, 4), 2)
torch.linalg.norm(x.plain(2, 3, 4), 2, dim=(0, 1, 2))
torch.linalg.matrix_norm(x(2, 3, 4), -1, keepdim=True)
torch.linalg.matrix_norm(x.plain(3, 4), 3)
torch.linalg.matrix_norm(x.plain(3))
torch.linalg.matrix_norm(x.plain(3, 4), dim=(0, 0))
torch.linalg.vector_norm(x.plain(3, 4, dtype="float32"), dtype=torch.float64)
torch.linalg.vector_norm(x.plain(0), inf)
torch.linalg.vector_norm(x.plain(0, 3), -1, dim=0)
torch.linalg.vector_norm(x.plain(3), dtype=torch.float32)
torch.linalg.vector_norm(x.plain(3), "x")
F.normalize(x(3, 4), p=3, dim=0)
F.cosine_similarity(x(3, 4), x(1, 4), dim=0)
F.cosine_similarity(x.ints(3, 4), x.ints(3, 4))
F.pairwise_distance(x(3, 4), x(4), p=1, keepdim=True)
torch.cdist(x(3, 4), x(5, 4))
torch.cdist(x(2, 3, 4), x(5, 4), p=1)
torch.cdist(x(30, 4), x(5, 4))
torch.cdist(x(2, 1, 30, 4), x(3, 5, 4))
torch.cdist(x.plain(3, 4), x.plain(3, 5))
torch.cdist(x.plain(3, 4), x.plain(3, 4), p=-1)
torch.cdist(x.plain(3, 4), x.plain(3, 4), compute_mode="x")
F.pdist(x(4, 3), 3)
torch.dist(x(3, 4), x(4), 1)
torch.trace(x(3, 4))
torch.trace(x.plain(3))
torch.renorm(x(3, 4), 2, 0, 1.0)
torch.renorm(x.plain(3, 4), -1, 0, 1)
torch.cross(x(3, 4), x(3, 4), dim=0)
torch.linalg.cross(x(4, 3), x(1, 3))
torch.linalg.cross(x.plain(4, 3), x.plain(3))
torch.cross(x.plain(3, 4), x.plain(3, 4), dim=1)
torch.linalg.vecdot(x(3, 4), x(3, 4))
F.bilinear(x(6, 3, 4), x(6, 3, 5), x(2, 4, 5), x(2))
F.bilinear(x.plain(3, 4), x.plain(2, 5), x.plain(2, 4, 5))
torch.linalg.multi_dot([x(2, 3), x(3, 4), x(4, 5), x(5)])
torch.linalg.multi_dot([x.plain(2, 3)])
torch.linalg.matrix_power(x(3, 3), 5)
torch.linalg.matrix_power(x.plain(2, 3), 2)
torch.linalg.vander(x(3), N=4)
"""

ATTENTION = """
F.scaled_dot_product_attention(x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 5))
F.scaled_dot_product_attention(x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 5), attn_mask=torch.eye(4, 6) > 0)
F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), attn_mask=x.plain(1, 1, 3, 4))
F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), attn_mask=x(3, 4))
F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), is_causal=True, scale=0.3)
F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 6))
F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), attn_mask=torch.zeros(3, 4) > 0)
F.scaled_dot_product_attention(x(1, 4, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), enable_gqa=True)
F.scaled_dot_product_attention(x(2, 3, 5), x(2, 4, 5), x(2, 4, 5), is_causal=True)
F.scaled_dot_product_attention(x(3, 5), x(4, 5), x(4, 5))
F.scaled_dot_product_attention(x(2, 4, 3, 5).transpose(1, 2), x(2, 3, 6, 5), x(2, 3, 6, 5))
[torch.manual_seed(0), F.scaled_dot_product_attention(x(1, 2, 3, 5), x(1, 2, 4, 5), x(1, 2, 4, 5), dropout_p=0.5)]
F.scaled_dot_product_attention(x(1, 2, 0, 5), x(1, 2, 4, 5), x(1, 2, 4, 5))
F.scaled_dot_product_attention(x.plain(1, 2, 3, 5), x.plain(1, 2, 4, 5, dtype="float32"), x.plain(1, 2, 4, 5))
F.scaled_dot_product_attention(x.plain(5), x.plain(5), x.plain(5))
F.scaled_dot_product_attention(x.plain(1, 3, 3, 5), x.plain(1, 2, 4, 5), x.plain(1, 2, 4, 5), enable_gqa=True)
F.scaled_dot_product_attention(x.plain(2, 3), x.plain(2, 3), x.plain(2, 3), attn_mask=x.ints(2, 2))
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2).double()(x(5, 3, 4), x(6, 3, 4), x(6, 3, 4))]
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2).double()(*[x(5, 3, 4)] * 3, need_weights=False)]
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2, batch_first=True).double()(*[x(5, 3, 4)] * 3)]
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=2).double()(x(5, 3, 4), x(6, 3, 3), x(6, 3, 2))]
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2, 0, True, True, True).double()(*[x(5, 3, 4)] * 3)]
[torch.manual_seed(0), torch.nn.MultiheadAttention(4, 2).double()(x(5, 4), x(6, 4), x(6, 4), None, True, None, False)]
torch.nn.MultiheadAttention(4, 3)
torch.nn.MultiheadAttention(0, 3)
torch.nn.MultiheadAttention(4, 2)(x.plain(5, 3, 4), x.plain(5, 4), x.plain(5, 3, 4))
torch.nn.MultiheadAttention(4, 2).double()(*[x.plain(5, 3, 4)] * 3, is_causal=True)
torch.nn.MultiheadAttention(4, 2).double()(*[x.plain(5, 3, 4)] * 3, attn_mask=torch.zeros(3, 3).double())
[torch.manual_seed(0), torch.nn.TransformerEncoderLayer(4, 2, 6).double()(x(5, 3, 4))]
[torch.manual_seed(0), torch.nn.TransformerEncoderLayer(4, 2, 6, 0.1, "gelu", norm_first=True).double()(x(5, 3, 4))]
[torch.manual_seed(0), torch.nn.TransformerDecoderLayer(4, 2, 6).double()(x(5, 3, 4), x(6, 3, 4))]
[torch.manual_seed(0), torch.nn.Transformer(4, 2, 1, 1, 6, batch_first=True).double()(x(3, 6, 4), x(3, 5, 4))]
torch.nn.TransformerEncoderLayer(4, 2, 6, activation="tanh")
torch.nn.Transformer(4, 2, 1, 1, 6).double()(x.plain(5, 2, 4), x.plain(5, 3, 4))
torch.nn.Transformer(4, 2, 1, 1, 6).double()(x.plain(5, 3, 5), x.plain(5, 3, 4))
"""

MARGINS = """
F.cosine_embedding_loss(x(3, 4), x(3, 4), torch.tensor([1, -1, 1]), margin=-0.5)
F.cosine_embedding_loss(x.plain(3, 4), x.plain(3, 4), x.plain(3, 1))
F.cosine_embedding_loss(x.plain(4), x.plain(4), x.plain(2))
F.hinge_embedding_loss(x(3), torch.tensor([1, -1, 1]), reduction="sum")
F.margin_ranking_loss(x(3), x(3), torch.tensor([1, -1, 1]), margin=0.1, reduction="none")
F.margin_ranking_loss(x.plain(3), x.plain(3, 1), x.plain(3))
F.triplet_margin_loss(x(3, 4), x(3, 4), x(3, 4), swap=True, p=1)
F.triplet_margin_loss(x.plain(3, 4), x.plain(4), x.plain(3, 4))
F.triplet_margin_loss(x.plain(3, 4), x.plain(3, 4), x.plain(3, 4), margin=-1)
F.triplet_margin_with_distance_loss(x(3, 4), x(3, 4), x(3, 4), distance_function=lambda a, b: (a - b).abs().sum(-1))
F.multilabel_soft_margin_loss(x(3, 4), x.ints(3, 4) % 2, x.plain(4))
F.multilabel_margin_loss(x(3, 4), torch.tensor([[1, 0, -1, 0], [-1, 2, 2, 2], [0, 1, 2, 3]]), reduction="none")
F.multilabel_margin_loss(x.plain(3, 4), torch.full((3, 4), 7))
F.multi_margin_loss(x(3, 4), torch.tensor([1, 0, 3]), p=2, weight=x.plain(4))
F.multi_margin_loss(x.plain(3, 4), torch.tensor([1, 0, 4]))
F.multi_margin_loss(x.plain(3, 4), torch.tensor([1, 0]))
F.soft_margin_loss(x(3, 4), x.plain(3, 4).sign())
F.poisson_nll_loss(x(3, 4), x.plain(3, 4).abs() * 3, full=True)
F.poisson_nll_loss(x(3, 4).abs(), x.ints(3, 4), log_input=False, reduction="none")
F.gaussian_nll_loss(x(3, 4), x(3, 4), x(3).abs(), full=True)
F.gaussian_nll_loss(x.plain(3, 4), x.plain(3, 4), -1.0)
F.gaussian_nll_loss(x.plain(3, 4), x.plain(3, 4), x.plain(5).abs())
F.ctc_loss(x(6, 2, 5).log_softmax(-1), torch.tensor([[1, 2, 3], [1, 2, 2]]), (6, 5), (3, 2), reduction="sum")
F.ctc_loss(x(6, 2, 5), torch.tensor([[1, 2, 3], [1, 2, 2]]), (6, 3), (3, 3), zero_infinity=True)
F.ctc_loss(x(6, 2, 5), torch.tensor([1, 2, 3, 1, 2]), torch.tensor([6, 6]), torch.tensor([3, 2]))
F.ctc_loss(x(6, 5), torch.tensor([1, 2]), torch.tensor(6), torch.tensor(2), blank=4)
F.ctc_loss(x.plain(6, 2, 5), torch.tensor([[1, 2, 3], [1, 2, 2]]), (6, 7), (3, 2))
F.ctc_loss(x.plain(6, 2, 5), torch.tensor([1, 2, 3, 1]), (6, 6), (3, 2))
F.embedding_bag(torch.tensor([[0, 1], [1, 3]]), x(4, 3))
F.embedding_bag(torch.tensor([0, 1, 1, 3]), x(4, 3), torch.tensor([0, 0, 3]), mode="max")
F.embedding_bag(torch.tensor([0, 1, 1, 3]), x(4, 3), torch.tensor([0, 1]), mode="sum", per_sample_weights=x(4))
F.embedding_bag(torch.tensor([0, 1, 1, 3]), x(4, 3), torch.tensor([0, 1, 4]), include_last_offset=True, padding_idx=1)
F.embedding_bag(torch.tensor([0, 1]), x.plain(4, 3))
F.embedding_bag(torch.tensor([0, 1]), x.plain(4, 3), torch.tensor([0]), mode="x")
[torch.manual_seed(0), F.rrelu(x(3, 4), training=True)]
[torch.manual_seed(0), F.gumbel_softmax(x(3, 4), tau=0.5), F.gumbel_softmax(x(3, 4), hard=True)]
[torch.manual_seed(0), torch.nn.AdaptiveLogSoftmaxWithLoss(8, 9, [5], 2.0).double()(x(3, 8), torch.tensor([1, 7, 8]))]
torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 5])
"""

FAMILIES = dict(einsum=EINSUM, norms_of_vectors=NORMS, attention=ATTENTION, margins=MARGINS)

warnings.simplefilter("ignore")
for family, text in FAMILIES.items():
    found = {source: observe(torch, source) for source in text.strip().splitlines()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    (GOLDEN / f"{family}.json").write_text("{\n" + lines + "\n}\n")
    print(family, len(found), sum("error" in v for v in found.values()))
