"""Data pipes have PyTorch's results, and work with ``DataLoader``."""

from __future__ import annotations

import pickle

import pytest

from compat.utils.data import DataLoader, IterDataPipe, MapDataPipe, functional_datapipe
from compat.utils.data.datapipes.iter import Concater, IterableWrapper
from compat.utils.data.datapipes.map import SequenceWrapper


def test_pipes_of_samples_one_after_the_other() -> None:
    numbers = IterableWrapper(range(5))
    assert list(numbers.map(lambda x: x * x).filter(lambda x: x > 0).batch(2)) == [[1, 4], [9, 16]]
    assert list(numbers.batch(2, drop_last=True)) == [[0, 1], [2, 3]] and len(numbers.batch(2)) == 3
    assert list(numbers.batch(2).batch(2).unbatch(2)) == [0, 1, 2, 3, 4]
    assert list(numbers.zip(IterableWrapper("ab"))) == [(0, "a"), (1, "b")]
    assert list(Concater(numbers, numbers)) == [*range(5), *range(5)]
    assert sorted(numbers.shuffle(buffer_size=2)) == list(range(5))
    assert list(numbers.shuffle().set_seed(3)) == list(numbers.shuffle().set_seed(3))
    shard = numbers.sharding_filter()
    shard.apply_sharding(2, 1)
    assert list(shard) == [1, 3] and len(shard) == 2
    pairs = IterableWrapper([(1, 2), (3, 4)])
    assert list(pairs.map(lambda a: -a, input_col=1)) == [(1, -2), (3, -4)]
    assert list(pairs.map(lambda a, b: a + b, input_col=[0, 1])) == [(3,), (7,)]
    assert list(pairs.map(lambda a: -a, input_col=0, output_col=-1)) == [(1, 2, -1), (3, 4, -3)]


def test_pipes_by_number() -> None:
    pipe = SequenceWrapper([1, 2, 3]).map(str).batch(2)
    assert list(pipe) == [["1", "2"], ["3"]] and len(pipe) == 2 and isinstance(pipe, MapDataPipe)
    with pytest.raises(IndexError, match="Index 2 is out of bound"):
        pipe[2]


def test_pipes_are_data_sets_and_pickle() -> None:
    pipe = pickle.loads(pickle.dumps(IterableWrapper(range(4)).map(float)))
    assert [batch.tolist() for batch in DataLoader(pipe, batch_size=2)] == [[0, 1], [2, 3]]
    with pytest.raises(AttributeError, match="'IterableWrapper' object has no attribute 'nothing'"):
        _ = IterableWrapper([]).nothing
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("x")(list)
    with pytest.raises(Exception, match="map as it is already taken"):
        functional_datapipe("map")(type("Other", (IterDataPipe,), {}))


def test_the_module_of_the_shuffling_pipe() -> None:
    from compat.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe

    assert isinstance(IterableWrapper([1, 2, 3]).shuffle(), ShufflerIterDataPipe)
