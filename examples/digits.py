"""Handwritten digits, in plain PyTorch: the 1,797 images of 8 by 8 pixels that scikit-learn ships.

    python -m compat examples/digits.py      on XLA
    python examples/digits.py                in PyTorch, unchanged

Trains a small convolutional network, prints the loss and the accuracy, and writes ``out/digits.png`` and
``out/backward.svg``.
"""

import argparse
import json

import report
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


class Digits(nn.Module):
    """Two convolutions and two dense layers, about 20,000 parameters."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


def load():
    """Images scaled to 0..1 and labels: 1,437 to train on, 360 to test on."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    train, test = order[:1437], order[1437:]
    return (images[train], labels[train]), (images[test], labels[test])


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        predicted = model(images).argmax(dim=1)
    model.train()
    return (predicted == labels).float().mean().item(), predicted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every step's loss to this file")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    (images, labels), (test_images, test_labels) = load()
    model = Digits()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = DataLoader(TensorDataset(images, labels), batch_size=args.batch, shuffle=True)
    print(model)

    losses, accuracies = [], []
    with tqdm(total=args.epochs * len(loader), desc="training", unit="step") as bar:
        for _ in range(args.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                bar.update()
            accuracies.append(accuracy(model, test_images, test_labels)[0])
            bar.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.2%}")

    final, predicted = accuracy(model, test_images, test_labels)
    report.print_curve(losses)
    print("The backward graph of the loss:")
    graph = report.backward_graph(loss.grad_fn, model.named_parameters())
    report.print_tree(*graph)
    report.draw_training("digits.png", losses, accuracies, test_images.numpy(), test_labels.numpy(), predicted.numpy())
    report.draw_graph("backward.svg", *graph)
    if args.losses:
        with open(args.losses, "w") as file:
            json.dump(losses, file)
    print(f"test accuracy {final:.2%}, loss {losses[0]:.6f} -> {losses[-1]:.6f} in {len(losses)} steps")


if __name__ == "__main__":
    main()
