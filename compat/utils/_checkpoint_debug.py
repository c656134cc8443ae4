"""The operations of a checkpointed function in both runs, for ``checkpoint(..., debug=True)``."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.pytree.trees import tree_leaves, tree_map
from compat._core.tensor.tensor import Tensor
from compat.utils._python_dispatch import TorchDispatchMode

_SHORT = {
    "float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf",
}  # fmt: skip
_REPORT = """\
 An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for how these logs are to be read.

{traces}
Operations executed during the original forward:

{forward}

Operations executed during recomputation:

{recompute}

 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation: other operations ran the second time. They are listed
 above, first with where in the program each was called, then in short.
"""


class Log(TorchDispatchMode):
    """Logs the operations and where in the program they were called."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.traces: list[str] = []
        # References to the tensors keep their ids unique.
        self._numbers: dict[int, tuple[int, Tensor]] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        shown = [*map(self._shown, args), *[f"{k}={self._shown(v)}" for k, v in kwargs.items()]]
        result = func(*args, **kwargs)
        outs = ", ".join(f"{self._name(t)}: {_kind(t)}" for t in tree_leaves(result) if isinstance(t, Tensor))
        self.lines.append(f"{outs} = torch._ops.{func}({', '.join(shown)})")
        self.traces.append("".join(traceback.format_stack()[:-1]))
        return result

    def _name(self, t: Tensor) -> str:
        return f"${self._numbers.setdefault(id(t._storage_), (len(self._numbers), t))[0]}"

    def _shown(self, value: Any) -> str:
        named = tree_map(lambda v: _Name(self._name(v)) if isinstance(v, Tensor) else v, value)
        return repr(named)

    def traced(self, which: str) -> str:
        """Each operation with its call site."""
        count = len(self.lines)
        each = zip(self.lines, self.traces)
        return "\n".join(f"{line}   ({i} of {count} in {which})\n\n{trace}" for i, (line, trace) in enumerate(each, 1))


class _Name(str):
    """A tensor's name, shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _kind(t: Tensor) -> str:
    name = str(t.dtype).removeprefix("torch.")
    stem = name.rstrip("0123456789")
    return f"{_SHORT.get(stem, stem)}{name[len(stem) :]}[{', '.join(map(str, t.shape))}]"


def report(forward: Log, recompute: Log) -> str:
    """The operations of both computations."""
    traces = (
        f"1. Stack traces of the operators that ran in the original forward\n\n{forward.traced('original')}\n"
        f"2. Stack traces of the operators that ran during recomputation\n\n{recompute.traced('recompute')}\n"
        "3. Log of operators in the original forward and recomputation\n"
    )
    return _REPORT.format(traces=traces, forward="\n".join(forward.lines), recompute="\n".join(recompute.lines))
