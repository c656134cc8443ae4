# packages: torchvision pillow
"""torchvision's models and detection operators."""

import torch

from harness import report  # isort: skip (it declares what torchvision needs)
import torchvision
from torchvision import models, ops

NAMES = (
    "resnet18", "alexnet", "vgg11", "squeezenet1_1", "mobilenet_v2", "shufflenet_v2_x0_5", "mnasnet0_5",
    "regnet_y_400mf", "convnext_tiny", "densenet121",
)  # fmt: skip
for name in NAMES:
    torch.manual_seed(0)
    net = getattr(models, name)(weights=None, num_classes=6).eval()
    report(name, net(torch.randn(1, 3, 64, 64)))
torch.manual_seed(0)
boxes = torch.rand(20, 4) * 20
boxes[:, 2:] += boxes[:, :2]
report("nms", ops.nms(boxes, torch.rand(20), 0.3))
report("roi_align", ops.roi_align(torch.randn(1, 2, 50, 50), [boxes[:3]], 3))
detector = models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=64
).eval()
found = detector([torch.rand(3, 64, 64)])[0]
report("fasterrcnn", [found["boxes"].sum(), found["scores"].sum()])
detector.train().double()  # rounding in the first layers is amplified by the rest
boxes = boxes.double()
target = {"boxes": boxes[:2] + torch.tensor([0.0, 0.0, 5.0, 5.0]), "labels": torch.tensor([1, 2])}
torch.manual_seed(1)
losses = detector([torch.rand(3, 64, 64, dtype=torch.float64)], [target])
sum(losses.values()).backward()
report("fasterrcnn losses", list(losses.values()))
report("fasterrcnn gradients", [p.grad.norm() for p in detector.parameters() if p.grad is not None])
report("transform", torchvision.transforms.Normalize((0.5,), (0.2,))(torch.ones(1, 4, 4)))
