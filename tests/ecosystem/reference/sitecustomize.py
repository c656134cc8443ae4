"""Real PyTorch with substitutes for torchvision's compiled operators, for programs that import torchvision."""

import harness  # noqa: F401 (declares the operators)
