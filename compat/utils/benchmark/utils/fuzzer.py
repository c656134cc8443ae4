"""Random parameters and tensors of random sizes and strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from compat import random
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import float32

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_ATTEMPTS = 1000


class FuzzedParameter:
    """A random parameter.

    Args:
        name: its name.
        minval, maxval: the bounds, which belong to the range; of integers for a random integer.
        distribution: ``"uniform"``, ``"loguniform"`` (an integer), or a dictionary from values to probabilities,
            without bounds.
        strict: whether it is kept when other parameters are sampled again.

    Raises:
        AssertionError: for another distribution, or bounds besides a dictionary.
    """

    def __init__(
        self,
        name: str,
        minval: int | float | None = None,
        maxval: int | float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ):
        self._name, self.strict = name, strict
        self._minval, self._maxval = minval, maxval
        self._distribution = self._check_distribution(distribution)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _check_distribution(self, distribution: Any) -> Any:
        if not isinstance(distribution, dict):
            if distribution not in ("loguniform", "uniform"):
                raise AssertionError(f"Unknown distribution: {distribution}")
            return distribution
        if any(p < 0 for p in distribution.values()):
            raise AssertionError("Probabilities cannot be negative")
        # PyTorch 2.13 tests the opposite, and so accepts no distribution that NumPy could sample.
        if abs(sum(distribution.values()) - 1) > 1e-5:
            raise AssertionError("Distribution is not normalized")
        for bound in ("minval", "maxval"):
            if getattr(self, f"_{bound}") is not None:
                raise AssertionError(f"When passing a custom distribution, '{bound}' must be None")
        return distribution

    def sample(self, state: np.random.RandomState) -> Any:
        """A random value."""
        low: Any = self._minval
        high: Any = self._maxval
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(np.arange(len(values)), p=tuple(self._distribution.values()))]
        if self._distribution == "loguniform":
            value = int(2 ** state.uniform(low=np.log2(low), high=np.log2(high)))
            return low if value < low else high if value > high else value
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """A value of a parameter's distribution that stands for the value of another parameter.

    Args:
        alias_to: the other parameter's name.
    """

    def __init__(self, alias_to: str):
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A random tensor, whose size and steps are numbers or names of parameters.

    Args:
        name: its name.
        size: the size.
        steps: the step of each dimension: the tensor is a slice with these steps of a larger one.
        probability_contiguous: the probability that its dimensions are not permuted in memory.
        min_elements, max_elements, max_allocation_bytes: bounds of its number of elements, and of the larger tensor's
            bytes; other parameters are sampled again.
        dim_parameter: the name of the parameter that is its number of dimensions.
        roll_parameter: ignored, as in PyTorch.
        dtype: the dtype.
        cuda: whether it is on a GPU.
        tensor_constructor: called with ``size``, ``dtype`` and all parameters for the larger tensor.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Dtype = float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ):
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype, self._cuda = dtype, cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Dtype, **kwargs: Any) -> Tensor:
        """Uniform random numbers in [0, 1), or integers from 1 to 126."""
        import compat as torch

        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(size=size, dtype=dtype, device="cpu")
        return torch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        """A tensor, and a description of it."""
        size, steps, allocated = self._get_size_and_steps(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        whole = make(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            whole = whole.cuda()
        order = identity = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.array_equal(order, identity):
                order = state.permutation(whole.dim())
            # In memory in this order; its dimensions stay where they are.
            whole = whole.permute(tuple(order.tolist())).contiguous().permute(tuple(np.argsort(order).tolist()))
        made = whole[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        return made, {
            "numel": made.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": made.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The size, the steps and the size of the larger tensor, of the number of dimensions."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def numbers(values: Iterable[str | int]) -> tuple[int, ...]:
            found: Any = tuple(params.get(value, value) for value in values)  # type: ignore[arg-type]
            return (*found[:dim], *[1] * (dim - len(found)))

        size, steps = numbers(self._size), numbers(self._steps or ())
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the numbers of elements and of bytes are within the bounds."""
        size, _, allocated = self._get_size_and_steps(params)
        numel, size_in_bytes = math.prod(map(int, size)), math.prod(map(int, allocated)) * self._dtype.itemsize
        if numel < 0:
            raise AssertionError("Computed number of elements is negative")
        return (
            (self._min_elements is None or numel >= self._min_elements)
            and (self._max_elements is None or numel <= self._max_elements)
            and (self._max_allocation_bytes is None or size_in_bytes <= self._max_allocation_bytes)
        )


class Fuzzer:
    """Random inputs for a benchmark: parameters, and tensors whose sizes they are.

    Args:
        parameters: ``FuzzedParameter``s, and lists of them.
        tensors: ``FuzzedTensor``s, and lists of them.
        constraints: functions of the parameters by name; where one is false, they are sampled again.
        seed: the seed of parameters and tensors.

    Raises:
        ValueError: if a parameter and a tensor have one name.

    Example:
        >>> from compat.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
        >>> rows = FuzzedParameter("rows", minval=2, maxval=8, distribution="uniform")
        >>> fuzzer = Fuzzer([rows], [FuzzedTensor("x", size=("rows", 3))], seed=0)
        >>> [tensors["x"].shape[0] == params["rows"] for tensors, _, params in fuzzer.take(3)]
        [True, True, True]
    """

    def __init__(
        self,
        parameters: Sequence[FuzzedParameter | list[FuzzedParameter]],
        tensors: Sequence[FuzzedTensor | list[FuzzedTensor]],
        constraints: Sequence[Callable[..., Any]] | None = None,
        seed: int | None = None,
    ):
        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters: tuple[FuzzedParameter, ...] = _flat(parameters, FuzzedParameter)
        self._tensors: tuple[FuzzedTensor, ...] = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        self._rejections = self._total_generated = 0
        overlap = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if overlap:
            raise ValueError(f"Duplicate names in parameters and tensors: {overlap}")

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict[str, Any]], dict[str, Any]]]:
        """Generates ``n`` inputs: the tensors, the descriptions of the tensors and the parameters, by name.

        Raises:
            ValueError: if no parameters satisfy the constraints, in a thousand attempts.
        """
        state = np.random.RandomState(self._seed)
        random.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: tensor for k, (tensor, _) in made.items()}, {k: about for k, (_, about) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The share of sampled parameters that violated a constraint."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        """Parameters that satisfy the constraints."""
        kept: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            sampled = {p.name: kept[p.name] if p.name in kept else p.sample(state) for p in self._parameters}
            kept |= {p.name: sampled[p.name] for p in self._parameters if p.strict}
            params = _without_aliases(sampled)
            self._total_generated += 1
            allowed = all(f(params) for f in self._constraints)
            if allowed and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(values: Iterable[Any], kind: type) -> tuple[Any, ...]:
    """The values, and those of lists among them."""
    return tuple(each for value in values for each in ([value] if isinstance(value, kind) else value))


def _without_aliases(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters with the values that aliases stand for."""
    found = dict(params)
    for name, value in params.items():
        seen = {name}
        while isinstance(value, ParameterAlias):
            if value.alias_to in seen:
                raise ValueError(f"ParameterAlias cycle detected\n{params}")
            seen.add(value.alias_to)
            value = params[value.alias_to]
        found[name] = value
    return found
