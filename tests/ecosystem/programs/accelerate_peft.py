# packages: accelerate peft transformers
"""A training loop of Accelerate, and PEFT's adapters."""

import torch
from accelerate import Accelerator
from harness import report
from peft import LoraConfig, get_peft_model

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
accelerator = Accelerator(cpu=True)
net, optimizer, loader = accelerator.prepare(
    net, torch.optim.AdamW(net.parameters(), 1e-2), torch.utils.data.DataLoader(data, 4)
)
losses = []
for _ in range(2):
    for x, y in loader:
        loss = (net(x) - y).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
report("accelerate", losses)
adapted = get_peft_model(accelerator.unwrap_model(net), LoraConfig(r=2, target_modules=["0", "2"]))
x = torch.ones(2, 4)
adapted(x).sum().backward()
report("lora", [p.grad.norm() for n, p in adapted.named_parameters() if p.grad is not None])
report("merged", adapted.merge_and_unload()(x))
