"""Einstein summation: sums of products over named axes, two operands at a time.

The order of the pairs is opt_einsum's (Smith and Gray, "opt_einsum", JOSS 3 (2018)); each pair is one contraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import opt_einsum  # type: ignore[import-untyped]

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.errors import explained
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise import not_equal
from funcgrad.numpy.indexing.getitem import diagonal
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import reshape, transpose
from funcgrad.primitives.contraction import dot
from funcgrad.primitives.elementwise import mul
from funcgrad.primitives.shape import reduce_sum

# A label is a letter, or for the axes of an ellipsis a number counted from the last: -1, -2, ...
Label = str | int
Labels = tuple[Label, ...]
Term = tuple[Any, Labels]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The sum of products of operands whose axes are named by letters.

    A letter that is not in the result is summed over, one that occurs twice in an operand takes its diagonal, and
    ``...`` stands for any further axes, which broadcast. Without ``->`` the result has the letters that occur once,
    sorted.

    Args:
        subscripts: such as ``"ij,jk->ik"``; or, as in NumPy, operands and lists of ints in turn.
        operands: an array or number for each part between commas, with an axis for each letter.
        optimize: opt_einsum's strategy for the order of products.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array of the promoted dtype, with an axis for each letter of the result.

    Raises:
        TypeError: for operands that are not arrays, and labels that are not ints.
        ValueError: quoting the subscripts, if they are malformed or do not match the operands; for an ``optimize`` that
            opt_einsum does not accept.

    Example:
        >>> import numpy as np
        >>> print(einsum("ij,j->i", np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])))
        [3. 7.]
        >>> print(einsum("ii", np.eye(3)))
        3.0
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    terms, output = _parse(subscripts, [type_of(asoperand(x, "einsum")).shape for x in operands])
    arrays = promoted(*[asoperand(x, "einsum") for x in operands])
    if preferred_element_type is not None:
        arrays = [astype(x, preferred_element_type) for x in arrays]
    if type_of(arrays[0]).dtype == dtypes.bool_:
        # For booleans products are "and", sums "or".
        return not_equal(einsum(subscripts, *[astype(x, dtypes.int32) for x in arrays], optimize=optimize), 0)
    sizes = _sizes(subscripts, terms, [type_of(x).shape for x in arrays])
    missing = [label for label in output if label not in sizes]
    if missing:
        raise ValueError(f"einsum: {subscripts!r} has {missing[0]!r} in the result, but in no operand")
    pending = [_plain(x, labels, sizes) for x, labels in zip(arrays, terms, strict=True)]
    for step in _path(pending, output, sizes, optimize):
        chosen = [pending[i] for i in step]
        pending = [term for i, term in enumerate(pending) if i not in step]
        needed = {*output, *[label for _, labels in pending for label in labels]}
        combined = chosen[0]
        for i, other in enumerate(chosen[1:], 2):
            later = {label for _, labels in chosen[i:] for label in labels}
            combined = _product(combined, other, needed | later)
        pending.append(_summed(combined, needed))
    array, labels = pending[0]
    return transpose(array, [labels.index(label) for label in output])


def _from_lists(arguments: tuple) -> tuple[str, tuple]:
    """Converts NumPy's alternative notation, arrays and lists of ints in turn, to subscripts and operands."""
    pairs, rest = len(arguments) // 2, len(arguments) % 2

    def letters(numbers: Any) -> str:
        labels = validate.sequence("einsum", "labels", numbers)
        places = [n if n is Ellipsis else validate.integer("einsum", "each of the labels", n) for n in labels]
        return "".join("..." if n is Ellipsis else opt_einsum.get_symbol(n) for n in places)

    terms = ",".join(letters(arguments[2 * i + 1]) for i in range(pairs))
    return terms + (f"->{letters(arguments[-1])}" if rest else ""), arguments[: 2 * pairs : 2]


def _parse(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Labels], Labels]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} names {len(parts)} operands, but {len(shapes)} were given")
    terms = [_labels(subscripts, part, len(shape)) for part, shape in zip(parts, shapes, strict=True)]
    dots = max((-label for labels in terms for label in labels if isinstance(label, int)), default=0)
    if arrow:
        if dots and "..." not in right:
            raise ValueError(
                f"einsum: {subscripts!r} has no `...` in the result for the {dots} axes that `...` stands for"
            )
        output = _labels(subscripts, right, len(right.replace("...", "")) + (dots if "..." in right else 0))
        if len(set(output)) != len(output):
            raise ValueError(f"einsum: {subscripts!r} names an axis of the result twice")
        return terms, output
    counts = Counter(label for labels in terms for label in labels)
    once = sorted(label for label, n in counts.items() if n == 1 and isinstance(label, str))
    return terms, (*range(-dots, 0), *once)


def _labels(subscripts: str, part: str, ndim: int) -> Labels:
    before, dots, after = part.partition("...")
    if not all(c.isalpha() for c in before + after):
        raise ValueError(f"einsum: {subscripts!r} may have letters, commas, `...` and one `->` only, got {part!r}")
    extra = ndim - len(before) - len(after)
    if extra < 0 or (extra and not dots):
        raise ValueError(
            f"einsum: {part!r} in {subscripts!r} names {len(before + after)} axes of an operand that has {ndim}"
        )
    return (*before, *range(-extra, 0), *after)


def _sizes(subscripts: str, terms: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for labels, shape in zip(terms, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, n)
            if known == 1:
                sizes[label] = n
            elif n not in (1, known):
                what = f"{label!r}" if isinstance(label, str) else "an axis of `...`"
                message = f"einsum: in {subscripts!r} {what} is of size {known} and of size {n}"
                raise explained(ValueError(message), "operands")
    return sizes


def _plain(x: Any, labels: Labels, sizes: dict[Label, int]) -> Term:
    """The operand with each label once: diagonals extracted, and broadcast axes removed."""
    shape = type_of(x).shape
    kept = [i for i, label in enumerate(labels) if shape[i] == sizes[label]]
    if len(kept) != len(labels):
        x, labels = reshape(x, [shape[i] for i in kept]), tuple(labels[i] for i in kept)
    for label in [label for label, n in Counter(labels).items() for _ in range(n - 1)]:
        first = labels.index(label)
        second = labels.index(label, first + 1)
        x = diagonal(x, 0, first, second)
        labels = (*[a for i, a in enumerate(labels) if i not in (first, second)], label)
    return x, labels


def _check_optimizer(name: str) -> None:
    try:
        opt_einsum.paths.get_path_fn(name)
    except KeyError as error:
        raise ValueError(f"einsum: optimize is {name!r}, which opt_einsum does not know: {error.args[0]}") from None


def _path(terms: Sequence[Term], output: Labels, sizes: dict[Label, int], optimize: Any) -> list[tuple[int, ...]]:
    if len(terms) <= 2:
        if isinstance(optimize, str):
            _check_optimizer(optimize)
        return [tuple(range(len(terms)))]
    symbols = {label: opt_einsum.get_symbol(i) for i, label in enumerate(sizes)}
    words = ["".join(symbols[label] for label in labels) for labels in (*[labels for _, labels in terms], output)]
    shapes = [type_of(x).shape for x, _ in terms]
    whole = f"{','.join(words[:-1])}->{words[-1]}"
    try:
        path, _ = opt_einsum.contract_path(whole, *shapes, shapes=True, optimize=optimize)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"einsum: optimize is {optimize!r}, which opt_einsum does not take: {error}") from None
    return [tuple(step) for step in path]


def _summed(term: Term, needed: set[Label]) -> Term:
    """The sum over the labels that are no longer needed."""
    x, labels = term
    axes = tuple(i for i, label in enumerate(labels) if label not in needed)
    return (reduce_sum(x, axes=axes), tuple(label for label in labels if label in needed)) if axes else term


def _product(left: Term, right: Term, needed: set[Label]) -> Term:
    """The product of two terms, summed over the labels that are not needed elsewhere."""
    (x, a), (y, b) = _summed(left, needed | set(right[1])), _summed(right, needed | set(left[1]))
    shared = [label for label in a if label in b]
    summed = [label for label in shared if label not in needed]
    batch = [label for label in shared if label in needed]
    free_a, free_b = ([label for label in labels if label not in shared] for labels in (a, b))
    result = (*batch, *free_a, *free_b)
    if not summed:
        return mul(_spread(x, a, result), _spread(y, b, result)), result

    def axes(labels: Labels, of: Sequence[Label]) -> tuple[int, ...]:
        return tuple(labels.index(label) for label in of)

    product = dot(x, y, contract=(axes(a, summed), axes(b, summed)), batch=(axes(a, batch), axes(b, batch)))
    return product, result


def _spread(x: Any, labels: Labels, result: Labels) -> Any:
    """``x`` with its axes in the order of ``result``, with size one for missing ones."""
    mine = [label for label in result if label in labels]
    x = transpose(x, [labels.index(label) for label in mine])
    sizes = dict(zip(mine, type_of(x).shape, strict=True))
    return reshape(x, [sizes.get(label, 1) for label in result])


__all__ = ["einsum"]
