"""The class of workloads, and of the results of their ``build``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: A function applied to a model before training: ``torch.compile`` for one contestant, the identity for the others.
Compile = Callable[[Any], Any]


def as_it_is(model: Any) -> Any:
    """The ``compile`` of contestants that do not compile."""
    return model


class Training:
    """A training program that is ready to run. A call takes the next batch and makes one step.

    Attributes:
        model: the module whose parameters are trained.
        step: one training step: takes the tensors of a batch, returns the loss (a tensor).
        batches: the batches of the steps, repeated: a list, or a ``DataLoader``.
        reads: whether the loop reads the loss at every step.
    """

    def __init__(
        self, model: Any, step: Callable[..., Any], batches: Iterable[Sequence[Any]], *, reads: bool = False
    ) -> None:
        self.model, self.step, self.batches, self.reads = model, step, batches, reads
        self._next = self._endless()

    def _endless(self) -> Iterator[Sequence[Any]]:
        while True:
            yield from self.batches

    def __call__(self) -> Any:
        loss = self.step(*next(self._next))
        if self.reads:
            loss.item()
        return loss

    def move(self, device: Any) -> None:
        """Moves the model and the data to a device; those of a ``DataLoader`` batch by batch, in the step."""
        self.model.to(device)
        if isinstance(self.batches, list):
            self.batches = [tuple(tensor.to(device) for tensor in batch) for batch in self.batches]
        else:
            step = self.step
            self.step = lambda *batch: step(*(tensor.to(device) for tensor in batch))


@dataclass(frozen=True)
class Start:
    """The initial state for a step that does not use PyTorch's API: the same parameters and the same data.

    Attributes:
        parameters: by their names in ``named_parameters``.
        batches: the arrays of each batch.
    """

    parameters: dict[str, np.ndarray]
    batches: list[tuple[np.ndarray, ...]]

    @classmethod
    def of(cls, training: Training) -> Start:
        """The initial state of a training program that has not made a step yet."""
        parameters = {name: p.detach().cpu().numpy().copy() for name, p in training.model.named_parameters()}
        return cls(parameters, [tuple(tensor.cpu().numpy() for tensor in batch) for batch in training.batches])

    def write(self, path: Path) -> None:
        arrays = {f"parameter/{name}": value for name, value in self.parameters.items()}
        for i, batch in enumerate(self.batches):
            arrays |= {f"batch/{i}/{j}": value for j, value in enumerate(batch)}
        np.savez(path, **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: Path) -> Start:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        parameters = {n.removeprefix("parameter/"): a for n, a in arrays.items() if n.startswith("parameter/")}
        batches: dict[int, list[np.ndarray]] = {}
        for name, array in arrays.items():
            if name.startswith("batch/"):
                batches.setdefault(int(name.split("/")[1]), []).append(array)
        return cls(parameters, [tuple(batches[i]) for i in sorted(batches)])


@dataclass(frozen=True)
class Workload:
    """One training program at several sizes.

    Attributes:
        name: its name on the command line and in tables.
        title: a description in a line.
        sizes: the sizes by name, from mostly overhead to mostly arithmetic; instances of a frozen dataclass.
        build: ``build(torch, size, compile)``: creates model, data and optimizer with the module ``torch``, after
            ``torch.manual_seed(0)``, and applies ``compile`` to the model.
        jax: ``jax(start, size)``: the same step by hand in JAX (a ``jax_side.JaxTraining``), if there is one.
        series: fields of the size to vary separately, beginning with the smallest size.
        tolerances: the tolerance of a contestant's losses, if it is not that of the suite.
        flops: the operations of a step, if XLA does not count them, as it counts the body of a loop once.
    """

    name: str
    title: str
    sizes: Mapping[str, Any]
    build: Callable[[Any, Any, Compile], Training]
    jax: Callable[[Start, Any], Any] | None = None
    series: Mapping[str, Sequence[int]] = field(default_factory=dict)
    tolerances: Mapping[str, float] = field(default_factory=dict)
    flops: Callable[[Any], float] | None = None

    def size(self, name: str) -> Any:
        """A size by its name, or by its differences from the first one: ``depth=8`` or ``depth=8+width=32``.

        Raises:
            KeyError: for an unknown name or field.
        """
        if name in self.sizes:
            return self.sizes[name]
        first = next(iter(self.sizes.values()))
        changes = dict(change.partition("=")[::2] for change in name.split("+"))
        if not all(hasattr(first, key) and value.isdigit() for key, value in changes.items()):
            raise KeyError(f"{self.name} has no size {name}; it has {', '.join(self.sizes)}")
        return dataclasses.replace(first, **{key: int(value) for key, value in changes.items()})

    def series_sizes(self) -> list[str]:
        """The names of the sizes in all series.

        Example:
            >>> from benchmarks.workloads import all_workloads
            >>> all_workloads()["chain"].series_sizes()
            ['length=10', 'length=50', 'length=200', 'length=800']
        """
        return [f"{key}={value}" for key, values in self.series.items() for value in values]


def drawn(count: int, make: Callable[[], Iterable[Any]]) -> list[tuple[Any, ...]]:
    """``count`` batches, each made by a call."""
    return [tuple(make()) for _ in range(count)]
