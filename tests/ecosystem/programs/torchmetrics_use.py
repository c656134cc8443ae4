# packages: torchmetrics
"""Metrics of torchmetrics over batches."""

import torch
import torchmetrics as tm
from harness import report

torch.manual_seed(0)
scores, labels = torch.randn(3, 10, 4).softmax(-1), torch.randint(4, (3, 10))
METRICS = {
    "accuracy": tm.Accuracy("multiclass", num_classes=4),
    "f1": tm.F1Score("multiclass", num_classes=4, average="macro"),
    "auroc": tm.AUROC("multiclass", num_classes=4), "confusion": tm.ConfusionMatrix("multiclass", num_classes=4),
    "calibration": tm.CalibrationError("multiclass", num_classes=4),
    "cohen": tm.CohenKappa("multiclass", num_classes=4),
}  # fmt: skip
for name, metric in METRICS.items():
    for p, y in zip(scores, labels):
        metric.update(p, y)
    report(name, metric.compute())
x, y = torch.randn(20), torch.randn(20)
for kind in (tm.MeanSquaredError, tm.PearsonCorrCoef, tm.SpearmanCorrCoef, tm.R2Score, tm.ExplainedVariance):
    metric = kind()
    metric.update(x, y)
    report(kind.__name__, metric.compute())
