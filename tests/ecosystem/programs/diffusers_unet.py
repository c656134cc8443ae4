# packages: diffusers
"""A tiny UNet of diffusers, and steps of its schedulers."""

import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel
from harness import report, train

torch.manual_seed(0)
net = UNet2DModel(
    sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)  # fmt: skip
x, noise = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
scheduler = DDPMScheduler(num_train_timesteps=20)
noisy = scheduler.add_noise(x, noise, torch.tensor([3, 11]))
report("training", train(net, lambda: (net(noisy, torch.tensor([3, 11])).sample - noise).square().mean()))
for kind in (DDPMScheduler, DDIMScheduler):
    steps = kind(num_train_timesteps=20)
    steps.set_timesteps(4)
    sample = x
    torch.manual_seed(1)
    with torch.no_grad():
        for step in steps.timesteps:
            sample = steps.step(net(sample, step).sample, step, sample).prev_sample
    report(kind.__name__, sample)
