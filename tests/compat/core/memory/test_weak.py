"""Dictionaries of weak references, by identity."""

from __future__ import annotations

import gc

import pytest

import compat as torch
from compat.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_entries_go_with_their_keys() -> None:
    x, y = torch.ones(2), torch.ones(2)
    d = WeakTensorKeyDictionary({x: 1})
    d[y] = 2
    assert (d[x], d[y], len(d), x in d, torch.ones(2) in d, 3 in d) == (1, 2, 2, True, False, False)
    assert d == d.copy() and d != WeakIdKeyDictionary({x: 1})
    assert {id(k) for k in d} == {id(x), id(y)} and [r() is not None for r in d.keyrefs()] == [True, True]
    kept = d | {y: 3}
    del y
    gc.collect()
    assert len(d) == 1 and len(kept) == 1
    assert d.pop(x) == 1 and not d
    with pytest.raises(KeyError):
        d[x]


def test_references_are_equal_if_their_objects_are_one() -> None:
    x = torch.ones(2)
    mine, same, other = WeakIdRef(x), WeakIdRef(x), WeakIdRef(x.clone())
    assert mine == same and hash(mine) == hash(same) and mine != other
    assert TensorWeakRef(x)() is x
    with pytest.raises(AssertionError, match=r"expected torch\.Tensor, got"):
        TensorWeakRef(3)  # type: ignore[arg-type]
    del x
    gc.collect()
    assert mine() is None and mine != same
