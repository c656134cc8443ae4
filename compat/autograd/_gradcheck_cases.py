"""The cases of ``gradcheck``: a real function at given arguments, its derivatives and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.type_promotion import promote_types
from compat.autograd import forward_ad
from compat.autograd._backward import as_tuple, grad
from funcgrad import runtime


class GradcheckError(RuntimeError):
    """Raised by ``gradcheck`` and ``gradgradcheck`` for wrong derivatives."""


GradcheckError.__module__ = "torch.autograd.gradcheck"


def torch_function(name: str) -> Any:
    return names_of("torch")[name]


def differentiable(outputs: Any) -> list[Tensor]:
    return [o for o in as_tuple(outputs) if o.requires_grad]


def is_inexact_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.category >= dtype.FLOATING


@dataclass
class Check:
    """The settings of a check, as the arguments of ``gradcheck``."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    check_undefined_grad: bool
    fast: bool
    masked: bool


@dataclass
class Case:
    """A real-valued function to check at given arguments; in forward mode also of real arguments.

    Attributes:
        func: a function of the arguments that returns a tuple.
        inputs: the arguments.
        forward: whether forward mode is checked.
        part: the checked part of complex values, "real" or "imaginary"; "" if nothing is complex.
        complex_indices: the indices of complex outputs (in forward mode, inputs).
    """

    check: Check
    func: Callable[..., tuple]
    inputs: tuple
    forward: bool = False
    part: str = ""
    complex_indices: Sequence[int] = ()
    outputs: tuple = field(default=(), init=False)

    def __post_init__(self) -> None:
        self.outputs = self.func(*self.inputs)

    @property
    def input_indices(self) -> list[int]:
        """The indices of arguments to differentiate with respect to."""
        return [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]

    @property
    def results(self) -> list[int]:
        """The indices of differentiable results."""
        return [i for i, o in enumerate(self.outputs) if o.requires_grad]

    # ---------------------------------------------------------------- finite differences

    def difference(self, index: int, direction: Tensor, step: float) -> list[Tensor]:
        """The central difference of the results along a direction of one argument."""
        x = self.inputs[index].data  # without changing versions
        before = x.clone()
        found = []
        for sign in (-1, 1):
            x.copy_(before + direction * (sign * step))
            found.append([o.detach().clone() if isinstance(o, Tensor) else o for o in self.func(*self.inputs)])
        x.copy_(before)
        return [_quotient(a, b, step) for a, b in zip(*found) if is_inexact_tensor(b)]

    def slope(self, index: int, direction: Any, step: float) -> list[Tensor]:
        """The derivative of each result along a direction of one argument.

        For a complex argument, the derivative along the real direction plus i times that along the imaginary one.
        """
        real, imaginary = direction if isinstance(direction, tuple) else (direction, direction)
        found = self.difference(index, real, step)
        if not self.inputs[index].is_complex():
            return found
        imaginary_slope = self.difference(index, imaginary * 1j, step)
        return [dx + dy * 1j for dx, dy in zip(found, imaginary_slope)]

    def numerical(self, index: int) -> list[Tensor]:
        """The Jacobians of all results with respect to one argument, a row for each of its elements."""
        return self._stacked(index, lambda unit: self.slope(index, unit, self.check.eps))

    def _stacked(self, index: int, row: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
        """The matrices of a function of the unit vectors of an argument, which returns a row for each result."""
        x = self.inputs[index]
        rows = [row(unit) for unit in _units(x)]
        if rows:
            return [torch_function("stack")(list(column)) for column in zip(*rows)]
        return [x.detach().new_zeros(0, o.numel()) for o in self.outputs if is_inexact_tensor(o)]

    # ---------------------------------------------------------------- derivatives

    def tangents(self, index: int, direction: Tensor) -> list[Tensor]:
        """The tangents of all results for a direction of one argument."""
        with forward_ad.dual_level():
            given = [
                forward_ad.make_dual(x.detach(), direction if i == index else torch_function("zeros_like")(x))
                if i in self.input_indices
                else x
                for i, x in enumerate(self.inputs)
            ]
            found = []
            for out in self.func(*given):
                if is_inexact_tensor(out):
                    primal, tangent = forward_ad.unpack_dual(out)
                    if tangent is None:
                        tangent = primal.detach().new_zeros(primal.shape)
                    if self.check.check_grad_dtypes and tangent.dtype is not out.dtype:
                        raise GradcheckError("Forward AD gradient has dtype mismatch.")
                    found.append(tangent.detach().reshape(-1))
        return found

    def forward_jacobian(self, index: int) -> list[Tensor]:
        """As ``numerical``, by forward mode."""
        return self._stacked(index, lambda unit: self.tangents(index, unit))

    def vjps(self, output: Tensor, seeds: Sequence[Tensor]) -> list[list[Tensor]]:
        """Gradients of all arguments for each seed, checked and flattened."""
        inputs = [self.inputs[i] for i in self.input_indices]
        # Deferred operations would be fused with the first pass, which rounds differently.
        for t in (*inputs, output, *seeds):
            runtime.ready(t._storage_.buffer)
        twice: list[list[list[Tensor]]] = []
        for _ in range(2):
            rows = [
                grad((output,), inputs, [s.reshape(output.shape)], retain_graph=True, allow_unused=True) for s in seeds
            ]
            self._check_gradients(rows, inputs)
            twice.append(
                [
                    [
                        (x.detach().new_zeros(x.shape) if g is None else g.detach()).reshape(-1)
                        for g, x in zip(row, inputs)
                    ]
                    for row in rows
                ]
            )
        tolerance = self.check.nondet_tol + _rounding([a for row in twice[0] for a in row])
        for row, again in zip(*twice):
            for a, b in zip(row, again):
                if a.numel() and float((a - b).abs().max()) > tolerance:
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        "times gives different values, although analytical gradient matches numerical gradient."
                        f"The tolerance for nondeterminism was {self.check.nondet_tol}."
                    )
        return twice[0]

    def _check_gradients(self, rows: Sequence[Sequence[Any]], inputs: Sequence[Tensor]) -> None:
        pairs = [(g, x) for row in rows for g, x in zip(row, inputs) if g is not None]
        if self.check.check_grad_dtypes and any(g.dtype is not x.dtype for g, x in pairs):
            raise GradcheckError("Gradient has dtype mismatch")
        if any(g.shape != x.shape for g, x in pairs):
            raise GradcheckError("Analytical gradient has incorrect size")

    def jacobian(self, number: int) -> list[Tensor]:
        """The Jacobians of one result with respect to all arguments, by reverse mode, as ``numerical``."""
        output = self.outputs[self.results[number]]
        rows = self.vjps(output, list(_units(output)))
        if rows:
            return [torch_function("stack")(list(column), 1) for column in zip(*rows)]
        return [self.inputs[i].detach().new_zeros(self.inputs[i].numel(), 0) for i in self.input_indices]

    # ---------------------------------------------------------------- comparison

    def run(self) -> None:
        """Compares derivatives.

        Raises:
            GradcheckError: if they differ.
        """
        if self.check.fast and self.results:
            self._run_fast()
        else:
            self._run_slow()

    def _inexact_indices(self) -> list[int]:
        """The indices of the differentiable results among the floating-point and complex ones."""
        floating = [i for i, o in enumerate(self.outputs) if is_inexact_tensor(o)]
        return [floating.index(i) for i in self.results]

    def _run_slow(self) -> None:
        numerical = [self.numerical(index) for index in self.input_indices]
        if not self.results:
            if any(j.count_nonzero().item() for row in numerical for j in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            return
        kept = self._inexact_indices()
        forward_jacobian = [self.forward_jacobian(index) for index in self.input_indices] if self.forward else []
        for i, at in enumerate(kept):
            analytical = [row[at] for row in forward_jacobian] if self.forward else self.jacobian(i)
            for j, a in enumerate(analytical):
                if not close(a, numerical[j][at], self.check.rtol, self.check.atol):
                    raise GradcheckError(self._mismatch(i, j, numerical[j][at], a))

    def _run_fast(self) -> None:
        generator = torch_function("Generator")()
        left = [_random(self.inputs[index], generator) for index in self.input_indices]
        right = [] if self.forward else [random_vector(self.outputs[i], generator) for i in self.results]
        kept, eps = self._inexact_indices(), self.check.eps
        slopes = [
            self.slope(index, _reshaped(u, self.inputs[index]), eps) for index, u in zip(self.input_indices, left)
        ]
        vjps = [self.vjps(self.outputs[i], [v])[0] for i, v in zip(self.results, right)]
        for j, (index, u) in enumerate(zip(self.input_indices, left)):
            tangents = self.tangents(index, _reshaped(u, self.inputs[index])) if self.forward else []
            for i, at in enumerate(kept):
                if self.forward:
                    numerical, analytical, scale = slopes[j][at], tangents[at], _element_sum(u)
                else:
                    numerical = (slopes[j][at] * right[i]).sum()
                    analytical, scale = _product(vjps[i][j], u), _element_sum(u) * float(right[i].real.sum())
                if not close(analytical, numerical, self.check.rtol, self.check.atol * scale):
                    raise GradcheckError(self._mismatch(i, j, numerical, analytical) + self._slow_mode_text(i, j, at))

    def _mismatch(self, i: int, j: int, numerical: Tensor, analytical: Tensor) -> str:
        prefix = ""
        if (j if self.forward else i) in self.complex_indices:
            element = "inputs" if self.forward else "outputs"
            prefix = f"While considering the {self.part} part of complex {element} only, "
        mode = "computed with forward mode " if self.forward else ""
        return (
            f"{prefix}Jacobian {mode}mismatch for output {i} with respect to input {j},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n"
        )

    def _slow_mode_text(self, i: int, j: int, at: int) -> str:
        numerical = self.numerical(self.input_indices[j])[at]
        analytical = self.forward_jacobian(self.input_indices[j])[at] if self.forward else self.jacobian(i)[j]
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
            "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
            f"The max per-element difference (slow mode) is: {numerical.sub(analytical).abs().max()}.\n"
        )
        if close(analytical, numerical, self.check.rtol, self.check.atol):
            text += (
                "Fast gradcheck failed but element-wise differences are small. This means that the\n"
                "test might've passed in slow_mode!"
            )
        return text


def _units(x: Tensor) -> Iterator[Tensor]:
    """The unit vectors of a tensor's space."""
    for i in range(x.numel()):
        unit = x.detach().new_zeros(x.numel())
        unit[i] = 1
        yield unit.reshape(x.shape)


def _rounding(gradients: Sequence[Tensor]) -> float:
    """The tolerance between two passes: compilation between them may change rounding."""
    return max((8 * dtype.finfo(a.dtype).eps * float(a.abs().max()) for a in gradients if a.numel()), default=0.0)


def _quotient(a: Any, b: Any, step: float) -> Tensor:
    for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {step}, but got: "
                f"{what}s {one} and {other}."
            )
    return ((b - a) / (2 * step)).reshape(-1)


def close(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    common = promote_types(a.dtype, b.dtype)
    return bool(torch_function("allclose")(a.to(common), b.to(common), rtol, atol))


def random_vector(x: Tensor, generator: Any) -> Tensor:
    """A random vector of length 1 with non-negative real elements."""
    v = torch_function("rand")(x.numel(), generator=generator).to(x.dtype.to_real())
    return v / (v * v).sum().sqrt()


def _random(x: Tensor, generator: Any) -> Any:
    """A random vector; two of them for a complex tensor."""
    if x.is_complex():
        return random_vector(x, generator), random_vector(x, generator)
    return random_vector(x, generator)


def _reshaped(u: Any, x: Tensor) -> Any:
    return tuple(part.reshape(x.shape) for part in u) if isinstance(u, tuple) else u.reshape(x.shape)


def _element_sum(u: Any) -> float:
    return sum(float(part.sum()) for part in u) if isinstance(u, tuple) else float(u.sum())


def _product(gradient: Tensor, u: Any) -> Tensor:
    if isinstance(u, tuple):
        return (gradient.real * u[0]).sum() + (gradient.imag * u[1]).sum() * 1j
    return (gradient * u).sum()


# ---------------------------------------------------------------- complex functions


def cases(check: Check, func: Callable[..., Any], inputs: tuple, backward: bool, forward: bool) -> Iterator[Case]:
    """The real functions to check."""
    call = lambda *xs: as_tuple(func(*xs))
    outputs = call(*inputs)
    complex_outputs = [i for i, o in enumerate(differentiable(outputs)) if o.is_complex()]
    if backward and any(o.is_complex() for o in outputs):
        for part, take in (("imaginary", "imag"), ("real", "real")):

            def of_outputs(*xs: Any, take: str = take) -> tuple:
                return tuple(getattr(o, take) if o.is_complex() else o for o in call(*xs))

            yield Case(check, of_outputs, inputs, part=part, complex_indices=complex_outputs)
    elif backward:
        yield Case(check, call, inputs)
    input_indices = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.is_complex()]
    if forward and input_indices:
        for part, take in (("imaginary", "imag"), ("real", "real")):

            def of_inputs(*xs: Any, take: str = take) -> tuple:
                full = list(xs)
                for i in input_indices:
                    x = inputs[i]
                    full[i] = x.real + xs[i] * 1j if take == "imag" else xs[i] + x.imag * 1j
                return call(*full)

            real = tuple(getattr(x, take) if i in input_indices else x for i, x in enumerate(inputs))
            yield Case(check, of_inputs, real, True, part, input_indices)
    elif forward:
        yield Case(check, call, inputs, True)
