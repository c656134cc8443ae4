"""Custom operators: ``torch.library`` and ``torch.ops``."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.library import infer_schema
from compat.utils._python_dispatch import TorchDispatchMode

Tensor = torch.Tensor


@pytest.fixture
def sine() -> Any:
    @torch.library.custom_op("tests::sine", mutates_args=())
    def sine(x: Tensor, k: float = 2.0) -> Tensor:
        return torch.from_numpy(np.sin(x.numpy(force=True)) * k)

    return sine


@pytest.fixture
def library() -> Iterator[Any]:
    made = torch.library.Library("tests_lib", "DEF")
    yield made
    made._destroy()


def formula(ctx: Any, grad: Any) -> Any:
    (x,) = ctx.saved_tensors
    return grad * x.cos() * ctx.k, None


def remember(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.k = inputs
    ctx.save_for_backward(x)


def test_found_under_its_name(sine: Any) -> None:
    x = torch.ones(2)
    assert torch.ops.tests.sine(x, 3.0).tolist() == pytest.approx([3 * np.sin(1.0)] * 2)
    op = torch.ops.tests.sine.default
    assert repr(op) == "<OpOverload(op='tests.sine', overload='default')>" and op.name() == "tests::sine"
    assert str(op._schema) == "tests::sine(Tensor x, float k=2.) -> Tensor" and not op._schema.is_mutable
    assert repr(sine) == "<CustomOpDef(tests::sine)>" and torch.ops.tests.sine.overloads() == ["default"]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'nope'"):
        _ = torch.ops.tests.nope
    with pytest.raises(AttributeError, match=r"The underlying op of 'tests.sine' has no overload name 'nope'"):
        _ = torch.ops.tests.sine.nope


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((1,), {}, r"tests::sine\(\) Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        (
            (),
            {},
            r"tests::sine\(\) is missing value for argument 'x'. Declaration: tests::sine\(Tensor x, float k=2.\)",
        ),
        ((torch.ones(1), 1.0, 2), {}, r"expected at most 2 argument\(s\) but received 3 argument\(s\)"),
        ((torch.ones(1),), {"z": 1}, "Unknown keyword argument 'z' for operator 'tests::sine'"),
        ((torch.ones(1), "s"), {}, "Expected a value of type 'float' for argument 'k' but instead found type 'str'"),
    ],
)
def test_arguments_that_do_not_fit(sine: Any, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        sine(*args, **kwargs)


def test_gradients_are_those_of_the_formula(sine: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = sine(x)
    assert y.grad_fn.name() == "GeneratedBackwardFor_tests_sine_defaultBackward"
    with pytest.raises(RuntimeError, match=r"Trying to backward through tests.sine.default but no autograd formula"):
        y.sum().backward()
    sine.register_autograd(formula, setup_context=remember)
    sine(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * np.cos(1.0)] * 2)
    (grad,) = torch.autograd.grad(sine(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(grad.sum(), x)[0].tolist() == pytest.approx([-2 * np.sin(1.0)] * 2)
    assert torch.func.grad(lambda x: sine(x).sum())(torch.ones(2)).tolist() == pytest.approx([2 * np.cos(1.0)] * 2)
    assert torch.autograd.gradcheck(sine, (torch.rand(3, dtype=torch.float64, requires_grad=True),))


def test_without_values(sine: Any) -> None:
    x = torch.empty(3, device="meta")
    with pytest.raises(
        RuntimeError, match=r"There was no fake impl registered for <CustomOpDef.* `sine.register_fake`"
    ):
        sine(x)
    sine.register_fake(lambda x, k=2.0: torch.empty_like(x))
    assert sine(x).is_meta


def test_mapped_by_its_rule_or_one_by_one(sine: Any) -> None:
    x = torch.rand(3, 2)
    want = sine(x)
    assert torch.equal(torch.func.vmap(sine)(x), want)
    seen = []

    @sine.register_vmap
    def rule(info: Any, in_dims: Any, x: Any, k: float = 2.0) -> Any:
        seen.append((info.batch_size, in_dims))
        return sine(x, k), in_dims[0]

    assert torch.equal(torch.func.vmap(sine, in_dims=1)(x), want.T)
    assert seen == [(2, (1, None))]


def test_lists_of_tensors() -> None:
    @torch.library.custom_op("tests::scaled", mutates_args=())
    def scaled(xs: Sequence[Tensor], k: float) -> list[Tensor]:
        return [x * k for x in xs]

    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    scaled.register_autograd(lambda ctx, grads: ([g * ctx.k for g in grads], None), setup_context=remember)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    a, b = scaled([x, y], 3.0)
    (a + b).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad is None


def test_mutated_arguments_get_a_new_version() -> None:
    @torch.library.custom_op("tests::add_one_", mutates_args=("x",))
    def add_one_(x: Tensor) -> None:
        x.numpy()[...] += 1

    x = torch.zeros(2)
    before = x._version
    assert add_one_(x) is None
    assert (x.tolist(), x._version) == ([1.0, 1.0], before + 1)
    assert str(torch.ops.tests.add_one_.default._schema) == "tests::add_one_(Tensor(a0!) x) -> ()"
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        add_one_.register_autograd(lambda ctx: None)


def test_results_have_memory_of_their_own() -> None:
    @torch.library.custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x.view(-1)

    with pytest.raises(RuntimeError, match=r"The output of this custom operator \(1\) must not also be an input"):
        same(torch.ones(2))


def test_declared_and_given_kernels(library: Any) -> None:
    assert library.define("mul(Tensor x, Scalar k=2, int[] sizes=[]) -> Tensor") == "mul"
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="Could not run 'tests_lib::mul' with arguments from the 'CPU' backend"
    ):
        torch.ops.tests_lib.mul(x)
    library.impl("mul", lambda x, k, sizes: x * k, "CPU")
    y = torch.ops.tests_lib.mul(x, 3)
    assert y.tolist() == [3.0, 3.0]
    with pytest.warns(UserWarning, match="tests_lib::mul: an autograd kernel was not registered to the Autograd key"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="tests_lib::mul: attempted to run this operator with Meta tensors"):
        torch.ops.tests_lib.mul(x.to("meta"))
    library.impl("mul", lambda x, k, sizes: torch.empty_like(x), "Meta")
    assert torch.ops.tests_lib.mul(x.to("meta")).is_meta
    library.define("mul.int(Tensor x, int n, *, bool big) -> Tensor")
    library.impl("mul.int", lambda x, n, big: x * n * 100, "CompositeExplicitAutograd")
    assert torch.ops.tests_lib.mul.overloads() == ["default", "int"]
    assert torch.ops.tests_lib.mul.int(x, 2, big=True)[0] == torch.ops.tests_lib.mul(x, 2, big=True)[0] == 200
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        library.define("mul(Tensor x) -> Tensor")


def test_differentiated_step_by_step(library: Any) -> None:
    library.define("twice_sine(Tensor x) -> Tensor")
    library.impl("twice_sine", lambda x: x.sin() * 2, "CompositeImplicitAutograd")
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = torch.ops.tests_lib.twice_sine(x)
        y.sum().backward()
    assert y.grad_fn.name() == "MulBackward0" and x.grad[0].item() == pytest.approx(2 * np.cos(1.0))


def test_a_kernel_for_autograd_sees_the_call_first(library: Any) -> None:
    library.define("cube(Tensor x) -> Tensor")
    library.impl("cube", lambda x: x**3, "CPU")

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.ops.tests_lib.cube(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 7

    library.impl("cube", Cube.apply, "Autograd")
    x = torch.full((1,), 2.0, requires_grad=True)
    y = torch.ops.tests_lib.cube(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (8.0, 7.0)


def test_functions_that_register() -> None:
    library = torch.library.Library("tests_more", "FRAGMENT")
    torch.library.define("tests_more::plus", "(Tensor x) -> Tensor", lib=library)
    torch.library.impl("tests_more::plus", ("cpu", "meta"), lambda x: x + 1, lib=library)
    torch.library.register_autograd("tests_more::plus", lambda ctx, grad: grad * 5, lib=library)
    x = torch.ones(1, requires_grad=True)
    torch.ops.tests_more.plus(x).backward()
    assert x.grad.item() == 5
    assert torch.library.opcheck(torch.ops.tests_more.plus.default, (x,)) == {
        "test_schema": "SUCCESS", "test_autograd_registration": "SUCCESS", "test_faketensor": "SUCCESS",
            "test_aot_dispatch_dynamic": "SUCCESS",
        }  # fmt: skip
    library._destroy()
    assert not hasattr(torch.ops.tests_more, "plus")


def test_dispatch_modes_intercept_custom_operators(sine: Any) -> None:
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    sine.register_autograd(formula, setup_context=remember)
    with Names():
        sine(torch.ones(1, requires_grad=True)).backward()
    assert seen[:2] == ["aten.ones.default", "tests.sine.default"] and "aten.cos.default" in seen


def test_kernels_without_tensor_arguments_are_selected_by_device() -> None:
    @torch.library.custom_op("tests::ones", mutates_args=(), device_types="cpu")
    def ones(device: torch.device) -> Tensor:
        return torch.ones(3)

    assert ones("cpu").tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="ones does not have a kernel registered for cuda"):
        ones("cuda")


def test_a_rule_for_a_mode(library: Any) -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    library.define("half(Tensor x) -> Tensor", tags=torch.Tag.pointwise)
    library.impl("half", lambda x: x / 2, "CPU")
    torch.library.register_torch_dispatch(
        "tests_lib::half", Mode, lambda mode, op, types, args, kwargs: op(*args) + 10, lib=library
    )
    assert torch.ops.tests_lib.half.default.tags == [torch.Tag.pointwise]
    x = torch.ones(1)
    with Mode():
        assert torch.ops.tests_lib.half(x).item() == 10.5
    assert torch.ops.tests_lib.half(x).item() == 0.5


def test_checking() -> None:
    @torch.library.custom_op("tests::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(
        torch.library.OpCheckError, match="test_schema failed with Argument x is not defined as mutable"
    ):
        torch.library.opcheck(liar, (torch.ones(2),), test_utils="test_schema")
    liar.register_fake(lambda x: x.new_empty(3))
    found = torch.library.opcheck(liar, (torch.ones(2),), test_utils="test_faketensor", raise_exception=False)
    assert "shape torch.Size([2]), but torch.Size([3])" in found["test_faketensor"]


# ---------------------------------------------------------------- schemas


def annotated(
    x: Tensor, y: Tensor | None, z: list[Tensor], a: int, b: float = 1.0, c: bool = True, d: str = "hi", *,
    e: Sequence[int], g: int | None = None, h: int | float | bool = 3, i: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip


def writing(x: Tensor) -> None: ...


def test_inferred() -> None:
    tail = (
        'SymInt a, float b=1.0, bool c=True, str d="hi", *, SymInt[] e, SymInt? g=None, Scalar h=3, '
        "ScalarType i=float32) -> (Tensor, Tensor)"
    )
    assert infer_schema(annotated, mutates_args=()) == f"(Tensor x, Tensor? y, Tensor[] z, {tail}"
    assert infer_schema(annotated, mutates_args="unknown") == f"(Tensor(a0!) x, Tensor(a1!)? y, Tensor(a2!)[] z, {tail}"
    assert infer_schema(writing, mutates_args=("x",), op_name="w") == "w(Tensor(a0!) x) -> ()"


def bare(x): ...  # type: ignore[no-untyped-def]


def starred(x: Tensor, *a: int) -> Tensor: ...


def unknown(x: np.ndarray) -> Tensor: ...


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (bare, r"Parameter x must have a type annotation. Got func with signature \(x\)"),
        (starred, "We do not support positional-only args, varargs, or varkwargs"),
        (unknown, "Parameter x has unsupported type <class 'numpy.ndarray'>"),
    ],
)
def test_not_inferred(f: Callable[..., Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        infer_schema(f, mutates_args=())


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: torch.library.Library("x", "NOPE"), ValueError, "Unsupported kind: NOPE"),
        (lambda: torch.library.Library("prim", "DEF"), ValueError, "prim is a reserved namespace"),
        (
            lambda: torch.library.define("x", "(Tensor x) -> Tensor"),
            ValueError,
            "Expected `qualname` to be of the form",
        ),
        (
            lambda: torch.library.impl("none::here", "cpu", lambda x: x),
            RuntimeError,
            "operator none::here does not exist",
        ),
    ],
)
def test_errors(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_mistakes_about_arguments() -> None:
    place = torch.device("cpu:0")

    def shifted(x: torch.Tensor, where: torch.device = place) -> torch.Tensor:
        return x.clone()

    with pytest.raises(ValueError, match="sequence of the names of the arguments that are mutated or the string"):
        torch.library.custom_op("test_mistakes::one", shifted, mutates_args="x")
    made = torch.library.custom_op("test_mistakes::two", shifted, mutates_args=())
    schema = made._opoverload._schema
    assert "Device where=cpu:0" in str(schema) and schema.arguments[1].default_value == torch.device("cpu:0")
    with torch.library._scoped_library("test_mistakes", "FRAGMENT") as lib:
        lib.define("three(Tensor x, *, Tensor y) -> Tensor")
        for register in (torch.library.register_autograd, torch.library.register_vmap):
            with pytest.raises(NotImplementedError, match=f"{register.__name__} with kwarg-only Tensor args"):
                register("test_mistakes::three", lambda *args: None)


def test_results_without_a_formula_have_a_node_that_warns(library: Any) -> None:
    library.define("sum(Tensor x, Tensor y) -> (Tensor, Tensor)")
    library.impl(
        "sum", lambda x, y: (torch.tensor(x.detach().numpy() + y.detach().numpy()), torch.ones(1).long()), "CPU"
    )
    x = torch.ones(2, requires_grad=True)
    found, number = torch.ops.tests_lib.sum(x, torch.ones(2))
    assert found.grad_fn.name() == "torch::autograd::WarnNotImplemented" and not number.requires_grad
    assert [f and f.name() for f, _ in found.grad_fn.next_functions] == ["torch::autograd::AccumulateGrad", None]
    with pytest.warns(UserWarning, match="tests_lib::sum: an autograd kernel was not registered"):
        found.sum().backward()
    assert x.grad is None
    torch._C._set_autograd_fallback_mode("nothing")
    try:
        assert not torch.ops.tests_lib.sum(x, x)[0].requires_grad
    finally:
        torch._C._set_autograd_fallback_mode("warn")
    with pytest.raises(RuntimeError, match="Unsupported AutogradFallbackMode: loud"):
        torch._C._set_autograd_fallback_mode("loud")


def test_writes_to_a_view_without_a_formula_warn_in_backward_of_the_base(library: Any) -> None:
    library.define("fill(Tensor(a!) x) -> Tensor(a!)")

    def fill(x: Any) -> Any:
        with torch.no_grad():
            return x.fill_(2.0)

    library.impl("fill", fill, "CPU")
    base = torch.ones(2, requires_grad=True) * 1
    torch.ops.tests_lib.fill(base[:1])
    with pytest.warns(UserWarning, match="tests_lib::fill: an autograd kernel was not registered"):
        base.sum().backward()
    plain = torch.ones(2)
    assert torch.ops.tests_lib.fill(plain) is plain and not plain.requires_grad


def test_schemas_and_places_that_are_none(library: Any) -> None:
    with pytest.raises(RuntimeError, match=r"unknown type specifier.*\nf\(Blob x\) -> \(\)\n  ~~~~ <--- HERE"):
        library.define("f(Blob x) -> ()")
    assert library.define("g(Tensor (a!) x, Tensor y) -> ()") == "g"
    assert str(torch.ops.tests_lib.g.default._schema) == "tests_lib::g(Tensor(a!) x, Tensor y) -> ()"
    with pytest.raises(ValueError, match=r'expected schema to look like e.g. "\(Tensor x\) -> Tensor" but got "Tensor'):
        torch.library.define("tests_lib::h", "Tensor x -> Tensor")
    with pytest.raises(RuntimeError, match=r"Expected one of cpu, .* device type at start of device string: moon"):
        torch.library.impl("tests_lib::g", "moon", lambda x, y: None)

    @torch.library.define(library, "twice(Tensor x) -> Tensor")
    def twice(x: Any) -> Any:
        return None if x is None else x * 2

    assert torch.ops.tests_lib.twice(torch.ones(1)) == 2 and torch.ops.tests_lib.twice(None) is None


def test_none_in_schemas(library: Any) -> None:
    for schema in ("nothing() -> None", "one(Tensor x, None y) -> (Tensor, None)"):
        library.define(schema)
    library.impl("nothing", lambda: None, "CompositeExplicitAutograd")
    library.impl("one", lambda x, y: (x * 2, None), "CompositeExplicitAutograd")
    ours = torch.ops.tests_lib
    assert str(ours.nothing.default._schema) == "tests_lib::nothing() -> NoneType" and ours.nothing() is None
    assert ours.one(torch.ones(1), None) == (torch.full((1,), 2.0), None)
    with pytest.raises(RuntimeError, match="Expected a value of type 'NoneType' for argument 'y' but instead found"):
        ours.one(torch.ones(1), 3)


@pytest.mark.parametrize("op", [torch.ops.aten.add, torch.ops.aten.add.Tensor], ids=["operation", "overload"])
def test_operators_are_copied_as_themselves(op: Any) -> None:
    assert copy.deepcopy(op) is op


def test_an_operator_that_needs_values_is_part_of_a_whole_graph(sine: Any) -> None:
    """Compilation does not look into an operator; a value that the program itself needs is still an error."""
    sine.register_fake(lambda x, k=2.0: torch.empty_like(x))
    sine.register_autograd(formula, setup_context=remember)
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    compiled = torch.compile(lambda x: sine(x) * 2, fullgraph=True)
    for factor in (1.0, 2.0, 3.0):
        y = x.detach() * factor
        assert compiled(y).tolist() == pytest.approx((np.sin(y.numpy()) * 4).tolist())
    compiled(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == pytest.approx((4 * np.cos(x.detach().numpy())).tolist())
    with pytest.raises(RuntimeError, match="cannot be one program"):
        torch.compile(lambda x: sine(x) if x.sum() > 0 else x, fullgraph=True)(torch.ones(2))


def test_opcheck_compiles_an_operator(sine: Any) -> None:
    sine.register_fake(lambda x, k=2.0: torch.empty_like(x))
    sine.register_autograd(formula, setup_context=remember)
    found = torch.library.opcheck(sine, (torch.tensor([0.1, 0.2], requires_grad=True), 3.0))
    assert list(found) == ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    assert set(found.values()) == {"SUCCESS"}
    calls: list[int] = []

    @torch.library.custom_op("tests::counted", mutates_args=())
    def counted(x: Tensor) -> Tensor:
        calls.append(1)
        return x + len(calls)

    found = torch.library.opcheck(
        counted, (torch.ones(1),), test_utils="test_aot_dispatch_static", raise_exception=False
    )
    assert "Tensor-likes are not" in found["test_aot_dispatch_static"]
