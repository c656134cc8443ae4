"""Handles that remove a registered hook."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any


class RemovableHandle:
    """The handle of a registered hook; ``remove()``, or the end of a ``with`` block, removes the hook.

    Args:
        hooks_dict: the dictionary in which the hook is registered under this handle's ``id``.
        extra_dict: further dictionaries with entries under the same ``id``.
    """

    __module__ = "compat.utils.hooks"

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.id = next(RemovableHandle._ids)
        extra: Iterable[Any] = (
            () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        )
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            found = ref()
            if found is not None:
                found.pop(self.id, None)

    def __getstate__(self) -> tuple[list[Any], int]:
        return [ref() for ref in (self.hooks_dict_ref, *self.extra_dict_ref)], self.id

    def __setstate__(self, state: tuple[list[Any], int]) -> None:
        dicts, self.id = state
        refs = [weakref.ref(OrderedDict() if d is None else d) for d in dicts]
        self.hooks_dict_ref, self.extra_dict_ref = refs[0], tuple(refs[1:])
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))

    def __repr__(self) -> str:
        return f"<torch.utils.hooks.RemovableHandle object at {hex(id(self))}>"  # a notebook's cell ends with it

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


#: Hooks by their handles' numbers, in the order in which they were registered.
HookDict = OrderedDict


def register(hooks: HookDict, hook: Any) -> RemovableHandle:
    """Registers a hook in a dictionary of hooks."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
