"""Writes layout.json: the strides that real PyTorch gives to views, copies and results of elementwise operations.

pip install torch==2.13.0
python tests/compat/golden/make_layout.py
"""

import json
import random
from pathlib import Path

import torch

HERE = Path(__file__).parent


def strided(shape: list[int]) -> torch.Tensor:
    """A tensor of a shape with common strides: contiguous, permuted, sliced, expanded."""
    kind = random.random()
    order = list(range(len(shape)))
    random.shuffle(order)
    back = [order.index(i) for i in range(len(shape))]
    if kind < 0.3:
        return torch.zeros(shape)
    if kind < 0.6:
        return torch.zeros([shape[i] for i in order]).permute(back)
    if kind < 0.8:
        steps = [random.choice([slice(None, None, 2), slice(0, shape[i])]) for i in order]
        return torch.zeros([shape[i] * 2 for i in order])[tuple(steps)].permute(back)
    return torch.zeros([n if random.random() < 0.6 else 1 for n in shape]).expand(shape)


def factors(n: int) -> list[int]:
    """A random shape of ``n`` elements."""
    found = []
    for f in (2, 3, 2, 2):
        if n and n % f == 0:
            found.append(f)
            n //= f
    found.append(n)
    if random.random() < 0.5:
        found.insert(random.randrange(len(found)), 1)
    random.shuffle(found)
    while len(found) > 1 and random.random() < 0.5:
        last = found.pop()
        found[random.randrange(len(found))] *= last
    return found


def case() -> dict:
    ndim = random.choice([0, 1, 2, 3, 4, 4, 4, 5])
    shape = [random.choice([0, 1, 1, 2, 2, 3, 3, 4]) for _ in range(ndim)]
    operands = []
    for _ in range(random.choice([1, 1, 2, 2, 3])):
        size = [n if random.random() < 0.8 else 1 for n in shape]
        operands.append(strided(size[random.choice([0] * 4 + list(range(ndim + 1))) :]))
    result = [torch.exp, torch.add, torch.addcmul][len(operands) - 1](*operands)
    first = operands[0]
    new = factors(first.numel())
    try:
        view = list(first.view(new).stride())
    except RuntimeError:
        view = None
    return dict(
        operands=[[list(o.shape), list(o.stride())] for o in operands],
        size=list(result.shape),
        elementwise=list(result.stride()),
        clone=list(first.clone().stride()),
        contiguous=first.is_contiguous(),
        channels_last=first.is_contiguous(memory_format=torch.channels_last),
        new=new,
        view=view,
    )


def main() -> None:
    random.seed(0)
    (HERE / "layout.json").write_text(json.dumps([case() for _ in range(500)], separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
