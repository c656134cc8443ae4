# packages: timm torchvision
"""Models of timm: their output for an image, and its gradient."""

import torch

from harness import report  # isort: skip (it declares what torchvision needs)
import timm

NAMES = (
    "resnet18", "resnet50", "mobilenetv3_small_100", "efficientnet_b0", "vit_tiny_patch16_224",
    "deit_tiny_patch16_224", "convnext_atto", "regnetx_002", "densenet121", "ghostnet_100", "mixnet_s",
    "tf_mobilenetv3_small_100", "repvgg_a0", "rexnet_100", "hardcorenas_a", "mnasnet_100", "semnasnet_100",
    "lcnet_050", "tinynet_e", "resnext50_32x4d",
)  # fmt: skip
for name in NAMES:
    torch.manual_seed(0)
    net = timm.create_model(name, pretrained=False, num_classes=7).eval()
    side = 224 if "224" in name else 64
    y = net(torch.randn(1, 3, side, side))
    y.square().sum().backward()
    first = next(net.parameters())
    report(name, [y, first.grad.norm()])
