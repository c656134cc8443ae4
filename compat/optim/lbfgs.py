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
    """Minimizes a function by its gradients, with a limited-memory estimate of the inverse Hessian.

    ``step`` needs a closure that computes the loss and its gradients anew; it is called several times a step.

    Source: J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd ed. (2006), algorithms 7.4, 3.5 and 3.6.

    Args:
        params: the parameters; one group.
        lr: the step length along a direction, or the first trial of the line search.
        max_iter: the maximum number of iterations per step.
        max_eval: the maximum number of closure calls per step; ``max_iter * 5 // 4`` by default.
        tolerance_grad: the step ends when all elements of the gradient are smaller.
        tolerance_change: the step ends when the change of loss or parameters is smaller.
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

    def _try_(self, closure: Callable[[], Any], at: list[Any], t: Any, direction: Any) -> tuple[float, Any]:
        """Loss and gradient at a point along a direction; the parameters are restored."""
        self._move_(t, direction)
        loss = float(closure())
        gradient = self._gradient_()
        for p, was in zip(self._params, at):
            p.copy_(was)
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
                for kept in (dirs, steps, ro):
                    kept.pop(0)
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
        loss = before = float(first)
        calls = 1
        state["func_evals"] += 1
        gradient = self._gradient_()
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction_(state, gradient, group["history_size"])
            state["prev_flat_grad"], before = gradient, loss
            t = group["lr"]
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / _number(gradient.abs().sum())) * t
            slope = _number(gradient.dot(d))
            state.update(d=d, t=float(t))
            if slope > -tolerance:
                break
            made = 0
            if search is not None:
                at = [p.clone() for p in self._params]
                probe = lambda t, at=at, d=d: self._try_(closure, at, t, d)
                start = Point(0.0, loss, gradient, slope)
                t, loss, gradient, made = strong_wolfe(probe, t, d, start, tolerance, group["max_eval"] - calls)
                self._move_(t, d)
                state["t"] = float(t)
            else:
                self._move_(t, d)
                if n != group["max_iter"]:
                    loss, made = float(closure()), 1
                    gradient = self._gradient_()
            calls += made
            state["func_evals"] += made
            done = float(gradient.abs().max()) <= group["tolerance_grad"] or calls >= group["max_eval"]
            if done or float(d.mul(float(t)).abs().max()) <= tolerance or abs(loss - before) < tolerance:
                break
        state["prev_loss"] = before
        return first


def _number(t: Any) -> Any:
    """A tensor as a number in whose dtype results with Python numbers are computed."""
    return t.numpy()[()]


class Point(NamedTuple):
    """A point on a line: its position, the loss, the gradient, the directional derivative."""

    t: Any
    loss: float
    gradient: Any
    slope: Any


@np.errstate(all="ignore")
def _cubic(a: Point, b: Point, low: Any, high: Any) -> Any:
    """The minimum, between two bounds, of the cubic interpolating two points with their slopes; of a line, a bound."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = np.sqrt(square)
    if a.t <= b.t:
        place = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        place = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(place, low), high)


#: The constants of the sufficient decrease and curvature conditions.
_ENOUGH, _FLAT = 1e-4, 0.9


def strong_wolfe(
    probe: Callable[[Any], tuple[float, Any]], t: Any, d: Any, start: Point, tolerance: float, most: int
) -> tuple[Any, float, Any, int]:
    """Searches along a line for a point that satisfies the strong Wolfe conditions.

    Args:
        probe: returns loss and gradient at a position.
        t: the first trial position.
        d: the direction.
        start: the point at position zero.
        tolerance: the bracket length at which the search ends.
        most: the maximum number of evaluations after the first.

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

    high = lambda p: p.loss > start.loss + _ENOUGH * p.t * start.slope
    flat = lambda p: abs(p.slope) <= -_FLAT * start.slope
    before, now = start, at(t)
    bracket: list[Point] = []
    trials = 0
    while trials < most and not bracket:
        rising = high(now) or (trials > 1 and now.loss >= before.loss)
        if not rising and flat(now):
            return now.t, now.loss, now.gradient, calls
        if rising or now.slope >= 0:
            bracket = [before, now]
            break
        place = _cubic(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10)
        before, now = now, at(place)
        trials += 1
    bracket = bracket or [start, now]
    best = _narrowed(bracket, at, high, flat, size, tolerance, most - trials)
    return best.t, best.loss, best.gradient, calls


def _narrowed(
    bracket: list[Point],
    at: Callable[[Any], Point],
    high: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    size: float,
    tolerance: float,
    trials: int,
) -> Point:
    """The best place within a bracket that holds one: the cubic's lowest, unless that keeps to an edge."""
    best, other = sorted(bracket, key=lambda p: p.loss)
    stuck = False
    for _ in range(trials):
        if abs(other.t - best.t) * size < tolerance:
            break
        low, top = min(best.t, other.t), max(best.t, other.t)
        t = _cubic(best, other, low, top)
        edge = 0.1 * (top - low)
        near = min(top - t, t - low) < edge
        if near and (stuck or t >= top or t <= low):
            t = top - edge if abs(t - top) < abs(t - low) else low + edge
            near = False
        stuck = near
        new = at(t)
        if high(new) or new.loss >= best.loss:
            best, other = (new, best) if new.loss < best.loss else (best, new)
            continue
        if flat(new):
            return new
        best, other = new, best if new.slope * (other.t - best.t) >= 0 else other
    return best
