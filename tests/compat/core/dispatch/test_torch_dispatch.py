"""``__torch_dispatch__``: subclasses that override operations, and wrappers of other tensors."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import compat as torch
import compat.nn.functional as F
from compat.autograd import forward_ad
from compat.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from compat.utils._pytree import tree_map

Tensor = torch.Tensor


class Wrapper(Tensor):
    """Applies each operation to the tensor that it wraps, and records the operation."""

    seen: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, inner: Any, requires_grad: bool = False) -> Any:
        made = Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, requires_grad=requires_grad
        )
        made.inner = inner.detach()
        return made

    def __repr__(self) -> str:
        return f"Wrapper({self.inner})"

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapper(parts["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        kwargs = kwargs or {}
        unwrap = lambda x: x.inner if isinstance(x, Wrapper) else x
        out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs))
        wrapped = tree_map(lambda x: cls(x) if isinstance(x, Tensor) else x, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


@pytest.fixture(autouse=True)
def _forget() -> None:
    Wrapper.seen.clear()
    torch.manual_seed(0)


def _graph(node: Any) -> Any:
    return None if node is None else (node.name(), [_graph(following) for following, _ in node.next_functions])


def _plain(t: Any) -> Any:
    return t.inner if isinstance(t, Wrapper) else t


def _inplace(x: Any) -> Any:
    y = x * 2
    y[0].mul_(3)
    return y.add_(x).sigmoid_()


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "product": (lambda x, y: x * y + 1, [(2, 3), (2, 3)]),
    "matrices": (lambda x, y: x @ y, [(2, 3), (3, 4)]),
    "linear": (F.linear, [(2, 3), (4, 3), (4,)]),
    "views": (lambda x: x.t().reshape(6)[1:4] * 2, [(2, 3)]),
    "result kept": (lambda x: torch.softmax(x, 1), [(2, 3)]),
    "indices kept": (lambda x: x.max(1)[0], [(2, 3)]),
    "several results": (lambda x: torch.split(x, 1)[1].exp(), [(2, 3)]),
    "sequence": (lambda x, y: torch.cat([x, y]), [(2, 3), (1, 3)]),
    "in place": (_inplace, [(2, 3)]),
    "convolution": (F.conv2d, [(1, 2, 4, 4), (3, 2, 2, 2)]),
    "norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)]),
    "index": (lambda x: x[torch.tensor([0, 0, 1])], [(2, 3)]),
    "plain operand": (lambda x: torch.where(x > 0.5, x, torch.zeros(2, 3)) * 2, [(2, 3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_wrappers_share_values_graph_and_gradients(name: str) -> None:
    function, sizes = CASES[name]
    values = [torch.rand(size) for size in sizes]
    plain = [v.clone().requires_grad_() for v in values]
    wrapped = [Wrapper(v.clone(), True) for v in values]
    expected, found = function(*plain), function(*wrapped)
    assert type(found) is Wrapper and torch.equal(found.inner, expected)
    assert _graph(found.grad_fn) == _graph(expected.grad_fn)
    weight = torch.rand(expected.shape)
    first = torch.autograd.grad(expected, plain, weight, create_graph=True)
    second = torch.autograd.grad(found, wrapped, Wrapper(weight), create_graph=True)
    for one, other in zip(first, second):
        assert torch.allclose(one, _plain(other))
    twice = sum((g * g).sum() for g in first)
    if twice.requires_grad:
        first = torch.autograd.grad(twice, plain, allow_unused=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in second), wrapped, allow_unused=True)
        for one, other in zip(first, second):
            assert (one is None) == (other is None)
            assert one is None or torch.allclose(one, _plain(other), atol=1e-5)


def test_operators_that_torch_dispatch_receives() -> None:
    x = Wrapper(torch.ones(2, 3), True)
    y = (F.linear(x, torch.ones(4, 3)).relu_() * 2).sum()
    names = ["mm.default", "relu_.default", "detach.default", "mul.Tensor", "sum.default"]
    assert Wrapper.seen == [f"aten.{name}" for name in names]
    Wrapper.seen.clear()
    y.backward()
    assert type(x.grad) is Wrapper and Wrapper.seen[0] == "aten.ones_like.default"
    assert "aten.mul_backward.default" in Wrapper.seen
    Wrapper.seen.clear()
    assert float(y) == y.item() == 48.0 and bool(y)
    torch.zeros_like(x), x.new_ones(2), x.to(torch.float64), x.data
    names = ["_local_scalar_dense"] * 3 + ["zeros_like", "new_ones", "_to_copy", "detach"]
    assert [n.split(".")[1] for n in Wrapper.seen] == names


def test_saved_tensors_are_the_wrappers() -> None:
    x = Wrapper(torch.rand(3), True)
    y = x.exp() * x
    assert y.grad_fn._saved_other is x
    exp = y.grad_fn.next_functions[0][0]
    assert type(exp._saved_result) is Wrapper and exp._saved_result.grad_fn is exp
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        (x.exp() * 2).sum().backward()
    assert [type(t) for t in kept] == [Wrapper]


def test_versions_and_views() -> None:
    x = Wrapper(torch.rand(2, 3), True)
    y = x * 1
    row = y[0]
    assert row._base is y and row._version == 0
    z = y * y
    row.mul_(2)
    assert y._version == row._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(x, 1, out=torch.zeros(2, 3))


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, 0.1)])
def test_a_module_with_wrapped_weights_is_trained(make: Callable[..., Any]) -> None:
    x = torch.rand(2, 3)
    plain = torch.nn.Linear(3, 4)
    wrapped = copy.deepcopy(plain)
    wrapped.weight = torch.nn.Parameter(Wrapper(plain.weight.detach().clone()))
    assert isinstance(wrapped.weight, torch.nn.Parameter) and len(list(wrapped.parameters())) == 2
    for module in (plain, wrapped):
        optimizer = make(module.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            optimizer.step()
    assert type(wrapped.weight) is Wrapper and torch.allclose(wrapped.weight.inner, plain.weight)
    other = copy.deepcopy(wrapped)
    assert type(other.weight) is Wrapper and other.weight.inner is not wrapped.weight.inner
    assert type(wrapped.state_dict()["weight"]) is Wrapper


def test_random_numbers_and_gradients_together() -> None:
    x = Wrapper(torch.empty(2, 3))
    torch.manual_seed(0)
    assert x.uniform_() is x and x._version == 1 and Wrapper.seen[-1] == "aten.uniform_.default"
    torch.manual_seed(0)
    assert torch.equal(x.inner, torch.empty(2, 3).uniform_())
    square = lambda x: x * x
    plain = torch.autograd.functional.jacobian(square, torch.arange(3.0), vectorize=True)
    found = torch.autograd.functional.jacobian(square, Wrapper(torch.arange(3.0)), vectorize=True)
    assert type(found) is Wrapper and torch.equal(found.inner, plain)


class Logged(Tensor):
    """A subclass with values of its own."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_a_type_whose_tensors_have_values() -> None:
    x = torch.ones(3).as_subclass(Logged).requires_grad_()
    Logged.seen.clear()
    y = (x * 2).sum()
    assert type(y) is Tensor and y.grad_fn.name() == "SumBackward0" and Logged.seen == ["aten.mul.Tensor"]
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with torch.no_grad():
        x.add_(1)
    assert x._version == 1
    z = (x * 1).exp_()
    z.sum().backward()
    assert torch.allclose(x.grad, 2 + torch.exp(torch.tensor(2.0)))
    Logged.seen.clear()
    with torch._C._DisableTorchDispatch():
        x * 2
    assert not Logged.seen


def test_a_mode_overrides_before_a_type() -> None:
    order = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(f"mode {func}")
            return func(*args, **(kwargs or {}))

    x = Wrapper(torch.ones(2))
    with Mode():
        y = x + 1
    assert type(y) is Wrapper and order[0] == "mode aten.add.Tensor" and Wrapper.seen == ["aten.add.Tensor"]


class Mode(TorchDispatchMode):
    """Records the functions and types it is called with, and handles the call only if it should."""

    def __init__(self, answers: bool):
        super().__init__()
        self.answers, self.seen = answers, []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((str(func), types, args))
        return func(*args, **(kwargs or {})) if self.answers else NotImplemented


def test_dispatch_modes_intercept_factories() -> None:
    with Mode(True) as outer, Mode(True) as inner:
        x = torch.ones(2, 3, requires_grad=True)
        torch.arange(1, 4)
        torch.zeros_like(x)
        y = x + 1
    names = ["aten.ones.default", "aten.arange.start", "aten.zeros_like.default", "aten.add.Tensor"]
    assert [name for name, *_ in outer.seen] == [name for name, *_ in inner.seen] == names
    assert outer.seen[0][2] == ([2, 3],) and x.requires_grad and y.tolist() == [[2.0] * 3] * 2
    torch.ones(2)
    assert len(outer.seen) == 4


def test_a_mode_may_leave_it_to_types_but_not_to_another_mode() -> None:
    x, plain = Wrapper(torch.ones(2), requires_grad=True), torch.ones(2)
    with Mode(False) as mode, torch.no_grad():
        with pytest.raises(TypeError, match=r"'torch._ops.aten.abs.default'(.|\n)*mode object"):
            x.abs()  # within the type's handler the mode is called again, with plain tensors alone
    assert [(name, types) for name, types, _ in mode.seen] == [
        ("aten.abs.default", (Wrapper,)), ("aten.abs.default", ())
    ]  # fmt: skip
    with Mode(True) as outer, Mode(False):
        for call in (lambda: torch.ones(2), plain.exp):
            with pytest.raises(TypeError, match="Multiple dispatch failed for"):
                call()
        with torch._C._DisableTorchDispatch():
            assert plain.exp().tolist() == torch.ones(2).exp().tolist()  # modes are not called either
    assert not outer.seen


def test_torch_dispatch_can_reenable_recording() -> None:
    class Reentrant(Wrapper):
        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            made = Wrapper.__new__(cls, inner)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with torch.overrides.enable_reentrant_dispatch():
                return cls(func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {})))

    inner = torch.ones(2, requires_grad=True)
    y = Reentrant(inner) + 2
    assert y.grad_fn is None and y.inner.grad_fn.name() == "AddBackward0"
    with torch.no_grad():
        assert not (Reentrant(inner) + 2).inner.requires_grad


def test_gradients_of_wrappers_are_added_in_place() -> None:
    x = Wrapper(torch.ones(2), requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first and x.grad.inner.tolist() == [5.0, 5.0]


def test_torch_dispatch_of_the_wrong_kind_and_results_of_the_wrong_type() -> None:
    class Shared(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Shared(), pytest.raises(RuntimeError, match="`__torch_dispatch__` as a classmethod is not supported"):
        x + x

    class Text(Tensor):
        @staticmethod
        def __new__(cls, elements: Any) -> Any:
            return Tensor._make_subclass(cls, elements)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "text"

    t = Text(x)
    for call in (t.neg, t.neg_, t.detach, t.sum, lambda: t.view(2)):
        with pytest.raises(RuntimeError, match=r"^Unable to cast text to Tensor$"):
            call()
    with pytest.raises(RuntimeError, match=r"^Cannot cast text to number$"):
        t.item()


def test_gradients_that_torch_dispatch_omits() -> None:
    class Leaving(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__ == "mul_backward.default":
                return None
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Wrapper.__new__(Leaving, torch.ones(2), True)
    y = Wrapper(torch.ones(2), requires_grad=True)
    (x * 2 + y).sum().backward()
    assert x.grad is None and _plain(y.grad).tolist() == [1.0, 1.0]


def test_no_override_raises() -> None:
    class Refusing(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    class Mute(Tensor):
        pass

    x = Tensor._make_wrapper_subclass(Refusing, (2,), dtype=torch.float64)
    assert x.dtype is torch.float64 and x.shape == (2,) and x.is_leaf
    with pytest.raises(TypeError, match="Multiple dispatch failed for"):
        x * 2
    with pytest.raises(RuntimeError, match=r"numpy\(\) is not supported for tensor subclasses"):
        x.numpy()
    with pytest.raises(TypeError, match="Mute must define __torch_dispatch__"):
        Tensor._make_wrapper_subclass(Mute, (2,))


def test_a_detached_tensor_counts_versions_with_its_source() -> None:
    x = Wrapper(torch.ones(2))
    x.detach().add_(2)
    assert x._version == 1 and x.inner.tolist() == [3.0, 3.0]


def test_parts() -> None:
    x = Wrapper(torch.ones(2))
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(torch.ones(2))
    doubled = transform_subclass(x, lambda name, part: part * 2)
    assert type(doubled) is Wrapper and doubled.inner.tolist() == [2.0, 2.0]


# ---------------------------------------------------------------- as Python objects


def test_only_data_has_versions_of_its_own() -> None:
    x = Wrapper(torch.ones(2))
    for write, version in ((x, 1), (x.data, 1), (x.detach(), 2)):
        write.add_(1)
        assert x._version == version
    x = Logged(torch.ones(2))
    Logged.seen.clear()
    x.set_(torch.zeros(3))
    assert Logged.seen == ["aten.set_.source_Tensor"] and type(x) is Logged and x.shape == (3,)


def test_wrappers_have_no_data_pointer() -> None:
    x = Wrapper(torch.ones(2))
    assert x.data_ptr() == 0 and x.untyped_storage().nbytes() == 8
    with pytest.raises(RuntimeError, match="data pointer on an invalid python storage"):
        x.untyped_storage().data_ptr()


def test_a_tensor_has_one_overriding_type() -> None:
    class Other(Tensor):
        pass

    x = Wrapper(torch.ones(2))
    for call in (lambda: Tensor._make_subclass(Other, x), lambda: x.as_subclass(Other), lambda: Other(x)):
        with pytest.raises(RuntimeError, match=r"subclass Other but.*already associated to a python object of type Wr"):
            call()
    assert x.as_subclass(Tensor).inner.tolist() == [1.0, 1.0]
    assert type(Other(torch.ones(2)).as_subclass(Wrapper)) is Wrapper


class Slotted(Wrapper):
    __slots__ = ("note",)


def test_copies_and_files() -> None:
    x = Wrapper.__new__(Slotted, torch.arange(3))
    x.note, x.name_of_it = ["n"], "x"
    with io.BytesIO() as file, torch.serialization.safe_globals([Slotted]):
        torch.save({"x": x}, file)
        file.seek(0)
        saved = torch.load(file)["x"]
    for made in (saved, copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is Slotted and made.inner.tolist() == [0, 1, 2] and made.inner is not x.inner
        assert made.note == ["n"] and made.note is not x.note and made.name_of_it == "x" and made.dtype is torch.int64
    y = Wrapper(torch.ones(2), requires_grad=True)
    (y * 2).sum().backward()
    made = copy.deepcopy(y)
    assert made.requires_grad and made.is_leaf and made.grad.inner.tolist() == [2.0, 2.0] and made.grad is not y.grad


class PlainSlotted(Tensor):
    __slots__ = ("note",)

    def new_empty(self, *args: Any, **kwargs: Any) -> Any:
        return super().new_empty(*args, **kwargs).as_subclass(PlainSlotted)


def test_slots_of_plain_subclasses_are_copied() -> None:
    x = torch.ones(2).as_subclass(PlainSlotted)
    x.note = ["n"]
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is PlainSlotted and made.note == ["n"] and made.note is not x.note
    assert copy.copy(x).note is x.note


def test_copies_of_wrappers_that_raise() -> None:
    class Unwrapping(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))

    class Plain(Tensor):
        pass

    class Good(Tensor):
        def new_empty(self, size: Any) -> Any:
            return type(self)(size)

    with pytest.raises(RuntimeError, match="for which cloning returns another instance of the same subclass"):
        copy.deepcopy(Wrapper.__new__(Unwrapping, torch.ones(2)))
    with pytest.raises(RuntimeError, match="for which that function returns another instance of the same subclass"):
        copy.deepcopy(Plain(3))
    assert type(copy.deepcopy(Good(3))) is Good


def test_library_operations_can_be_overridden_by_types() -> None:
    @torch.library.custom_op("test_dispatch::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    x = Wrapper(torch.ones(2))
    found = twice(x)
    assert type(found) is Wrapper and found.inner.tolist() == [2.0, 2.0]
    assert Wrapper.seen == ["test_dispatch.twice.default"]
    torch.library.register_torch_dispatch(twice, Wrapper, lambda cls, func, types, args, kwargs: (cls, func.__name__))
    assert twice(x) == (Wrapper, "twice.default")


# ---------------------------------------------------------------- tangents


def _cubes(x: Tensor) -> Tensor:
    return (x * x * x + torch.ones(2)).sin()


def test_tangents_are_the_types_too() -> None:
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    with forward_ad.dual_level():
        expected = forward_ad.unpack_dual(_cubes(forward_ad.make_dual(x, v)))
        for tangent in (Wrapper(v), v):
            found = forward_ad.unpack_dual(_cubes(forward_ad.make_dual(Wrapper(x), tangent)))
            for a, b in zip(found, expected):
                assert type(a) is Wrapper and torch.allclose(a.inner, b)
        assert "aten.mul_jvp.default" in Wrapper.seen
        found = forward_ad.unpack_dual(Wrapper(x) * forward_ad.make_dual(v, v))
        assert found.primal.inner.tolist() == found.tangent.inner.tolist() == [3.0, 8.0]
        assert forward_ad.unpack_dual(Wrapper(x) * 2).tangent is None


def test_tangents_of_written_tensors_and_of_views() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(Wrapper(torch.tensor([1.0, 2.0])), Wrapper(torch.tensor([3.0, 4.0])))
        x.mul_(2)
        for part, primal, tangent in (
            (x, [2.0, 4.0], [6.0, 8.0]),
            (x[1:], [4.0], [8.0]),
            (x.split(1)[0], [2.0], [6.0]),
        ):
            found = forward_ad.unpack_dual(part)
            assert found.primal.inner.tolist() == primal and found.tangent.inner.tolist() == tangent


def test_derivatives_of_wrappers_are_those_of_their_tensors() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    functional = torch.autograd.functional
    for call in (
        lambda t: functional.jacobian(_cubes, t, strategy="forward-mode", vectorize=True),
        lambda t: functional.hessian(
            lambda y: _cubes(y).sum(), t, outer_jacobian_strategy="forward-mode", vectorize=True
        ),
    ):
        assert torch.allclose(call(Wrapper(x)).inner, call(x))
    assert torch.autograd.gradcheck(_cubes, (Wrapper(x, requires_grad=True),), check_forward_ad=True)


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad, torch.func.jacfwd, torch.func.jacrev])
def test_transforms_of_wrappers_raise(transform: Any) -> None:
    with pytest.raises(RuntimeError, match="tensor of Wrapper has no elements of its own"):
        transform(lambda x: (x * x).sum())(Wrapper(torch.ones(2)))


def _asked(wrapper: bool, answers: dict[Any, Any], **policy: Any) -> tuple[Any, list[str]]:
    """A tensor of a type that is asked for its size and strides, and the recorded requests."""
    seen: list[str] = []

    class Asked(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return answers.get(func, NotImplemented)

    x = torch.ones(3, 2)
    made = Tensor._make_wrapper_subclass(Asked, x.shape, **policy) if wrapper else None
    return made if wrapper else Tensor._make_subclass(Asked, x, True, **policy), seen


@pytest.mark.parametrize("wrapper", [True, False])
def test_types_override_sizes_and_strides(wrapper: bool) -> None:
    aten = torch.ops.aten
    answers = {aten.sym_size.default: (5, 4), aten.dim.default: None, aten.sym_stride.default: (7, 1)}
    x, seen = _asked(wrapper, answers, dispatch_sizes_strides_policy="sizes")
    assert x.size() == x.shape == (5, 4) and type(x.shape) is torch.Size and x.size(1) == 4 and x.stride() == (7, 1)
    assert x.dim() == x.ndim == 2  # the type returned NotImplemented
    assert type(x).size is Tensor.size and "shape" not in vars(type(x))  # types may look whether they have their own
    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch.ops.aten.sym_numel'; all"):
        x.numel()
    assert set(seen) == {
        "aten.sym_size.default",
        "aten.dim.default",
        "aten.sym_stride.default",
        "aten.sym_numel.default",
    }
    x, seen = _asked(wrapper, {aten.is_contiguous.default: False}, dispatch_sizes_strides_policy="strides")
    assert not x.is_contiguous() and x.shape == (3, 2) and seen == ["aten.is_contiguous.default"]
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: both; expected 'strides' or 'sizes'"):
        _asked(wrapper, {}, dispatch_sizes_strides_policy="both")


def test_types_override_device_and_layout() -> None:
    prim = torch.ops.prim
    device, layout = prim.device.overload("default"), prim.layout.overload("default")
    x, _ = _asked(True, {device: torch.device("meta")}, dispatch_device=True, dispatch_layout=True)
    assert x.device.type == "meta"
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.ops.prim.layout'"):
        _ = x.layout
    x, seen = _asked(True, {layout: None})
    assert x.layout is torch.strided and x.device.type == "cpu" and not seen


def test_slots_of_a_wrapper_go_through_dual_tensors() -> None:
    class Slotted(Wrapper):
        __slots__ = ("kept",)

        @property
        def inner(self) -> Any:
            return self.kept

        @inner.setter
        def inner(self, value: Any) -> None:
            self.kept = value

    found = torch.autograd.functional.jacobian(
        lambda t: 3 * t**2, Slotted(torch.ones(2)), strategy="forward-mode", vectorize=True
    )
    assert torch.equal(getattr(found, "inner", found), 6 * torch.eye(2))
