"""``torch.utils.weak``: dictionaries with weak keys, which are compared by identity.

Tensors compare elementwise, so they cannot be keys of Python's dictionaries of weak references.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from compat._core.tensor.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = ref


class WeakIdRef(ref):
    """A weak reference that is equal to another one if both refer to the same object, alive or not.

    Args:
        key: the object.
        callback: called, with the reference, when the object is deleted.

    Example:
        >>> x = torch.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(x.clone())
        (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None):
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is None or not isinstance(other, ref):
            return self is other
        return mine is other()

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary with weak keys, which are compared by identity.

    Args:
        dict: the initial entries.
        ref_type: the type of the weak references.

    Example:
        >>> x, y = torch.ones(2), torch.ones(2)
        >>> names = WeakIdKeyDictionary({x: "x", y: "y"})
        >>> del y
        >>> len(names), names[x]
        (1, 'x')
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef):
        self.data: MutableMapping[Any, Any] = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _watched(self, key: Any) -> Any:
        """A key's weak reference, which removes the entry when the key is deleted."""
        owner = weakref.ref(self)

        def gone(reference: Any) -> None:
            found = owner()
            if found is not None:
                found.data.pop(reference, None)

        return self.ref_type(key, gone)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._watched(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # not weakly referenceable
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __copy__(self) -> WeakIdKeyDictionary:
        return self.copy()

    def copy(self) -> WeakIdKeyDictionary:
        """A copy with the same entries."""
        made = WeakIdKeyDictionary(ref_type=self.ref_type)
        made.update(self)
        return made

    def keyrefs(self) -> list[Any]:
        """The weak references."""
        return list(self.data)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        """Whether the entries are equal: keys compared by identity, values by ``==``."""
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]  # mutable


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor, equal to another one if both refer to the same tensor.

    Example:
        >>> x = torch.ones(2)
        >>> TensorWeakRef(x)() is x
        True
    """

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
