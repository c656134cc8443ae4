# packages: pytorch-metric-learning
"""Losses of embeddings, with their gradients, and miners."""

import torch
from harness import report
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers

torch.manual_seed(0)
embeddings, labels = torch.randn(16, 8), torch.randint(0, 4, (16,))
PLAIN = (
    "AngularLoss", "CircleLoss", "ContrastiveLoss", "FastAPLoss", "GeneralizedLiftedStructureLoss",
    "IntraPairVarianceLoss", "LiftedStructureLoss", "MarginLoss", "MultiSimilarityLoss", "NCALoss", "NPairsLoss",
    "NTXentLoss", "SignalToNoiseRatioContrastiveLoss", "SupConLoss", "TripletMarginLoss", "TupletMarginLoss",
)  # fmt: skip
OF_CLASSES = (
    "ArcFaceLoss", "CosFaceLoss", "LargeMarginSoftmaxLoss", "NormalizedSoftmaxLoss", "ProxyAnchorLoss", "ProxyNCALoss",
    "SoftTripleLoss", "SphereFaceLoss", "SubCenterArcFaceLoss",
)  # fmt: skip
for name in PLAIN + OF_CLASSES:
    options = {"num_classes": 4, "embedding_size": 8} if name in OF_CLASSES else {}
    x = embeddings.clone().requires_grad_()
    loss = getattr(losses, name)(**options)(x, labels)
    loss.backward()
    report(name, [loss, x.grad])
triplets = losses.TripletMarginLoss(
    distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(high=0.3),
    embedding_regularizer=regularizers.LpRegularizer(),
)  # fmt: skip
for miner in (
    miners.MultiSimilarityMiner(), miners.TripletMarginMiner(type_of_triplets="semihard"), miners.BatchHardMiner(),
    miners.BatchEasyHardMiner(), miners.PairMarginMiner(), miners.DistanceWeightedMiner(),
):  # fmt: skip
    found = miner(embeddings, labels)
    report(type(miner).__name__, [*found, triplets(embeddings, labels, found)])
