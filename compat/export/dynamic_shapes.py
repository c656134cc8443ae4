"""``torch.export.dynamic_shapes``: dynamic sizes, given for tensors or found by comparing examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_map
from compat._core.tensor.tensor import Tensor
from compat.export._sizes import Dim, bound, dims

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


def _arguments(m: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name, of a module, a function or a program."""
    function: Callable[..., Any] = m.module().forward if hasattr(m, "graph_module") else getattr(m, "forward", m)
    return bound(function, args, kwargs or {})


class ShapesCollection:
    """Dynamic sizes by tensor, for ``export(dynamic_shapes=...)`` of nested arguments.

    Example:
        >>> x, y = torch.ones(2, 3), torch.ones(2)
        >>> shapes = torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim("batch")}
        >>> shapes.dynamic_shapes(lambda both: both[0], ([x, y],))
        {'both': [{0: Dim('batch', min=0)}, None]}
    """

    __module__ = "torch.export"

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._tensors: list[Tensor] = []

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.setdefault(id(t), shape)
        if known != shape:
            raise AssertionError(f"Shapes assigned to input do not match: expected {known}, got {shape}")
        self._tensors.append(t)

    def __getitem__(self, t: Tensor) -> Any:
        self._tensors.append(t)
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> dict[str, Any]:
        """The sizes, in the structure of the arguments.

        Raises:
            ValueError: if a tensor is not among these.
        """
        found: set[int] = set()

        def of(leaf: Any) -> Any:
            found.update({id(leaf)} & self._shapes.keys())
            return self._shapes.get(id(leaf))

        made = tree_map(of, _arguments(m, args, kwargs))
        if found != self._shapes.keys():
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when "
                "passing them as args? Maybe such tensors are contained in classes that were not registered with "
                "pytree?"
            )
        return made


class AdditionalInputs:
    """Dynamic sizes found by comparing the exported example with others: sizes that differ are dynamic.

    Example:
        >>> others = torch.export.AdditionalInputs()
        >>> others.add((torch.ones(5, 2),))
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),), dynamic_shapes=others)
        >>> program.module()(torch.ones(4, 2)).shape
        torch.Size([4, 1])
    """

    __module__ = "torch.export"

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Adds an example of the arguments."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """The sizes, in the structure of the arguments.

        Raises:
            ValueError: if arguments differ in more than sizes of tensors.
        """
        return tree_map(_differing, *[_arguments(m, *example) for example in [(args, kwargs or {}), *self._examples]])

    def verify(self, ep: Any) -> None:
        """Checks that a program takes each example.

        Raises:
            AssertionError: if it does not.
        """
        module = ep.module()
        for args, kwargs in self._examples:
            module.check_arguments(*args, **kwargs)


def _differing(first: Any, *others: Any) -> Any:
    """The dynamic sizes of one argument, by its value in each example."""
    every = (first, *others)
    if len({type(v) for v in every}) > 1 or (isinstance(first, Tensor) and len({v.dim() for v in every}) > 1):
        raise ValueError(
            f"The following inputs were found to have differing types, so they cannot be marked as dynamic: {every}."
        )
    if isinstance(first, Tensor):
        return tuple(None if len(set(sizes)) == 1 else Dim.DYNAMIC for sizes in zip(*[v.shape for v in every]))
    if any(v != first for v in others):
        raise ValueError(
            f"The following inputs were found to have differing values, but they cannot be marked as dynamic: {every}."
        )
    return None
