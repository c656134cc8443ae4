"""``torch.utils.collect_env``: information about the environment for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

#: The listed packages.
_PACKAGES = ("funcgrad", "jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "torchvision", "transformers", "lightning")


class SystemEnv(NamedTuple):
    """The environment."""

    torch_version: str
    python_version: str
    python_platform: str
    os: str
    cpu_count: int | None
    is_cuda_available: str
    pip_packages: str


def _installed() -> str:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def get_env_info() -> SystemEnv:
    """The environment."""
    return SystemEnv(
        torch_version=f"{sys.modules['compat'].__version__} (compat)",
        python_version=sys.version.replace("\n", " "),
        python_platform=platform.platform(),
        os=f"{platform.system()} {platform.release()}",
        cpu_count=os.cpu_count(),
        is_cuda_available="False",
        pip_packages=_installed(),
    )


def get_pretty_env_info() -> str:
    """The environment as text.

    Example:
        >>> print(torch.utils.collect_env.get_pretty_env_info())
        PyTorch version: 2.13.0 (compat)
        ...
    """
    info = get_env_info()
    packages = "\n".join(f"[pip3] {line}" for line in info.pip_packages.splitlines())
    return (
        f"PyTorch version: {info.torch_version}\n\nOS: {info.os}\nPython version: {info.python_version}\n"
        f"Python platform: {info.python_platform}\nCPUs: {info.cpu_count}\n"
        f"Is CUDA available: {info.is_cuda_available}\n\nVersions of relevant libraries:\n{packages}"
    )


def main() -> None:
    """Prints the environment."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
