"""``PassManager``: runs passes over a graph module, in an order that satisfies constraints."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from compat.fx.graph_module import GraphModule
from compat.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[[Any], PassResult | None]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Callable[..., Any]) -> Pass:
    """A function of a module that returns nothing or a module, as a pass that has modified it.

    Args:
        fn: the function.
    """

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        found = fn(gm)
        if isinstance(found, PassResult):
            return found
        return PassResult(found if isinstance(found, GraphModule) else gm, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = str(type(fn))
    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """The constraint that one pass runs before another one.

    Args:
        this, that: the passes.
    """
    return lambda a, b: not (a == that and b == this)


def _ordered(passes: Sequence[Pass], constraints: Sequence[Constraint]) -> list[Pass]:
    """The passes in an order that satisfies the constraints, otherwise as they are.

    Raises:
        RuntimeError: if there is none.
    """
    before = {
        n: {m for m, b in enumerate(passes) if m != n and not all(fits(a, b) for fits in constraints)}
        for n, a in enumerate(passes)
    }
    found: list[int] = []
    while len(found) < len(passes):
        following = next((n for n in before if n not in found and before[n] <= set(found)), None)
        if following is None:
            cycle = [p for n, p in enumerate(passes) if n not in found]
            raise RuntimeError(f"Circular dependency detected within the following passes: {cycle}")
        found.append(following)
    return [passes[n] for n in found]


def _name(p: Pass) -> str:
    return p.__name__ if inspect.isfunction(p) else type(p).__name__


class PassManager:
    """Runs passes over a graph module.

    Args:
        passes: functions of a graph module that return a ``PassResult``.
        constraints: functions of two passes that tell whether the first one may run before the second.
        steps: how often to run all passes, at most: it ends when nothing was modified. By default once.
        run_checks_after_each_pass: whether to run the checks after each pass.
        suppress_check_failures: whether failed checks are ignored.

    Example:
        >>> from compat.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
        >>> tidy = PassManager([pass_result_wrapper(lambda gm: gm.graph.eliminate_dead_code())])
        >>> tidy(torch.fx.symbolic_trace(lambda x: x + 1)).modified
        True
    """

    def __init__(
        self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ):  # fmt: skip
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False
        self._check: Callable[[Any], Any] | None = None

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass at the end.

        Args:
            _pass: the pass.
        """
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint.

        Args:
            constraint: a function of two passes.
        """
        self.constraints.append(constraint)
        self._validated = False

    def solve_constraints(self) -> None:
        """Puts the passes into an order that satisfies the constraints.

        Raises:
            RuntimeError: if there is none.
        """
        self.passes = _ordered(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Any], Any]) -> None:
        """Sets the check that runs before all passes, and after each if asked for.

        Args:
            check: a function of a module that raises if something is wrong.

        Raises:
            TypeError: if it has another number of parameters.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self._check = check

    def check(self, module: Any) -> None:
        """Runs the check.

        Args:
            module: the module.
        """
        if self._check is not None:
            try:
                self._check(module)
            except Exception:
                if not self.suppress_check_failures:
                    raise

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        any_modified = False
        for _ in range(self.steps):
            modified = False
            for n, p in enumerate(self.passes):
                result = self._run(p, module, self.passes[:n])
                module, modified = result.graph_module, modified or result.modified
                if self.run_checks_after_each_pass:
                    self.check(module)
            any_modified = any_modified or modified
            if not modified:
                break
        return PassResult(module, any_modified)

    def _run(self, p: Pass, module: Any, before: Sequence[Pass]) -> PassResult:
        try:
            result = p(module)
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"The result of the pass {_name(p)} should be type PassResult. Please wrap it with "
                    "pass_result_wrapper()"
                )
        except Exception as error:
            names = [_name(q) for q in before]
            raise Exception(  # PyTorch's type
                f"An error occurred when running the {_name(p)!r} pass after the following passes: {names}"
            ) from error
        return result
