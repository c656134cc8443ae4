"""``torch.special``: special functions, each under its own name and those it shares with ``torch``.

The operations themselves are declared in ``compat._operators`` and found here under their public names.
"""

from compat._core.tensor.registry import lookups as _lookups

__getattr__, __dir__ = _lookups("special", globals())
