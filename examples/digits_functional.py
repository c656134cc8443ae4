"""Handwritten digits through the functional API: the network and data of ``digits.py``, the parameters as a pytree.

    python examples/digits_functional.py

The loss is a pure function of the parameters; ``value_and_grad`` differentiates it and ``jit`` compiles the whole step,
update included. Same seed, same initial weights, same batches: the same losses as ``python -m compat digits.py``.
"""

import argparse
import json

import numpy as np
import report
from tqdm import tqdm

import compat
import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import nn

compat.install()  # digits.py imports torch: its data, shuffling and initial weights are the starting point
import digits  # noqa: E402
import torch  # noqa: E402


def network(params, x):
    """Logits of shape (batch, 10) for images of shape (batch, 1, 8, 8)."""
    for layer in ("features.0", "features.3"):
        x = nn.relu(nn.conv(x, params[f"{layer}.weight"], params[f"{layer}.bias"], padding=1))
        x = nn.max_pool(x, 2)
    x = x.reshape(x.shape[0], -1)
    x = nn.relu(x @ params["classifier.0.weight"].T + params["classifier.0.bias"])
    return x @ params["classifier.2.weight"].T + params["classifier.2.bias"]


def loss(params, x, y):
    """The mean cross entropy of a batch."""
    return nn.cross_entropy(network(params, x), y)


def adam(params, gradients, state, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    """One step of Adam (Kingma and Ba, 2015, algorithm 1); returns the new parameters and state."""
    step = state["step"] + 1  # float64: in float32, 1 - beta2**step keeps only four digits at first
    size, root = lr / (1 - beta1**step), fnp.sqrt(1 - beta2**step)
    size, root = size.astype("float32"), root.astype("float32")
    mean = fg.trees.map(lambda m, g: beta1 * m + (1 - beta1) * g, state["mean"], gradients)
    square = fg.trees.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, state["square"], gradients)

    def update(p, m, v):
        return p - size * m / (fnp.sqrt(v) / root + eps)

    return fg.trees.map(update, params, mean, square), {"step": step, "mean": mean, "square": square}


@fg.jit
def train_step(params, state, x, y, lr):
    """The loss of a batch, and the parameters and optimizer state after learning from it."""
    value, gradients = fg.value_and_grad(loss)(params, x, y)
    return value, *adam(params, gradients, state, lr)


@fg.jit
def predict(params, x):
    """The most likely digit of each image."""
    return fnp.argmax(network(params, x), axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every step's loss to this file")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    (images, labels), (test_images, test_labels) = digits.load()
    params = {name: np.array(p.detach().numpy()) for name, p in digits.Digits().named_parameters()}
    data = torch.utils.data.TensorDataset(images, labels)
    loader = torch.utils.data.DataLoader(data, batch_size=args.batch, shuffle=True)
    test_images, test_labels = test_images.numpy(), test_labels.numpy()
    zeros = fg.trees.map(np.zeros_like, params)
    state = {"step": np.float64(0), "mean": zeros, "square": zeros}

    losses, accuracies = [], []
    with tqdm(total=args.epochs * len(loader), desc="training", unit="step") as bar:
        for _ in range(args.epochs):
            for x, y in loader:
                value, params, state = train_step(params, state, x.numpy(), y.numpy(), args.lr)
                losses.append(float(value))
                bar.update()
            accuracies.append(float(np.mean(predict(params, test_images) == test_labels)))
            bar.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.2%}")

    predicted = np.asarray(predict(params, test_images))
    report.print_curve(losses)
    print("The training step, as a program:")
    print(train_step.trace(params, state, x.numpy(), y.numpy(), args.lr))
    report.draw_training("digits_functional.png", losses, accuracies, test_images, test_labels, predicted)
    if args.losses:
        with open(args.losses, "w") as file:
            json.dump(losses, file)
    print(f"test accuracy {accuracies[-1]:.2%}, loss {losses[0]:.6f} -> {losses[-1]:.6f} in {len(losses)} steps")


if __name__ == "__main__":
    main()
