"""The L-BFGS method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._operators.create.factories import zeros_like
from compat.optim.optimizer import Optimizer, check_lr, real


class LBFGS(Optimizer):
    """Minimizes a loss by its gradients, with a limited-memory estimate of the inverse Hessian.

    ``step`` needs a closure that recomputes the loss and its gradients; it is called several times per step.

    Source: J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd ed. (2006), algorithms 7.4, 3.5 and 3.6.

    Args:
        params: the parameters; one group.
        lr: the step length along a direction, or the first trial of the line search.
        max_iter: the maximum number of iterations per step.
        max_eval: the maximum number of closure calls per step; ``max_iter * 5 // 4`` by default.
        tolerance_grad: the magnitude of all elements of the gradient at which a step ends.
        tolerance_change: the change of the loss or the parameters at which a step ends.
        history_size: the number of stored gradient changes.
        line_search_fn: ``"strong_wolfe"``, or None for steps of ``lr``.

    Raises:
        ValueError: for a negative learning rate, or several groups.

    Example:
        >>> x = torch.tensor([3.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        13.0
        >>> x
        tensor([1., 1.], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check_lr(lr)
        settings = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient_(self) -> Any:
        """The concatenated gradients, complex ones as pairs of reals."""
        grads = [zeros_like(p) if p.grad is None else p.grad.to_dense() for p in self._params]
        return names_of("torch")["cat"]([real(g).reshape(-1) for g in grads])

    def _move_(self, t: Any, direction: Any) -> None:
        start = 0
        for p in map(real, self._params):
            p.add_(direction[start : start + p.numel()].view_as(p), alpha=float(t))
            start += p.numel()

    def _try_(self, closure: Callable[[], Any], origin: list[Any], t: Any, direction: Any) -> tuple[float, Any]:
        """Loss and gradient at a point along a direction; the parameters are restored to ``origin``."""
        self._move_(t, direction)
        loss = float(closure())
        gradient = self._gradient_()
        for p, value in zip(self._params, origin):
            p.copy_(value)
        return loss, gradient

    def _direction_(self, state: dict[str, Any], gradient: Any, history: int) -> Any:
        """The descent direction: minus the inverse Hessian estimate times the gradient."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        y, s = gradient.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        ys = float(y.dot(s))
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if ys > 1e-10:
            if len(dirs) == history:
                for history_of in (dirs, steps, ro):
                    history_of.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / float(y.dot(y))
        q, alphas = gradient.neg(), state.setdefault("al", [None] * history)
        for i in reversed(range(len(dirs))):
            alphas[i] = float(steps[i].dot(q)) * ro[i]
            q = q.add(dirs[i], alpha=-alphas[i])
        q = q.mul(state["H_diag"])
        for i in range(len(dirs)):
            q = q.add(steps[i], alpha=alphas[i] - float(dirs[i].dot(q)) * ro[i])
        return q

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Runs iterations until a limit or tolerance is reached.

        Args:
            closure: computes the loss and its gradients.

        Returns:
            The loss at the beginning.

        Raises:
            RuntimeError: for an unknown ``line_search_fn``.
        """
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        search, tolerance = group["line_search_fn"], group["tolerance_change"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = previous_loss = float(first)
        calls = 1
        state["func_evals"] += 1
        gradient = self._gradient_()
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction_(state, gradient, group["history_size"])
            state["prev_flat_grad"], previous_loss = gradient, loss
            t = group["lr"]
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / _number(gradient.abs().sum())) * t
            slope = _number(gradient.dot(d))
            state.update(d=d, t=float(t))
            if slope > -tolerance:
                break
            trials = 0
            if search is not None:
                origin = [p.clone() for p in self._params]
                probe = lambda t, origin=origin, d=d: self._try_(closure, origin, t, d)
                start = Point(0.0, loss, gradient, slope)
                t, loss, gradient, trials = strong_wolfe(probe, t, d, start, tolerance, group["max_eval"] - calls)
                self._move_(t, d)
                state["t"] = float(t)
            else:
                self._move_(t, d)
                if n != group["max_iter"]:
                    loss, trials = float(closure()), 1
                    gradient = self._gradient_()
            calls += trials
            state["func_evals"] += trials
            done = float(gradient.abs().max()) <= group["tolerance_grad"] or calls >= group["max_eval"]
            if done or float(d.mul(float(t)).abs().max()) <= tolerance or abs(loss - previous_loss) < tolerance:
                break
        state["prev_loss"] = previous_loss
        return first


def _number(t: Any) -> Any:
    """A 0-d tensor as a NumPy scalar, whose results with Python numbers keep its dtype."""
    return t.numpy()[()]


class Point(NamedTuple):
    """A point of a line search: its position, the loss, the gradient, the directional derivative."""

    t: Any
    loss: float
    gradient: Any
    slope: Any


@np.errstate(all="ignore")
def _cubic(a: Point, b: Point, low: Any, high: Any) -> Any:
    """The minimum, within two bounds, of the cubic interpolation of two points; the middle if it has no minimum."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = np.sqrt(square)
    if a.t <= b.t:
        position = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        position = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(position, low), high)


#: The constants of the sufficient decrease and curvature conditions.
_DECREASE, _CURVATURE = 1e-4, 0.9


def strong_wolfe(
    probe: Callable[[Any], tuple[float, Any]], t: Any, d: Any, start: Point, tolerance: float, max_trials: int
) -> tuple[Any, float, Any, int]:
    """Searches along a line for a point that satisfies the strong Wolfe conditions.

    Args:
        probe: returns loss and gradient at a position.
        t: the first trial position.
        d: the direction.
        start: the point at position zero.
        tolerance: the bracket length at which the search ends.
        max_trials: the maximum number of evaluations after the first.

    Returns:
        The position, its loss and gradient, and the number of evaluations.
    """
    size = float(d.abs().max())
    calls = 0

    def at(t: Any) -> Point:
        nonlocal calls
        calls += 1
        loss, gradient = probe(t)
        return Point(t, loss, gradient, _number(gradient.dot(d)))

    too_high = lambda p: p.loss > start.loss + _DECREASE * p.t * start.slope
    flat = lambda p: abs(p.slope) <= -_CURVATURE * start.slope
    previous, current = start, at(t)
    bracket: list[Point] = []
    trials = 0
    while trials < max_trials and not bracket:
        rising = too_high(current) or (trials > 1 and current.loss >= previous.loss)
        if not rising and flat(current):
            return current.t, current.loss, current.gradient, calls
        if rising or current.slope >= 0:
            bracket = [previous, current]
            break
        position = _cubic(previous, current, current.t + 0.01 * (current.t - previous.t), current.t * 10)
        previous, current = current, at(position)
        trials += 1
    bracket = bracket or [start, current]
    best = _zoom(bracket, at, too_high, flat, size, tolerance, max_trials - trials)
    return best.t, best.loss, best.gradient, calls


def _zoom(
    bracket: list[Point],
    at: Callable[[Any], Point],
    too_high: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    size: float,
    tolerance: float,
    trials: int,
) -> Point:
    """Shrinks a bracket to a point that satisfies the conditions, or to the best one found.

    Each trial is the minimum of the cubic interpolation, moved away from an end that two trials in a row were close to.
    """
    best, other = sorted(bracket, key=lambda p: p.loss)
    stuck = False
    for _ in range(trials):
        if abs(other.t - best.t) * size < tolerance:
            break
        low, high = min(best.t, other.t), max(best.t, other.t)
        t = _cubic(best, other, low, high)
        margin = 0.1 * (high - low)
        near_end = min(high - t, t - low) < margin
        if near_end and (stuck or t >= high or t <= low):
            t = high - margin if abs(t - high) < abs(t - low) else low + margin
            near_end = False
        stuck = near_end
        new = at(t)
        if too_high(new) or new.loss >= best.loss:
            best, other = (new, best) if new.loss < best.loss else (best, new)
            continue
        if flat(new):
            return new
        best, other = new, best if new.slope * (other.t - best.t) >= 0 else other
    return best
