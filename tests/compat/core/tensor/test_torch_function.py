"""``__torch_function__``: subclasses of tensors, types that are not tensors, and modes."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, ClassVar

import numpy
import pytest

import compat as torch
from compat.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)

F = torch.nn.functional


class Sub(torch.Tensor):
    """A subclass that overrides nothing."""


class Log(torch.Tensor):
    """A subclass that records the calls."""

    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


HANDLED: dict[Any, Any] = {torch.mean: lambda x: x.value / x.n}


class Diagonal:
    """A type that is not a tensor."""

    def __init__(self, n: int, value: float):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return HANDLED[func](*args, **(kwargs or {})) if func in HANDLED else NotImplemented


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s + 1,
        lambda s: 1 + s,
        lambda s: torch.ones(2) + s,
        lambda s: torch.add(s, 1),
        lambda s: s.sum(),
        lambda s: s.mT if s.dim() > 1 else s.unsqueeze(0).T,
        lambda s: s.data,
        lambda s: s.detach(),
        lambda s: s[0],
        lambda s: s == s,
        lambda s: -s,
        lambda s: torch.stack([s, s]),
        F.relu,
        lambda s: F.linear(s, torch.ones(3, 2)),
        lambda s: s.max(0).values,
        lambda s: s.split(1)[1],
        lambda s: torch.nn.Parameter(torch.ones(2)) * s,
        torch.zeros_like,
        lambda s: s.new_zeros(2),
        lambda s: torch.ones(2).as_subclass(Sub),
        lambda s: torch.Tensor._make_subclass(Sub, torch.ones(2)),
        copy.copy,
    ],
)
def test_results_are_of_the_subclass(call: Any) -> None:
    assert type(call(Sub([1.0, 2.0]))) is Sub


def test_results_of_plain_tensors_are_plain() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    assert type(p + 1) is type(p * p) is type(torch.ones(2) + 1) is torch.Tensor


def test_as_subclass_is_a_view_in_the_graph() -> None:
    x = torch.ones(2, requires_grad=True)
    s = x.as_subclass(Sub)
    assert s._base is x and s.grad_fn.name() == "AliasBackward0"
    (s * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and type(x.grad) is torch.Tensor


def test_a_subclass_shows_its_name() -> None:
    assert repr(Sub([1.0, 2.0])) == "Sub([1., 2.])"
    assert repr(torch.nn.Parameter(torch.ones(1))).startswith("Parameter containing:\ntensor(")


def test_arguments_of_a_subclass_override() -> None:
    x = torch.ones(2, 2).as_subclass(Log)
    Log.calls.clear()
    x + 1, 1 + x, x.add_(1), torch.mean(x), F.softmax(x, dim=0), x @ x, x[0], -x, x == 1, x < 2, torch.cat([x, x])
    x[0] = 1
    assert Log.calls == (
        ["add", "add", "add_", "mean", "softmax", "matmul", "__getitem__", "neg", "__eq__", "lt", "cat", "__setitem__"]
    )


def test_torch_function_of_other_classes_than_tensors() -> None:
    assert torch.mean(Diagonal(5, 2.0)) == 0.4
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.mul'; all __torch_function__ handlers"):
        torch.mul(Diagonal(5, 2.0), 3)
    assert is_tensor_like(Diagonal(1, 1.0)) and not is_tensor_like(3)


def test_subclasses_override_first() -> None:
    class Deeper(Sub):
        pass

    assert type(Sub([1.0]) + Deeper([1.0])) is type(Deeper([1.0]) + Sub([1.0])) is Deeper
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = Sub([1.0]) + torch.ones(1).as_subclass(Log)


def test_custom_functions() -> None:
    def double(x: Any, times: int = 2) -> Any:
        if has_torch_function_unary(x):
            return handle_torch_function(double, (x,), x, times=times)
        return x * times

    HANDLED[double] = lambda x, times: Diagonal(x.n, x.value * times)
    assert double(Diagonal(1, 3.0), times=3).value == 9 and double(torch.ones(1)).item() == 2
    del HANDLED[double]
    with pytest.raises(TypeError, match=r"no implementation found for '.*double' on types that implement"):
        double(Diagonal(1, 3.0))
    triple = wrap_torch_function(lambda x: (x,))(lambda x: 3 * x)
    HANDLED[triple] = lambda x: "three"
    assert triple(Diagonal(1, 1.0)) == "three" and triple(2) == 6
    assert has_torch_function([Diagonal(1, 1.0)]) and not has_torch_function([torch.ones(1)])


class Names(TorchFunctionMode):
    """A mode that records the calls."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_dispatch_modes_intercept_every_call() -> None:
    with Names() as outer, Names() as inner:
        F.relu(torch.zeros(2) + 1)
    torch.zeros(1)
    assert outer.seen == inner.seen == ["zeros", "add", "relu"]


@pytest.mark.parametrize(
    ("op", "args", "name"),
    [
        (torch.ops.aten.alias.default, lambda x: (x,), "alias.default"),
        (torch.ops.aten.add, lambda x: (torch.ones(2), x), "add"),
        (torch.ops.aten.cat.default, lambda x: ([torch.ones(2), x],), "cat.default"),
    ],
    ids=["overload", "operation", "in a list"],
)
def test_objects_of_torch_ops_are_overridden(op: Any, args: Any, name: str) -> None:
    Log.calls.clear()
    found = op(*args(Log([1.0, 2.0])))
    assert type(found) is Log and Log.calls == [name]
    given = args(torch.ones(2))
    with Names() as mode:
        plain = op(*given)
    assert type(plain) is torch.Tensor and mode.seen == [name] and resolve_name(op) == str(op)
    with torch._C.DisableTorchFunctionSubclass():
        assert type(op(*args(Log([1.0, 2.0])))) is torch.Tensor
    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch.opsaten.\w+'; all __torch_function__"):
        op(*args(Diagonal(1, 3.0)))


def test_it_can_be_turned_off() -> None:
    with torch._C.DisableTorchFunctionSubclass():
        assert type(Sub([1.0]) + 1) is torch.Tensor
    assert type(Sub([1.0]) + 1) is Sub


def test_parts_met_one_by_one_are_of_the_subclass() -> None:
    assert [type(part) for part in Sub([[1.0, 2.0], [3.0, 4.0]])] == [Sub, Sub]


def test_names() -> None:
    assert resolve_name(torch.add) == "torch.add" and resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert is_tensor_method_or_property(torch.Tensor.add) and not is_tensor_method_or_property(torch.add)


def test_functions_are_copied_and_pickled_as_themselves() -> None:
    for f in (torch.add, F.relu, torch.Tensor.mul):
        assert copy.deepcopy(f) is copy.copy(f) is pickle.loads(pickle.dumps(f)) is f


def test_a_parameter_of_a_subclass_trains() -> None:
    p = torch.nn.Parameter(Sub([1.0, 2.0]))
    optimizer = torch.optim.SGD([p], lr=0.5)
    (p * p).sum().backward()
    optimizer.step()
    assert isinstance(p, Sub) and p.tolist() == [0, 0]


# ---------------------------------------------------------------- properties


class Noted(torch.Tensor):
    """Records the functions that it is called for."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(f"{getattr(func, '__self__', cls).__name__}.{func.__name__}")
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize(
    "name", ["shape", "dtype", "device", "requires_grad", "grad_fn", "is_leaf", "grad", "data", "T", "ndim", "_version"]
)
def test_reading_a_property_calls_the_override(name: str) -> None:
    x = torch.ones(2, 3).as_subclass(Noted)
    plain = getattr(torch.ones(2, 3), name)
    Noted.seen.clear()
    found = getattr(x, name)
    assert Noted.seen == [f"{name}.__get__"]
    assert type(found) is (Noted if name in ("data", "T") else type(plain))


def test_writing_a_property_calls_the_override() -> None:
    x = torch.ones(2).as_subclass(Noted)
    Noted.seen.clear()
    x.requires_grad = True
    x.grad = torch.ones(2)
    del x.grad
    assert Noted.seen == ["requires_grad.__set__", "grad.__set__", "grad.__delete__"]
    with torch._C.DisableTorchFunctionSubclass():
        assert x.requires_grad and x.is_leaf and x.grad is None


def test_internal_reads_call_no_override() -> None:
    class Calls(TorchFunctionMode):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Calls() as mode:
        (torch.nn.Linear(2, 2)(x) * x).sum().backward()
        assert x.shape == (2,)
    assert mode.seen[-5:] == ["linear", "mul", "sum", "backward", "__get__"]


def test_an_unknown_property() -> None:
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with torch._C.DisableTorchFunctionSubclass():
        x = torch.ones(2).as_subclass(Refusing)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.Tensor\.shape\.__get__'"):
        _ = x.shape


def test_gradients_of_a_subclass() -> None:
    x = Sub([1.0, 2.0]).requires_grad_()
    (found,) = torch.autograd.grad((x * x).sum(), x)
    assert type(found) is Sub and found.tolist() == [2.0, 4.0]
    (x * x).sum().backward()
    assert type(x.grad) is torch.Tensor

    class Other:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func, args[0], args[1], kwargs["grad_outputs"]

    o = Other()
    assert torch.autograd.grad(o, o) == (torch.autograd.grad, (o,), (o,), None)


# ---------------------------------------------------------------- modes, and errors


def test_a_mode_that_defers_to_types_is_called_again_by_them() -> None:
    class Polite(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((func.__name__, types))
            return NotImplemented if types else func(*args, **(kwargs or {}))

    asked: list[Any] = []
    x = Sub([1.0])
    with Polite() as mode:
        assert torch.overrides._get_current_function_mode() is mode
        assert (
            torch.overrides._get_current_function_mode_stack() == [mode] and torch._C._len_torch_function_stack() == 1
        )
        assert type(torch.neg(x)) is Sub
        with torch._C.DisableTorchFunction():
            assert torch._C._is_torch_function_all_disabled() and type(torch.neg(x)) is torch.Tensor
    assert asked == [("neg", (Sub,)), ("neg", ())] and not torch._C._is_torch_function_all_disabled()


def test_methods_of_the_wrong_kind() -> None:
    class Shared(TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Shared(), pytest.raises(RuntimeError, match="`__torch_function__` as a classmethod is not supported"):
        torch.ones(2)

    class Plain:
        def __torch_function__(self, *args: Any, **kwargs: Any) -> str:
            return "called"

    for call, category in ((torch.nn.functional.dropout, DeprecationWarning), (torch.abs, UserWarning)):
        with pytest.warns(category, match="as a plain method is deprecated"):
            assert call(Plain()) == "called"
    with pytest.raises(TypeError, match=r"^expected a sequence$"):
        torch.overrides.has_torch_function(object())


def test_stand_ins_have_the_parameters_of_functions() -> None:
    stand_ins = torch.overrides.get_testing_overrides()
    assert len(stand_ins) > 1000 and torch.Tensor.shape.__get__ in stand_ins
    assert stand_ins[torch.add](torch.ones(2), 1, alpha=2) == -1
    with pytest.raises(TypeError):
        stand_ins[torch.add]()
    assert torch.is_tensor in torch.overrides.get_ignored_functions()
    assert not any(f in stand_ins for f in torch.overrides.get_ignored_functions())


def test_redispatched_functions_are_overridden_inside() -> None:
    seen: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a: Any, b: Any) -> Any:
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = torch.ones(2).as_subclass(Logged)
    assert type(scaled(x, x)) is torch.Tensor and seen == ["scaled", "mul"]
    seen.clear()
    assert torch.overrides.redispatch_function(torch.Tensor.add, (Logged,), (x, 1), None).tolist() == [2.0, 2.0]
    assert not seen


def test_tensor_contents_of_repr() -> None:
    class Named(torch.Tensor):
        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return super().__repr__(tensor_contents="some numbers")

    x = torch.ones(2, dtype=torch.float64).as_subclass(Named)
    assert repr(x) == "Named(some numbers, dtype=torch.float64)"
    assert repr(torch.nn.Parameter(x)) == "Parameter(Named(some numbers, dtype=torch.float64, requires_grad=True))"
    assert torch.ones(0, 2).__repr__(tensor_contents="none") == "tensor(none, size=(0, 2))"
    assert torch.ones(2, device="meta").__repr__(tensor_contents="-") == "tensor(-, device='meta', size=(2,))"


class WithMeta(torch.Tensor):
    """A subclass with attributes of its own, whose results keep them."""

    _meta: Any = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(found, cls):
            found._meta = {"from": func.__name__}
        return found


def test_subclasses_may_have_an_attribute_called_meta() -> None:
    t = torch.ones(2).as_subclass(WithMeta)
    t._meta = {"name": "t"}
    assert (t + 1)._meta == {"from": "add"} and t.clone()._meta == {"from": "clone"}
    w = t.requires_grad_()
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0] and w._meta == {"from": "requires_grad_"}


def test_batches_of_a_subclass_are_of_it() -> None:
    samples = [torch.ones(2).as_subclass(WithMeta) for _ in range(2)]
    (batch,) = torch.utils.data.DataLoader(samples, batch_size=2)
    assert type(batch) is WithMeta and batch._meta == {"from": "stack"}


def _written(x: Any) -> None:
    """In-place operators, each once."""
    x += 1
    x -= 1
    x *= 2
    x /= 2
    x %= 7
    x //= 1
    x **= 2


# What PyTorch 2.13 overrides, and under which names.
_SEEN = {
    "aliases": (
        lambda x: (x != 1, x.nelement(), x.ndimension(), x**2, 1 / x, +x, abs(x), x.__div__(2)),
        ["ne", "numel", "dim", "pow", "__rdiv__", "positive", "abs", "div"],
    ),
    "writing operators": (_written, ["add_", "sub_", "mul_", "div_", "remainder_", "floor_divide_", "pow_"]),
    "names of namespaces": (
        lambda x: (torch.linalg.norm(x), torch.fft.fft(x), torch.special.erf(x), F.softmax(x, 0), F.relu(x)),
        ["linalg_norm", "fft_fft", "special_erf", "softmax", "relu"],
    ),
    "initialization": (
        lambda x: (torch.nn.init.constant_(x, 2), torch.nn.init.kaiming_uniform_(x[None]), torch.nn.init.zeros_(x)),
        ["constant_", "__getitem__", "kaiming_uniform_", "zero_"],
    ),
    "a backward pass": (
        lambda x: torch.autograd.backward(x.requires_grad_().sum()), ["requires_grad_", "sum", "backward"],
    ),
    "data": (
        lambda x: (torch.tensor(x.tolist()), torch.as_tensor(x), torch.asarray(x), torch.full((2,), 1)), ["tolist"],
    ),
    "functions that are no operations": (
        lambda x: (torch.save(x, io.BytesIO()), torch.is_tensor(x), torch.broadcast_shapes((1,), (2,))),
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _SEEN)
def test_which_functions_are_overridden(name: str) -> None:
    call, names = _SEEN[name]
    x = torch.tensor([2.0, 3.0]).as_subclass(Log)
    Log.calls.clear()
    call(x)
    assert Log.calls == names


def test_modes_see_the_making_of_tensors_and_no_settings() -> None:
    with Names() as mode:
        torch.tensor([1.0]), torch.full((1,), 2.0), torch.is_grad_enabled(), torch.get_num_threads()
        torch.are_deterministic_algorithms_enabled(), torch.from_numpy(numpy.ones(1))
    assert mode.seen == ["tensor", "full"]


def test_an_object_with_overrides_is_saved() -> None:
    torch.save(Diagonal(3, 1.0), file := io.BytesIO())
    file.seek(0)
    assert torch.load(file, weights_only=False).n == 3


class Listed(torch.Tensor):
    """A subclass that describes itself for pickling."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _listed, (self.tolist(),)


def _listed(values: list[float]) -> Any:
    return torch.tensor(values).as_subclass(Listed).mul_(10)


def test_a_subclass_is_saved_as_it_describes_itself() -> None:
    torch.save(torch.ones(2).as_subclass(Listed), file := io.BytesIO())
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert type(found) is Listed and found.tolist() == [10, 10]
