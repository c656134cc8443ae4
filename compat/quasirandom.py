"""``torch.quasirandom``: low-discrepancy points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import qmc  # type: ignore[import-untyped]

from compat._core.tensor.namespace import torch
from compat._core.types.errors import wrong_argument

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol' sequence in the unit cube, optionally scrambled.

    The direction numbers are those of Joe and Kuo (2008), the order that of Antonov and Saleev, the scrambling
    Matousek's (1998): a random lower triangular matrix times each direction number, and a random shift.

    Args:
        dimension: the dimension of the cube, up to ``MAXDIM``.
        scramble: whether the points are scrambled.
        seed: the seed of the scrambling; by default from the default generator.

    Attributes:
        num_generated: the number of points drawn or skipped.
        sobolstate: the direction numbers, int64 of shape ``(dimension, MAXBIT)``.
        shift, quasi: the first and the present point, int64 of shape ``(dimension,)``: coordinates times ``2**MAXBIT``.

    Raises:
        ValueError: for an unsupported dimension.

    Example:
        >>> SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        directions = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64)
        self.sobolstate = torch.from_numpy(directions)
        self.shift = torch.zeros(dimension, dtype=torch.int64)
        if scramble:
            self._scramble(directions)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self, directions: np.ndarray) -> None:
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        size = (self.dimension, self.MAXBIT)
        bits = torch.randint(2, size, generator=generator)
        self.shift = torch.mv(bits, torch.pow(2, torch.arange(self.MAXBIT)))
        rows = torch.randint(2, (*size, self.MAXBIT), generator=generator).tril().numpy()
        rows[:, range(self.MAXBIT), range(self.MAXBIT)] = 1
        places = np.arange(self.MAXBIT)[::-1]
        columns = directions[:, :, None] >> places & 1
        scrambled = (columns @ rows.transpose(0, 2, 1) & 1) << places
        self.sobolstate = torch.from_numpy(scrambled.sum(-1))

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next points.

        Args:
            n: the number of points.
            out: the output tensor.
            dtype: float32 or float64; by default the default dtype.

        Returns:
            A tensor of shape ``(n, dimension)``.

        Example:
            >>> engine = SobolEngine(1)
            >>> engine.draw(2), engine.draw(1)
            (tensor([[0.0000],
                    [0.5000]]), tensor([[0.7500]]))
        """
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if self.num_generated:
            result = self._next(n, dtype)
        elif n == 1:
            result = self._first_point.to(dtype)
        else:
            rest = self._next(n - 1, dtype)
            result = torch.cat((self._first_point.to(dtype), rest), dim=-2)
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def _next(self, n: int, dtype: Any) -> Any:
        """The points that follow the present one, which is advanced to the last of them."""
        if not isinstance(dtype, torch.dtype):
            raise wrong_argument("_sobol_engine_draw", "dtype", None, "torch.dtype", dtype)
        if dtype not in (torch.float32, torch.float64):
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{dtype.scalar_name}'")
        points = self._following("_sobol_engine_draw", n)
        self.quasi = torch.from_numpy(points[-1].copy())
        return torch.from_numpy(points[1:].astype(dtype.numpy) * dtype.numpy.type(2**-self.MAXBIT))

    def _following(self, function: str, n: int) -> np.ndarray:
        """The present point and the ``n`` following ones, in units of ``2**-MAXBIT``."""
        if not isinstance(n, int):
            raise wrong_argument(function, "n", 2, "int", n)
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]")
        first = max(self.num_generated - 1, 0)
        count = np.arange(first, first + n)
        lowest = np.bitwise_count((count ^ count + 1) >> 1)  # the position of the lowest zero bit of each count
        steps = self.sobolstate.numpy().T[lowest]
        return np.bitwise_xor.accumulate(np.concatenate((self.quasi.numpy()[None], steps)))

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next ``2**m`` points, which are balanced if as many have been drawn before, or none.

        Raises:
            ValueError: if the total number of points would not be a power of two.

        Example:
            >>> SobolEngine(1).draw_base2(2).flatten()
            tensor([0.0000, 0.5000, 0.7500, 0.2500])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Returns to the first point.

        Returns:
            The engine.
        """
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips ``n`` points.

        Returns:
            The engine.
        """
        if n or self.num_generated:
            points = self._following("_sobol_engine_ff_", n if self.num_generated else n - 1)
            self.quasi.copy_(torch.from_numpy(points[-1].copy()))
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        scrambled = f", scramble={self.scramble}" if self.scramble else ""
        seed = f", seed={self.seed}" if self.seed is not None else ""
        return f"SobolEngine(dimension={self.dimension}{scrambled}{seed})"
