"""``torch.func``: functional transforms of functions of tensors.

A tensor whose buffer is a funcgrad tracer makes every operation replay its program in the surrounding trace. So each
transform here wraps arrays as tensors on the way in and unwraps them on the way out; the rest is funcgrad's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from compat import dtypes, lens
from compat.errors import size_text
from compat.layout import contiguous_layout
from compat.ops.copying import clone
from compat.ops.sequences import eye
from compat.ops.views import movedim, view_size
from compat.tensor import Tensor, from_buffer, sync
from funcgrad import runtime, trees
from funcgrad.dtypes import is_complex
from funcgrad.interpreters.batching import at_axis, batch_flat
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.primitives.elementwise import conj
from funcgrad.primitives.shape import zeros
from funcgrad.tracing import Tracer, type_of

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]

# ---------------------------------------------------------------- tensors and arrays


def array(t: Tensor) -> Any:
    """A tensor's elements as an array, or as what is being traced."""
    if t._view is not None:
        sync(t)
    return lens.read(runtime.ready(t._storage.buffer), t._layout, t._offset)


def tensor_of(x: Any) -> Tensor:
    """A tensor over an array, or over what is being traced."""
    x = runtime.ready(x)
    t = type_of(x)
    layout = contiguous_layout(t.shape, dtypes.from_numpy(t.dtype), traced=isinstance(x, Tracer))
    return from_buffer(x, layout)


class _Flat:
    """A function of trees of tensors as one of a flat sequence of arrays.

    Attributes:
        out_tree, aux: the structure of what it returned last, and what came with it.
    """

    def __init__(self, function: Callable[..., Any], tree: Any, has_aux: bool, name: str):
        self.function = function
        self.tree = tree
        self.has_aux = has_aux
        self.name = name
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *arrays: Any) -> list[Any]:
        result = self.function(*trees.unflatten(self.tree, [tensor_of(a) for a in arrays]))
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{self.name}(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            result, self.aux = result
        leaves, self.out_tree = trees.flatten(result)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"{self.name}(f, *args): Expected f(*args) to return tensors, got {type(leaf)}")
        return [array(leaf) for leaf in leaves]

    def wrap(self, arrays: Sequence[Any]) -> Any:
        return trees.unflatten(self.out_tree, [tensor_of(a) for a in arrays])

    def outer_aux(self) -> Any:
        """What came with the result, with its tensors outside the transform."""
        return trees.map(lambda x: tensor_of(_outside(array(x))) if isinstance(x, Tensor) else x, self.aux)


def _outside(x: Any) -> Any:
    while isinstance(x, Tracer) and not x.interpreter.alive:
        x = x.underlying()
    return x


def _tensors(name: str, what: str, tree: Any) -> tuple[list[Any], Any]:
    leaves, structure = trees.flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: expected {what} to hold tensors only, got {type(leaf)}")
    return [array(leaf) for leaf in leaves], structure


def _conjugate(x: Any) -> Any:
    return conj(x) if is_complex(type_of(x).dtype) else x


# ---------------------------------------------------------------- reverse


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func`` and a function from cotangents of it to a tuple of cotangents of ``primals``.

    Args:
        func: takes and returns tensors, or trees of them.
        has_aux: whether it returns a pair, of which only the first part is differentiated.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``.

    Example:
        >>> import compat as torch
        >>> y, pullback = torch.func.vjp(torch.sin, torch.zeros(2))
        >>> pullback(torch.ones(2))
        (tensor([1., 1.]),)
    """
    values, tree = _tensors("vjp(f, *primals)", "primals", primals)
    flat = _Flat(func, tree, has_aux, "vjp")
    outs, pull = vjp_flat(flat, values)
    result = flat.wrap(outs)
    types = [type_of(v) for v in values]

    def pullback(*cotangents: Any) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        found, _ = _tensors("vjp", "cotangents", given)
        if len(found) != len(outs):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {trees.structure(given)}, primal output: {flat.out_tree}"
            )
        for i, (c, o) in enumerate(zip(found, outs)):
            have, want = type_of(c).shape, type_of(o).shape
            if have != want:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of torch.Size({size_text(have)}) and "
                    f"output[{i}] has a shape of "
                    f"torch.Size({size_text(want)})."
                )
        grads = pull([_conjugate(c) for c in found])
        return trees.unflatten(
            tree, [tensor_of(zeros(t) if g is None else _conjugate(g)) for g, t in zip(grads, types)]
        )

    return (result, pullback, flat.outer_aux()) if has_aux else (result, pullback)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of ``func`` and its value.

    Args:
        func: returns a tensor without dimensions.
        argnums: with respect to which arguments.
        has_aux: whether it returns a pair, of which only the first part is differentiated.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = argnums if isinstance(argnums, tuple) else (argnums,)
        for i in places:
            if not -len(args) <= i < len(args):
                raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
        places = tuple(i % len(args) for i in places)

        def of_some(*some: Any) -> Any:
            full = list(args)
            for i, x in zip(places, some):
                full[i] = x
            return func(*full, **kwargs)

        found = _scalar_vjp(of_some, [args[i] for i in places], has_aux)
        grads = found[0] if isinstance(argnums, tuple) else found[0][0]
        return grads, (found[1:] if has_aux else found[1])

    return wrapper


def _scalar_vjp(function: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> tuple[Any, ...]:
    def checked(*xs: Any) -> Any:
        result = function(*xs)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(
                "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        out = result[0] if has_aux else result
        if not isinstance(out, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(out)}")
        if out.dim():
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{out.dim()} dims. Maybe you wanted "
                "to use the vjp or jacrev APIs instead?"
            )
        return result

    value, pullback, *aux = vjp(checked, *primals, has_aux=has_aux)
    return pullback(value.detach().new_ones(())), value, *aux


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``, which returns a tensor without dimensions.

    Args:
        argnums: with respect to which arguments.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated; the result is a pair
            too.

    Example:
        >>> import compat as torch
        >>> torch.func.grad(lambda x: (x**3).sum())(torch.tensor([2.0]))
        tensor([12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


# ---------------------------------------------------------------- forward


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of ``func`` and its derivative in the direction of ``tangents``.

    Args:
        primals, tangents: tuples of as many tensors (or trees of them) as ``func`` takes.
        has_aux: whether it returns a pair, of which only the first part is differentiated.

    Example:
        >>> import compat as torch
        >>> torch.func.jvp(lambda x: x * x, (torch.tensor(3.0),), (torch.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {what} to be a tuple. E.g. it should be valid to call "
                "f(*primals)."
            )
    values, tree = _tensors("jvp(f, primals, tangents)", "primals", primals)
    directions, same = _tensors("jvp(f, primals, tangents)", "tangents", tangents)
    if tree != same:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure."
        )
    for v, d in zip(values, directions):
        if type_of(v).shape != type_of(d).shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, "
                "this is not supported. "
                f"Tensor is of size {size_text(type_of(v).shape)} while the given forward gradient is of size "
                f"{size_text(type_of(d).shape)}."
            )
    flat = _Flat(func, tree, has_aux, "jvp")
    outs, moved = jvp_flat(flat, values, directions)
    result = flat.wrap(outs), flat.wrap([zeros(type_of(o)) if t is None else t for o, t in zip(outs, moved)])
    return (*result, flat.outer_aux()) if has_aux else result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``func`` and the linear function from tangents of ``primals`` to those of the result."""
    value = func(*primals)
    return value, lambda *tangents: jvp(func, primals, tangents)[1]


# ---------------------------------------------------------------- many examples at once


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """``func`` on all examples along a dimension at once.

    Args:
        func: a function of single examples.
        in_dims: where each argument has its examples: an int or None (shared by all) for every argument, or a tuple
            of them.
        out_dims: where each result gets them.
        randomness: random numbers are drawn once and shared by all examples.
        chunk_size: at most so many examples at once.

    Example:
        >>> import compat as torch
        >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = trees.flatten(args)
        dims = _dims_of(func, in_dims, args, leaves)
        sizes = {x.shape[d] for x, d in zip(leaves, dims) if d is not None}
        if len(sizes) != 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{[x.shape[d] for x, d in zip(leaves, dims) if d is not None]} for the mapped dimension"
            )
        (size,) = sizes
        if chunk_size is None or size <= chunk_size:
            return _at_once(func, leaves, tree, dims, size, out_dims, kwargs)
        parts = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            some = [x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims)]
            parts.append(_at_once(func, some, tree, dims, n, 0, kwargs))
        joined = trees.map(lambda *xs: _cat(xs), *parts)
        return trees.map(lambda x, d: movedim(x, 0, d), joined, _spread(out_dims, joined))

    return wrapper


def _cat(xs: Sequence[Tensor]) -> Tensor:
    from compat.registry import names_of

    return names_of("torch")["cat"](list(xs), 0)


def _spread(prefix: Any, tree: Any) -> Any:
    """One entry per leaf, from an int for all or a sequence with one per part."""
    if prefix is None or isinstance(prefix, int):
        return trees.map(lambda _: prefix, tree)
    return type(tree)(_spread(p, t) for p, t in zip(prefix, tree))


def _dims_of(func: Any, in_dims: Any, args: tuple, leaves: Sequence[Any]) -> list[int | None]:
    name = f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, int | tuple | list):
        raise ValueError(
            f"{name}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"{name}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
            "with no inputs."
        )
    if isinstance(in_dims, tuple | list) and len(in_dims) != len(args):
        raise ValueError(
            f"{name}: in_dims is not compatible with the structure of `inputs`. in_dims has {len(in_dims)} "
            f"entries but inputs has {len(args)}."
        )
    dims: list[int | None] = []
    _collect(in_dims, args, dims)
    for x, d in zip(leaves, dims):
        if d is not None and not isinstance(x, Tensor):
            raise ValueError(
                f"{name}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if d is not None and not -x.dim() <= d < x.dim():
            raise ValueError(
                f"{name}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} "
                f"so expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
    return [d if d is None else d % x.dim() for x, d in zip(leaves, dims)]


def _collect(prefix: Any, tree: Any, dims: list[int | None]) -> None:
    if prefix is None or isinstance(prefix, int):
        dims.extend([prefix] * len(trees.leaves(tree)))
        return
    parts = tree.values() if isinstance(tree, dict) else tree
    for p, t in zip(prefix.values() if isinstance(prefix, dict) else prefix, parts):
        _collect(p, t, dims)


def _at_once(
    func: Any, leaves: Sequence[Any], tree: Any, dims: Sequence[int | None], size: int, out_dims: Any, kwargs: Any
) -> Any:
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    structure: Any = None

    def flat(*arrays: Any) -> list[Any]:
        nonlocal structure
        full = list(leaves)
        for i, a in zip(places, arrays):
            full[i] = tensor_of(a)
        result = func(*trees.unflatten(tree, full), **kwargs)
        outs, structure = trees.flatten(result)
        for out in outs:
            if not isinstance(out, Tensor):
                raise ValueError(
                    f"vmap({getattr(func, '__name__', func)}, ...): `{getattr(func, '__name__', func)}` must "
                    f"only return Tensors, got type {type(out)}. Did you mean to set out_dims= to None for output?"
                )
        return [array(out) for out in outs]

    outs, found = batch_flat(flat, size, [array(leaves[i]) for i in places], [dims[i] for i in places])
    wanted: list[int | None] = []
    _collect(out_dims, trees.unflatten(structure, outs), wanted)
    placed = []
    for x, d, axis in zip(outs, found, wanted):
        assert axis is not None, "vmap: out_dims must be integers"
        ndim = type_of(x).ndim + (d is None)
        placed.append(tensor_of(at_axis(x, d, axis % ndim, size)))
    return trees.unflatten(structure, placed)


# ---------------------------------------------------------------- Jacobians


def _argument(
    func: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple, kwargs: dict
) -> tuple[Callable[..., Any], Any]:
    """``func`` of the chosen arguments alone, and these."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)

    def of_some(chosen: Any) -> Any:
        full = list(args)
        for i, x in zip(places, chosen if isinstance(argnums, tuple) else (chosen,)):
            full[i] = x
        return func(*full, **kwargs)

    return of_some, tuple(args[i] for i in places) if isinstance(argnums, tuple) else args[argnums]


def _basis(t: Tensor) -> Tensor:
    """The unit vectors of a tensor's space, along a new first dimension."""
    n = t.numel()
    return view_size(eye(n, dtype=t.dtype), (n, *t.shape))


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, computed in reverse mode: a row for each element of the result.

    Example:
        >>> import compat as torch
        >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        of_some, chosen = _argument(func, argnums, args, kwargs)
        out, pullback, *aux = vjp(of_some, chosen, has_aux=has_aux)
        leaves, tree = trees.flatten(out)
        rows = []
        for k, leaf in enumerate(leaves):

            def pull(ct: Tensor, k: int = k) -> Any:
                cts = [ct if i == k else other.detach().new_zeros(other.shape) for i, other in enumerate(leaves)]
                return pullback(trees.unflatten(tree, cts))[0]

            jacobian = vmap(pull, chunk_size=chunk_size)(_basis(leaf))
            rows.append(
                trees.map(lambda j, x, leaf=leaf: view_size(clone(j), (*leaf.shape, *x.shape)), jacobian, chosen)
            )
        result = trees.unflatten(tree, rows)
        return (result, aux[0]) if has_aux else result

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, computed in forward mode: a column for each element of the
    argument."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        of_some, chosen = _argument(func, argnums, args, kwargs)
        leaves, tree = trees.flatten(chosen)
        columns, aux = [], None
        for k, leaf in enumerate(leaves):

            def push(tangent: Tensor, k: int = k) -> Any:
                nonlocal aux
                ts = [tangent if i == k else other.detach().new_zeros(other.shape) for i, other in enumerate(leaves)]
                found = jvp(of_some, (chosen,), (trees.unflatten(tree, ts),), has_aux=has_aux)
                return found[1]

            moved = vmap(push, out_dims=-1)(_basis(leaf))
            columns.append(trees.map(lambda j, leaf=leaf: j.reshape((*j.shape[:-1], *leaf.shape)), moved))
        if has_aux:
            aux = of_some(chosen)[1]
        out_tree = trees.structure(columns[0])
        parts = [trees.unflatten(tree, list(each)) for each in zip(*[trees.leaves(c) for c in columns])]
        result = trees.unflatten(out_tree, parts)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of ``func``: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---------------------------------------------------------------- modules as functions


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers than its own.

    Args:
        parameter_and_buffer_dicts: tensors by dotted name, in one dictionary or a sequence of them.
        args, kwargs: what the module is called with.
        strict: whether all its parameters and buffers must be given.

    Raises:
        ValueError: for the same name in two dictionaries.
        RuntimeError: where names are missing or unknown, and ``strict``.
    """
    given: dict[str, Any] = {}
    for part in (
        [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict) else parameter_and_buffer_dicts
    ):
        for name, value in part.items():
            if name in given:
                raise ValueError(
                    f"{[name]} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            given[name] = value
    own = {n for n, _ in module.named_parameters(remove_duplicate=False)} | {
        n for n, _ in module.named_buffers(remove_duplicate=False)
    }
    if strict and own != given.keys():
        raise RuntimeError(
            f"Unexpected key(s): {sorted(given.keys() - own)}. Missing key(s): {sorted(own - given.keys())}."
        )
    places = [(_owner(module, name), name.rpartition(".")[2], value) for name, value in given.items() if name in own]
    before = [(table, key, table[key]) for table, key, _ in places]
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for table, key, value in places:
            table[key] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, key, value in before:
            table[key] = value


def _owner(module: Any, name: str) -> dict:
    """The dictionary of the submodule that has a parameter or buffer."""
    *path, last = name.split(".")
    for part in path:
        module = getattr(module, part)
    return module._parameters if last in module._parameters else module._buffers
