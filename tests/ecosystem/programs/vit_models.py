# packages: vit-pytorch einops
"""A vision transformer of vit-pytorch, trained for some steps."""

import torch
from harness import report, train
from vit_pytorch import SimpleViT, ViT

torch.manual_seed(0)
size = dict(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
images, labels = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
for name, net in (("ViT", ViT(**size)), ("SimpleViT", SimpleViT(**size))):
    report(name, train(net.eval(), lambda: torch.nn.functional.cross_entropy(net(images), labels)))
