# packages: monai
"""Tensors with metadata, transforms with inverses, losses and a training step of MONAI."""

import torch
from harness import report, train
from monai.data import DataLoader, MetaTensor, decollate_batch
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, Flip, NormalizeIntensity, RandSpatialCrop, Resize, Rotate, Spacing

torch.manual_seed(0)
image = MetaTensor(torch.rand(1, 8, 8), affine=torch.diag(torch.tensor([2.0, 2.0, 1.0, 1.0])), meta={"name": "image"})
for name, made in {
    "sum": image + 1, "part": image[:, 1:], "joined": torch.cat([image, image]), "halves": image.to(torch.float16),
    "batch": next(iter(DataLoader([image, image], batch_size=2))),
}.items():  # fmt: skip
    assert type(made) is MetaTensor
    report(name, made.as_tensor().float())
    report(f"{name}, affine", made.affine)
for part in decollate_batch(next(iter(DataLoader([{"image": image}], batch_size=1)))):
    report("decollated", part["image"].as_tensor())
    report("decollated, affine", part["image"].affine)
for transform in (
    Flip(0),
    Rotate(0.3),
    Resize((6, 6)),
    NormalizeIntensity(),
    RandSpatialCrop((4, 4), random_size=False),
):
    if hasattr(transform, "set_random_state"):
        transform.set_random_state(0)
    report(type(transform).__name__, transform(image).as_tensor())
both = Compose([Spacing((1.0, 1.0)), Flip(0)])
report("spacing", both(image).as_tensor())
report("inverse", both.inverse(both(image)).as_tensor())

torch.manual_seed(0)
net = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,))
x, y = torch.rand(2, 1, 16, 16), torch.randint(2, (2, 1, 16, 16))
dice = DiceCELoss(to_onehot_y=True, softmax=True)
report("training", train(net, lambda: dice(net(x), y)))
found, wanted = (torch.nn.functional.one_hot(t, 2).movedim(-1, 1) for t in (net(x).argmax(1), y[:, 0]))
report("dice", DiceMetric()(found, wanted))
