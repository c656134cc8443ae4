# packages: captum
"""Captum's attributions for a small network."""

import numpy as np
import torch
from captum import attr
from harness import report

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 5), torch.nn.ReLU(),
    torch.nn.Linear(5, 2),
).eval()  # fmt: skip
x = torch.randn(2, 1, 6, 6)
for kind in (
    attr.IntegratedGradients, attr.Saliency, attr.InputXGradient, attr.GuidedBackprop, attr.Deconvolution,
    attr.DeepLift, attr.Occlusion, attr.FeatureAblation, attr.GradientShap, attr.DeepLiftShap,
):  # fmt: skip
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (Captum draws from it)
    more = {"sliding_window_shapes": (1, 3, 3)} if kind is attr.Occlusion else {}
    if kind in (attr.GradientShap, attr.DeepLiftShap):
        more["baselines"] = torch.zeros(3, 1, 6, 6)
    report(kind.__name__, kind(net).attribute(x, target=1, **more))
for kind in (attr.LayerGradCam, attr.LayerActivation, attr.LayerConductance, attr.LayerIntegratedGradients):
    more = {} if kind is attr.LayerActivation else {"target": 1}
    report(kind.__name__, kind(net, net[0]).attribute(x, **more))
report("NeuronGradient", attr.NeuronGradient(net, net[3]).attribute(x, 2))
