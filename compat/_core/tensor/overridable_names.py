"""Which public functions and methods ``__torch_function__`` overrides, and the names that the overrides see."""

from __future__ import annotations

# Methods that create subclasses' tensors, or that Python calls in its own way.
_PLAIN_METHODS = frozenset(
    ["as_subclass", "__new__", "__init__", "__init_subclass__", "__hash__", "__iter__", "__torch_function__"]
    + ["__getattr__"]
)


def of_method(name: str) -> bool:
    """Whether a method of tensors of this name is overridable."""
    dunder = name.startswith("__") and name.endswith("__")
    return name not in _PLAIN_METHODS and (dunder or not name.startswith("_"))


_PREFIXES = ("fft", "linalg", "special")


def of_function(address: str) -> str:
    """The name in schemas of a public function, its ``__name__`` in PyTorch: ``linalg_norm`` for ``linalg.norm``."""
    place, _, name = address.rpartition(".")
    return f"{place}_{name}" if place in _PREFIXES else name


def without_prefix(shown: str) -> str:
    """``norm`` for ``linalg_norm``; other names as they are."""
    place, _, name = shown.partition("_")
    return name if place in _PREFIXES else shown


#: Functions that make a tensor from data or numbers: modes override them, the types of their
#: arguments do not.
MODES_ONLY = frozenset(
    ["arange", "as_tensor", "asarray", "full", "scalar_tensor", "tensor", "sparse_coo_tensor"]
    + [f"sparse_{layout}_tensor" for layout in ("compressed", "csr", "csc", "bsr", "bsc")]
)

_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "div": "div", "mod": "remainder"}
#: Methods that are aliases of others in PyTorch: overrides see the other method.
SAME_METHOD = (
    {f"__{name}__": method for name, method in _ARITHMETIC.items()}
    | {f"__i{name}__": f"{method}_" for name, method in (_ARITHMETIC | {"floordiv": "floor_divide"}).items()}
    | {f"__{name}__": name for name in ("matmul", "ne", "lt", "le", "gt", "ge")}
    | {"__radd__": "add", "__rmul__": "mul", "nelement": "numel", "ndimension": "dim"}
)
#: Methods whose ``__name__`` is another name in PyTorch.
SHOWN = {
    "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__pow__": "pow", "__ipow__": "pow_",
    "__rtruediv__": "__rdiv__",
}  # fmt: skip


def is_operator(name: str) -> bool:
    """Whether a method is a binary operator, which may return ``NotImplemented`` for the other operand's method."""
    return name in _OPERATORS or (name in SAME_METHOD and name.startswith("__"))


_OPERATORS = frozenset(
    f"__{name}__"
    for name in ["eq", "and", "or", "xor", "lshift", "rshift", "pow", "floordiv", "rand", "ror", "rxor", "rlshift"]
    + ["rrshift", "rpow", "rfloordiv", "rsub", "rtruediv", "rdiv", "rmod", "rmatmul"]
)
