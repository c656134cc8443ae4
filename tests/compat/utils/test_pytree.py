"""Structures of trees as text, in PyTorch's format."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from compat._core.pytree.registry import SERIALIZED, SUPPORTED_NODES
from compat.fx._pytree import register_pytree_flatten_spec, tree_flatten_spec
from compat.utils._pytree import (
    TreeSpec,
    _register_namedtuple,
    register_pytree_node,
    tree_structure,
    treespec_dumps,
    treespec_loads,
)

LEAF = '{"type": null, "context": null, "children_spec": []}'
Pair = namedtuple("Pair", "x y")


class Colour(enum.Enum):
    RED = 1


class Box:
    def __init__(self, value: Any):
        self.value = value


@pytest.fixture
def registered() -> Any:
    before = dict(SERIALIZED), dict(SUPPORTED_NODES)
    yield
    for table, kept in zip((SERIALIZED, SUPPORTED_NODES), before):
        table.clear()
        table.update(kept)


# As PyTorch 2.13 writes them.
@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ((1, [2]), f'"builtins.tuple", "context": "null", "children_spec": [{LEAF}, {{"type": "builtins.list"'),
        ({"a": 1}, f'"builtins.dict", "context": "[\\"a\\"]", "children_spec": [{LEAF}'),
        (OrderedDict(a=1), f'"collections.OrderedDict", "context": "[\\"a\\"]", "children_spec": [{LEAF}'),
        (
            defaultdict(list, a=1),
            '"collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": '
            f'"list", "dict_context": ["a"]}}, "children_spec": [{LEAF}',
        ),
        (deque([1], maxlen=3), f'"collections.deque", "context": "3", "children_spec": [{LEAF}'),
        ({Colour.RED: 1}, '"builtins.dict", "context": "[{\\"__enum__\\": true, \\"fqn\\": \\"'),
    ],
)
def test_a_structure_is_written_and_read(tree: Any, text: str) -> None:
    spec = tree_structure(tree)
    written = treespec_dumps(spec)
    assert written.startswith(f'[1, {{"type": {text}')
    assert treespec_loads(written) == spec if not isinstance(next(iter(tree)), Colour) else True


def test_named_tuples_have_names_if_they_are_registered(registered: Any) -> None:
    spec = tree_structure(Pair(1, 2))
    with pytest.raises(NotImplementedError, match="has no serialized_type_name"):
        treespec_dumps(spec)
    _register_namedtuple(Pair, serialized_type_name="Pair")
    written = treespec_dumps(spec)
    assert '"type": "collections.namedtuple", "context": "Pair"' in written
    assert treespec_loads(written) == spec


def test_registered_containers_serialize_their_context(registered: Any) -> None:
    parts = lambda b: ([b.value], {1})
    with pytest.raises(ValueError, match="must be None or registered"):
        register_pytree_node(Box, parts, lambda v, c: Box(*v), to_dumpable_context=list)
    register_pytree_node(
        Box, parts, lambda v, c: Box(*v), serialized_type_name="Box", to_dumpable_context=list,
        from_dumpable_context=set,
    )  # fmt: skip
    written = treespec_dumps(tree_structure(Box(1)))
    assert written == f'[1, {{"type": "Box", "context": [1], "children_spec": [{LEAF}]}}]'
    assert treespec_loads(written) == TreeSpec(Box, {1}, tree_structure([0]).children())


def test_treespec_serialization_errors(registered: Any) -> None:
    register_pytree_node(Box, lambda b: ([b.value], None), lambda v, c: Box(*v))
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        treespec_dumps(tree_structure(Box(1)))
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        treespec_dumps(tree_structure(1), 2)
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        treespec_dumps([1])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="Deserializing Other"):
        treespec_loads('[1, {"type": "Other", "context": "null", "children_spec": []}]')


def test_leaves_by_a_structure_with_fewer_parts(registered: Any) -> None:
    assert tree_flatten_spec(({"b": [1, 2], "a": 3}, 4), tree_structure(({"a": 0, "b": [0]},))) == [3, 1]
    register_pytree_node(Box, lambda b: ([b.value], None), lambda v, c: Box(*v))
    assert tree_flatten_spec(Box([1]), tree_structure(Box([0]))) == [1]
    with pytest.raises(RuntimeError, match="is different from expected spec"):
        tree_flatten_spec(Box(1), tree_structure(Box([0])))
    register_pytree_flatten_spec(Box, lambda b, spec: [b.value[:1]])
    assert tree_flatten_spec(Box([1, 2]), tree_structure(Box([0]))) == [1]
