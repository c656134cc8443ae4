"""Einstein summation by batched matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import opt_einsum  # type: ignore[import-untyped]

from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import told_arguments
from compat._core.tensor.tracing import all_taken
from compat._core.types.errors import type_name
from compat._operators.linalg.matmul import bmm
from compat._operators.view.shape import movedim, permute, reshape, unsqueeze, view_size
from compat._operators.view.slicing import diagonal
from funcgrad.core.errors import explained

# A label is a letter, or for the dimensions of an ellipsis a number, counted from the last: -1, -2, ...
Label = str | int
Labels = list[Label]

_INCOMPLETE = (
    "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts "
    "list"
)


class Equation:
    """A parsed equation: the labels of the dimensions of operands and result.

    Raises:
        RuntimeError: for an equation that is malformed or does not match the operands.

    Example:
        >>> Equation("ij,j", [torch.ones(2, 3), torch.ones(3)]).output
        ['i']
    """

    def __init__(self, equation: str, operands: Sequence[Tensor]):
        left, arrow, right = equation.partition("->")
        self.terms = _terms(left, operands)
        self.ellipsis = max((-label for labels in self.terms for label in labels if isinstance(label, int)), default=0)
        self.output = self._result(right, len(left) + 2) if arrow else self._implied()
        used = {label for labels in self.terms for label in labels}
        self.summed = sorted((used - set(self.output)), key=_order)
        self.labels = [*self.output, *self.summed]

    def _implied(self) -> Labels:
        """The implicit result: the ellipsis, then the letters that occur once."""
        labels = [label for term in self.terms for label in term]
        once = {label for label in labels if isinstance(label, str) and labels.count(label) == 1}
        return [*range(-self.ellipsis, 0), *sorted(once, key=_order)]

    def _result(self, text: str, offset: int) -> Labels:
        found: Labels = []
        dotted = False
        i = 0
        while i < len(text):
            c = text[i]
            if c == ".":
                if dotted:
                    raise RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found")
                if text[i : i + 3] != "...":
                    raise RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)")
                found += range(-self.ellipsis, 0)
                dotted, i = True, i + 3
                continue
            i += 1
            if c == " ":
                continue
            _check_letter(c, offset + i - 1)
            if c in found:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
            if not any(c in labels for labels in self.terms):
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation for any input operand"
                )
            found.append(c)
        return found


def _order(label: Label) -> tuple[int, int]:
    """Orders ellipsis dimensions first, then capital letters."""
    return (0, label) if isinstance(label, int) else (1, ord(label))


def _check_letter(c: str, place: int) -> None:
    if not (c.isascii() and c.isalpha()):
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {place} in the equation string, subscripts must be in [a-zA-Z]"
        )


def _terms(left: str, operands: Sequence[Tensor]) -> list[Labels]:
    """The labels of the dimensions of each operand."""
    parts: list[list[str]] = [[]]
    i = 0
    while i < len(left):
        c = left[i]
        i += 1
        if c == ",":
            parts.append([])
            if len(parts) > len(operands):
                raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        elif c == ".":
            if "..." in parts[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {len(parts) - 1} for which an ellipsis was already found"
                )
            if left[i - 1 : i + 2] != "...":
                raise RuntimeError(f"einsum(): found '.' for operand {len(parts) - 1} that is not part of any ellipsis")
            parts[-1].append("...")
            i += 2
        elif c != " ":
            _check_letter(c, i - 1)
            parts[-1].append(c)
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return [_labels(part, n, t.dim()) for n, (part, t) in enumerate(zip(parts, operands))]


def _labels(part: list[str], operand: int, ndim: int) -> Labels:
    letters = [c for c in part if c != "..."]
    dotted = len(letters) < len(part)
    extra = ndim - len(letters)
    if extra < 0 or (extra and not dotted):
        ending = f"for operand {operand}{'' if dotted else ' and no ellipsis was given'}"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(letters)}) "
            f"{'is more than' if dotted else 'does not match'} the number of dimensions ({ndim}) {ending}"
        )
    found: Labels = []
    for c in part:
        found += range(-extra, 0) if c == "..." else [c]
    return found


# ---------------------------------------------------------------- operands


def _check_sizes(equation: Equation, operands: Sequence[Tensor]) -> None:
    sizes: dict[Label, int] = {}
    for i, (labels, t) in enumerate(zip(equation.terms, operands)):
        seen: dict[Label, int] = {}
        for label, n in zip(labels, t.shape):
            if seen.setdefault(label, n) != n:
                raise explained(
                    RuntimeError(
                        f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != "
                        f"{seen[label]}"
                    ),
                    "shape-mismatch",
                )
        for label, n in seen.items():
            known = sizes.setdefault(label, n)
            if known == 1:
                sizes[label] = n
            elif n not in (1, known):
                if not isinstance(label, str):
                    place = sum(not isinstance(other, str) and other < label for other in labels)
                    raise RuntimeError(
                        f"einsum(): dimension {place} covered by ellipsis in operand {i}has size {n} which does not "
                        f"broadcast with previously seen ellipsis with size {known} for the respective dimension"
                    )
                raise explained(
                    RuntimeError(
                        f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with "
                        f"previously seen size {known}"
                    ),
                    "shape-mismatch",
                )


def _with_all_labels(t: Tensor, labels: Labels, all_labels: Labels) -> Tensor:
    """An operand with a dimension for each label, in order, of size 1 for labels that it lacks."""
    own: Labels = []
    for label in labels:
        if label in own:
            first = own.index(label)
            t = movedim(diagonal(t, 0, first, len(own)), -1, first)
        else:
            own.append(label)
    for label in all_labels:
        if label not in own:
            t = unsqueeze(t, t.dim())
            own.append(label)
    return permute(t, [own.index(label) for label in all_labels])


# ---------------------------------------------------------------- products


def _pair(left: Tensor, right: Tensor, dims: Sequence[int]) -> Tensor:
    """The product of two operands, summed over ``dims``, which stay as dimensions of size 1."""
    summed: list[int] = []
    alone: tuple[list[int], list[int]] = ([], [])
    for d in dims:
        n, m = left.shape[d], right.shape[d]
        if n != 1 and m != 1:
            summed.append(d)
        elif n != 1 or m != 1:
            alone[n == 1].append(d)
    left, right = (t.sum(only, keepdim=True) if only else t for t, only in zip((left, right), alone))
    return _contracted(left, right, summed) if summed else left * right


def _contracted(left: Tensor, right: Tensor, summed: list[int]) -> Tensor:
    """The product of two operands, summed over dimensions of equal sizes, as one batched matrix product."""
    both, rows, columns = _grouped(left, right, summed)
    if rows and columns and max(columns) < min(rows):  # so that the result needs no permutation
        left, right = right, left
        both, rows, columns = _grouped(left, right, summed)
    batch, inner = (prod(left.shape[d] for d in dims) for dims in (both, summed))
    n, m = prod(left.shape[d] for d in rows), prod(right.shape[d] for d in columns)
    a = reshape(permute(left, [*both, *rows, *summed, *columns]), (batch, n, inner))
    b = reshape(permute(right, [*both, *summed, *columns, *rows]), (batch, inner, m))
    order = [*both, *rows, *summed, *columns]
    size = [left.shape[d] for d in (*both, *rows)] + [1] * len(summed) + [right.shape[d] for d in columns]
    return permute(view_size(bmm(a, b), size), [order.index(d) for d in range(len(order))])


def _grouped(left: Tensor, right: Tensor, summed: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The remaining dimensions: of both operands, of the left one, and of the right one or of size 1."""
    both: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for d in range(left.dim()):
        if d not in summed:
            n, m = left.shape[d], right.shape[d]
            (both if n != 1 and m != 1 else rows if n != 1 else columns).append(d)
    return both, rows, columns


def _path(equation: Equation, operands: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """The pairs of operands to multiply; the product is appended."""
    if len(operands) <= 2:
        return [(0, 1)] * (len(operands) - 1)
    symbols = {label: opt_einsum.get_symbol(i) for i, label in enumerate(equation.labels)}
    terms = ["".join(symbols[label] for label in labels) for labels in (*equation.terms, equation.output)]
    shapes = [tuple(t.shape) for t in operands]
    return opt_einsum.contract_path(f"{','.join(terms[:-1])}->{terms[-1]}", *shapes, shapes=True, optimize="auto")[0]


def _evaluated(equation: Equation, operands: Sequence[Tensor]) -> Tensor:
    _check_sizes(equation, operands)
    path = _path(equation, operands)
    pending = [_with_all_labels(t, labels, equation.labels) for t, labels in zip(operands, equation.terms)]
    # Dimensions of size one are broadcast, so they do not delay the sum over the dimension of other operands.
    needed = [{c for c, n in zip(labels, t.shape) if n != 1} for labels, t in zip(equation.terms, operands)]
    kept = len(equation.output)
    for i, j in path:
        a, b = pending[i], pending[j]
        pair = needed[i] | needed[j]
        for k in sorted((i, j), reverse=True):
            del pending[k], needed[k]
        later = {label for labels in needed for label in labels}
        done = [d for d in range(kept, len(equation.labels)) if equation.labels[d] in pair - later]
        pending.append(_pair(a, b, done))
        needed.append(pair - {equation.labels[d] for d in done})
    (result,) = pending
    if not equation.summed:
        return result
    if len(operands) > 1:
        return view_size(result, result.shape[:kept])
    return result.sum(list(range(kept, result.dim())))


# ---------------------------------------------------------------- einsum


def _letter(n: Any) -> str:
    if n is Ellipsis:
        return "..."
    if not 0 <= n < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26)


def _from_lists(args: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Converts the notation with alternating operands and lists of numbers to the other one."""
    terms = ",".join("".join(map(_letter, labels)) for labels in args[1::2])
    if len(args) % 2:
        terms = ",".join("".join(map(_letter, labels)) for labels in args[1:-1:2])
        return f"{terms}->{''.join(map(_letter, args[-1]))}", args[:-1:2]
    return terms, args[::2]


def _normalized_arguments(args: tuple) -> tuple:
    """The arguments of ``einsum`` as an equation and separate operands."""
    if len(args) < 2:
        raise ValueError(_INCOMPLETE)
    equation, operands = (args[0], args[1:]) if isinstance(args[0], str) else _from_lists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return (equation, *operands)


@function("torch.einsum")
def einsum(*args: Any) -> Tensor:
    """The sum of products of operands whose dimensions are named by letters.

    A letter that is not in the result is summed over, one that occurs twice in an operand takes its diagonal, and
    ``...`` stands for any further dimensions, which broadcast. Without ``->`` the result has the letters that occur
    once, sorted.

    Args:
        args: an equation, such as ``"ij,jk->ik"``, and operands; or alternating operands and lists of numbers from 0 to
            51, then a list for the result.

    Returns:
        A tensor, computed pair by pair as batched matrix products, in the cheapest order.

    Raises:
        ValueError: for arguments in neither notation.
        RuntimeError: for an equation that is malformed or does not match the operands.

    Example:
        >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2))
        tensor([3., 7.])
    """
    equation, *operands = _normalized_arguments(args)
    operands = all_taken(operands)
    if not operands:
        raise ValueError(_INCOMPLETE)
    for i, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type_name(t)}")
    return _evaluated(Equation(equation, operands), operands)


told_arguments[einsum] = _normalized_arguments
