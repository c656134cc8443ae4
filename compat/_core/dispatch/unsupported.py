"""What is said of operations that a kind of tensor does not have."""

from __future__ import annotations

_MISSING = (
    "Could not run '{0}' with arguments from the '{1}' backend. This could be because the operator doesn't exist for "
    "this backend, or was omitted during the selective/custom build process (if using custom build). If you are a "
    "Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for possible resolutions."
)


def refusal(name: str, backend: str = "SparseCPU") -> NotImplementedError:
    """What is said of an operation that sparse tensors do not have, or dense ones.

    Args:
        name: ``aten::exp``.
        backend: ``CPU`` for dense ones.
    """
    return NotImplementedError(_MISSING.format(name, backend))
