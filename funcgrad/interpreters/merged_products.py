"""Merges small matrix products: those with the same matrix, and those that are added up.

A loop that is written in Python leaves a product per step in the program: of a recurrent cell's input and its weights,
and one per step again for the gradient of the weights, which are summed. Each is too small for several threads, and
XLA runs it by itself. Two rules say what can be computed at once: for matrices :math:`x_i` and :math:`y_i`,

- :math:`x_1 w, x_2 w, …` are the rows of the product of the stacked :math:`x_i` and :math:`w`, if none depends on
  another;
- :math:`x_1 y_1 + x_2 y_2 + …` is the product of the :math:`x_i` side by side and the stacked :math:`y_i`; and likewise
  sums of rows that are added up, as the gradients of biases are.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from funcgrad.core.ir import ArrayType, Atom, Equation, Program, Var
from funcgrad.core.passes import common_subexpressions, dead_code, reads
from funcgrad.primitives.contraction import dot
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.shape import concatenate, reduce_sum, slice_, transpose

#: So many products are merged at least.
LEAST = 4
#: The maximum size of the axis along which operands are concatenated, and the maximum number of multiplications in a
#: product: larger products use the processor well by themselves.
MOST_ALONG, MOST_WORK = 64, 1 << 24
#: The maximum bytes of the operands and the result of a merged product.
MOST_BYTES = 1 << 26
#: The maximum number of matrices whose products are merged: each takes a pass over the program.
MOST_MATRICES = 64


def with_merged_products(program: Program) -> Program:
    """The program with small products merged; the same object if there are none.

    Args:
        program: a program without calls.
    """
    products = sum(e.primitive is dot for e in program.equations)
    if products < LEAST or any(e.primitive.effect for e in program.equations):
        return program
    merging = _Merging(program)
    merging.sums()
    merging.products()
    if merging.equations is program.equations:
        return program
    made = Program(program.inputs, program.constants, merging.equations, program.outputs, program.name)
    return dead_code(common_subexpressions(made))


class _Term(NamedTuple):
    """A summand that is linear in the concatenation of its operands.

    Attributes:
        equations: the equations that compute it: a product or a sum, and then transposes.
        axes: the axis of each operand along which it is contracted.
        key: what all merged terms have in common.
        at: the index of the first equation.
    """

    equations: list[Equation]
    axes: tuple[int, ...]
    key: tuple
    at: int


class _Merging:
    """A program's equations while products are merged."""

    def __init__(self, program: Program):
        self.equations: Sequence[Equation] = program.equations
        self._outputs = program.outputs

    # ------------------------------------------------------------ sums of products

    def sums(self) -> None:
        """Merges the products that are added up, and sums of rows."""
        by = {e.outputs[0]: (i, e) for i, e in enumerate(self.equations) if len(e.outputs) == 1}
        uses = reads(self.equations, self._outputs)
        inner: set[Atom] = set()
        new: list[tuple[int, list[Equation]]] = []
        gone: set[int] = set()
        for i in range(len(self.equations) - 1, -1, -1):
            e = self.equations[i]
            if e.primitive is not add or e.outputs[0] in inner:
                continue
            terms, others = [], []
            for leaf in _summands(e, by, uses, inner):
                term = _term(leaf, by, uses)
                if term is None:
                    others.append(leaf)
                else:
                    terms.append(term)
            groups = [g for kind in _kinds(terms) for g in _bounded(kind, kind[0].equations[0])]
            if groups:
                within = {id(term) for g in groups for term in g}
                others += [t.equations[-1].outputs[0] for t in terms if id(t) not in within]
                new.append((i, _summed(e, groups, others)))
                gone.add(i)
        if new:
            self._replace(gone, new)

    # ------------------------------------------------------------ products with one matrix

    def products(self) -> None:
        """Merges the products with the same matrix that do not depend on each other."""
        groups: defaultdict[tuple, list[Equation]] = defaultdict(list)
        for e in self.equations:
            if e.primitive is dot and _is_small(e):
                for shared in (0, 1):
                    other = e.inputs[1 - shared].type
                    if other.shape[_free(e, 1 - shared)] <= MOST_ALONG:
                        groups[shared, e.inputs[shared], other, *e.params.items()].append(e)
        merged: set[Equation] = set()
        for key, members in sorted(groups.items(), key=lambda item: -len(item[1]))[:MOST_MATRICES]:
            members = [e for e in members if e not in merged]
            for group in self._independent(members) if len(members) >= LEAST else ():
                merged.update(group)
                self._merge(key[0], group)

    def _independent(self, members: Sequence[Equation]) -> list[list[Equation]]:
        """Those of some products that do not depend on each other, in groups: by how many others come before."""
        chosen = set(members)
        depth: dict[Atom, int] = {}
        levels: defaultdict[int, list[Equation]] = defaultdict(list)
        for e in self.equations:
            level = max([depth.get(a, 0) for a in e.inputs], default=0)
            if e in chosen:
                levels[level].append(e)
                level += 1
            if level:
                depth.update((v, level) for v in e.outputs)
        return [group for level in levels.values() for group in _bounded(level, level[0])]

    def _merge(self, shared: int, members: Sequence[Equation]) -> None:
        place = {id(e): i for i, e in enumerate(self.equations)}
        first = members[0]
        axis = _free(first, 1 - shared)  # of the operands that differ
        along = 1 - shared  # of the result
        n = first.inputs[1 - shared].type.shape[axis]
        stacked = _concatenated([e.inputs[1 - shared] for e in members], axis, first.source)
        inputs = [first.inputs[0], stacked.outputs[0]] if shared == 0 else [stacked.outputs[0], first.inputs[1]]
        shape = list(first.outputs[0].type.shape)
        shape[along] = n * len(members)
        whole = Equation(dot, inputs, [Var(first.outputs[0].type.with_shape(tuple(shape)))], first.params, first.source)
        last = max(place[id(e)] for e in members)
        new = [(last, [stacked, whole])]
        for i, e in enumerate(members):
            start, limit = [0, 0], [*shape]
            start[along], limit[along] = i * n, (i + 1) * n
            params = {"start": tuple(start), "limit": tuple(limit), "strides": (1, 1)}
            new.append((place[id(e)], [Equation(slice_, whole.outputs, e.outputs, params, e.source)]))
        self._replace({place[id(e)] for e in members}, new)

    def _replace(self, gone: set[int], new: Iterable[tuple[int, Sequence[Equation]]]) -> None:
        """Replaces equations by new ones, each at an index of an old one or as soon after as its operands are there."""
        placed = [(i, e) for i, e in enumerate(self.equations) if i not in gone]
        placed += [(i, e) for i, equations in new for e in equations]
        self.equations = _ordered(placed)


def _ordered(placed: Sequence[tuple[int, Equation]]) -> list[Equation]:
    """Equations by their places, as far as operands are computed before they are read."""
    made = {v for _, e in placed for v in e.outputs}
    readers: defaultdict[Atom, list[int]] = defaultdict(list)
    missing = []
    ready = []
    for number, (place, e) in enumerate(placed):
        needed = {a for a in e.inputs if a in made}
        missing.append(len(needed))
        for a in needed:
            readers[a].append(number)
        if not needed:
            ready.append((place, number))
    heapq.heapify(ready)
    equations = []
    while ready:
        _, number = heapq.heappop(ready)
        e = placed[number][1]
        equations.append(e)
        for v in e.outputs:
            for reader in readers.get(v, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (placed[reader][0], reader))
    return equations


def _summands(root: Equation, by: dict, uses: Counter, inner: set[Atom]) -> Iterator[Atom]:
    """What a tree of additions adds up; ``inner`` receives the results of the others of its additions."""
    waiting = [*root.inputs]
    type_ = root.outputs[0].type
    while waiting:
        a = waiting.pop()
        _, e = by.get(a, (0, None))
        if e is not None and e.primitive is add and uses[a] == 1 and a.type is type_:
            inner.add(a)
            waiting += e.inputs
        else:
            yield a


def _term(a: Atom, by: dict, uses: Counter) -> _Term | None:
    """A summand as a small product or sum of rows, if it is one that nothing else reads."""
    equations: list[Equation] = []
    while a in by and uses[a] == 1:
        at, e = by[a]
        equations.append(e)
        operands = e.inputs
        if e.primitive is transpose:
            a = operands[0]
            continue
        if not all(type(x) is Var and x.type.ndim == 2 for x in operands):
            return None
        axes: tuple[int, ...]
        if e.primitive is dot and _is_small(e):
            axes = tuple([contracted for (contracted,) in e.params["contract"]])
        elif e.primitive is reduce_sum and e.params["axes"] == (0,) and _is_float(operands[0].type):
            axes = (0,)
        else:
            return None
        if operands[0].type.shape[axes[0]] > MOST_ALONG:
            return None
        equations.reverse()
        rest = [x.type.without_axis(axis) for x, axis in zip(operands, axes)]
        return _Term(equations, axes, (*[(e.primitive, *e.params.items()) for e in equations], *rest), at)
    return None


def _kinds(terms: Sequence[_Term]) -> list[list[_Term]]:
    """Terms by their kind, in the program's order."""
    groups: defaultdict[tuple, list[_Term]] = defaultdict(list)
    for term in sorted(terms, key=lambda term: term.at):
        groups[term.key].append(term)
    return [*groups.values()]


def _summed(root: Equation, groups: Sequence[Sequence[_Term]], others: Sequence[Atom]) -> list[Equation]:
    """The equations of a sum of groups of terms, and of others."""
    new: list[Equation] = []
    found: list[Atom] = []
    for group in groups:
        first = group[0]
        operands: list[Atom] = []
        for i, axis in enumerate(first.axes):
            new.append(_concatenated([term.equations[0].inputs[i] for term in group], axis, first.equations[0].source))
            operands += new[-1].outputs
        for e in first.equations:
            new.append(Equation(e.primitive, operands, [Var(e.outputs[0].type)], e.params, e.source))
            operands = [*new[-1].outputs]
        found += operands
    total, *rest = [*found, *others]
    for a in rest:
        new.append(Equation(add, [total, a], [Var(root.outputs[0].type)], root.params, root.source))
        total = new[-1].outputs[0]
    new[-1].outputs = root.outputs
    return new


def _concatenated(operands: Sequence[Atom], axis: int, source: Any) -> Equation:
    shape = list(operands[0].type.shape)
    shape[axis] = sum(a.type.shape[axis] for a in operands)
    type_ = operands[0].type.with_shape(tuple(shape))
    return Equation(concatenate, operands, [Var(type_)], {"axis": axis}, source)


def _bounded(members: list[Any], first: Equation) -> list[list[Any]]:
    """Products to merge, of which ``first`` is one, in groups that are not too large; those that are left are too
    few."""
    most = max(1, MOST_BYTES // sum(a.type.nbytes for a in (*first.inputs, *first.outputs)))
    groups = [members[i : i + most] for i in range(0, len(members), most)]
    return [group for group in groups if len(group) >= LEAST]


def _free(product: Equation, operand: int) -> int:
    """The axis of an operand, a matrix, that is not contracted."""
    (contracted,) = product.params["contract"][operand]
    return 1 - contracted


def _is_small(product: Equation) -> bool:
    """Whether it is a small product of two matrices, in single or double precision."""
    x, y = (a.type for a in product.inputs)
    if product.params["batch"] != ((), ()) or not x.ndim == y.ndim == 2 or not _is_float(x):
        return False
    (contracted,) = product.params["contract"][0]
    return x.size * y.size <= MOST_WORK * x.shape[contracted]


def _is_float(x: ArrayType) -> bool:
    return x.dtype.kind == "f" and x.dtype.itemsize >= 4
