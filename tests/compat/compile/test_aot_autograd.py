"""functorch.compile: functions compiled by compilers of their forward and backward graph of aten operators."""

import pytest

import compat as torch
import compat.nn.functional as F
from compat import nn
from compat._dynamo.backends.common import aot_autograd
from compat.func._functorch import compile as functorch_compile
from compat.func._functorch.compile import aot_function, make_boxed_func
from compat.fx.experimental.proxy_tensor import make_fx
from tests.compat.compile.aot_cases import CASES


class Recording:
    """A compiler that keeps the graphs and runs them unchanged."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, inputs):
        self.graphs.append(module)
        self.inputs = inputs
        return make_boxed_func(module.forward)

    def operators(self, which=-1):
        return [str(n.target) for n in self.graphs[which].graph.nodes if n.op == "call_function"]

    def inputs_of(self, which=-1):
        return [n.name for n in self.graphs[which].graph.nodes if n.op == "placeholder"]


def leaves(*shapes):
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


def gradients(f, inputs):
    torch.manual_seed(1)
    found = f(*inputs)
    several = found if isinstance(found, tuple) else (found,)
    wanted = [t for t in inputs if t.requires_grad]
    total = sum((t * torch.arange(1, t.numel() + 1).reshape(t.shape)).sum() for t in several if t.requires_grad)
    return several, torch.autograd.grad(total, wanted)


# ---------------------------------------------------------------- the tutorial's program


def cos_of_cos(a, b, c, d):
    return (a + b + c + d).cos().cos()


def test_tutorial_both_compilers_get_their_graph():
    forward, backward = Recording(), Recording()
    inputs = leaves(*[(2, 4)] * 4)
    compiled = aot_function(cos_of_cos, fw_compiler=forward, bw_compiler=backward)
    result = compiled(*inputs)
    assert forward.operators() == ["aten.add.Tensor"] * 3 + ["aten.cos.default"] * 2
    assert forward.inputs_of() == ["primals_1", "primals_2", "primals_3", "primals_4"]
    assert type(result.grad_fn).__name__ == "CompiledFunctionBackward"
    assert backward.graphs == []  # compiled when it is needed
    result.sum().backward()
    assert backward.inputs_of() == ["add_2", "cos", "tangents_1"]
    assert sorted(backward.operators()) == sorted(["aten.sin.default", "aten.neg.default", "aten.mul.Tensor"] * 2)
    assert [tuple(t.shape) for t in backward.inputs] == [(2, 4)] * 3
    expected = gradients(cos_of_cos, inputs)[1]
    grads = [t.grad for t in inputs]
    for t in inputs:
        t.grad = None
    cos_of_cos(*inputs).sum().backward()
    assert all(torch.allclose(g, t.grad) for g, t in zip(grads, inputs))
    assert len(expected) == 4


def test_tutorial_min_cut_saves_one_value():
    forward, backward = Recording(), Recording()
    inputs = leaves(*[(2, 4)] * 4)
    cut = functorch_compile.min_cut_rematerialization_partition
    aot_function(cos_of_cos, forward, backward, partition_fn=cut)(*inputs).sum().backward()
    assert backward.inputs_of() == ["add_2", "tangents_1"]
    assert "aten.cos.default" in backward.operators()
    assert len(next(n for n in forward.graphs[0].graph.nodes if n.op == "output").args[0]) == 2


def test_min_cut_computes_constants_again():
    backward = Recording()
    (x,) = leaves((3, 4))
    cut = functorch_compile.min_cut_rematerialization_partition
    gather = aot_function(lambda x: x.gather(0, torch.tensor([[0, 1, 0, 2]])), Recording(), backward, partition_fn=cut)
    gather(x).sum().backward()
    assert backward.inputs_of() == ["tangents_1"]


@pytest.mark.parametrize("partition", ["default_partition", "min_cut_rematerialization_partition"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, partition):
    torch.manual_seed(0)
    function, inputs = CASES[name]()
    forward = Recording()
    compiled = aot_function(function, forward, partition_fn=getattr(functorch_compile, partition))
    expected, got = gradients(function, inputs), gradients(compiled, inputs)
    for a, b in zip((*expected[0], *expected[1]), (*got[0], *got[1])):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5, equal_nan=True)
    again = gradients(compiled, inputs)
    for a, b in zip(got[1], again[1]):
        torch.testing.assert_close(a, b, equal_nan=True)
    assert len(forward.graphs) == 2  # nothing is compiled twice
    for which in (0, 1):
        assert all(o.startswith("aten.") or "getitem" in o for o in forward.operators(which)), forward.operators(which)


# ---------------------------------------------------------------- calls


def test_no_gradient_one_graph():
    forward, backward, inference = Recording(), Recording(), Recording()
    compiled = aot_function(cos_of_cos, forward, backward, inference_compiler=inference)
    inputs = leaves(*[(2,)] * 4)
    with torch.no_grad():
        result = compiled(*inputs)
    assert not result.requires_grad and torch.allclose(result, cos_of_cos(*inputs))
    assert inference.inputs_of() == ["arg0_1", "arg1_1", "arg2_1", "arg3_1"]
    assert forward.graphs == backward.graphs == []


def test_structures_numbers_and_repeated_tensors():
    (x, y) = leaves((2,), (2,))

    def f(both, scale, *, flag):
        return {"a": both[0] * scale, "b": (both[1] + both[0], scale, flag), "arg": both[0]}

    found = aot_function(f, functorch_compile.nop)([x, x], 3, flag="yes")
    assert torch.equal(found["a"], x * 3) and found["b"][1:] == (3, "yes") and found["arg"] is x
    (found["a"].sum() + found["b"][0].sum()).backward()
    assert torch.equal(x.grad, torch.full((2,), 5.0))
    assert y.grad is None


def test_results_without_gradient():
    (x,) = leaves((4,))
    order, values = aot_function(lambda x: (x.argsort(), x * 2), functorch_compile.nop)(x)
    assert not order.requires_grad and torch.equal(order, x.argsort())
    values.sum().backward()
    assert torch.equal(x.grad, torch.full((4,), 2.0))


def test_unused_argument_has_no_gradient():
    x, y = leaves((2,), (2,))
    aot_function(lambda x, y: x * 2, functorch_compile.nop)(x, y).sum().backward()
    assert y.grad is None


def test_new_kinds_of_arguments_are_compiled_again():
    forward = Recording()
    compiled = aot_function(lambda x: x * 2, forward)
    for shape in [(2,), (3,), (2,)]:
        (x,) = leaves(shape)
        assert torch.equal(compiled(x), x * 2)
    assert len(forward.graphs) == 2


def test_write_to_an_argument():
    (x,) = leaves((3,))
    y = torch.ones(3)

    def f(x, y):
        y.add_(1)
        return x * y

    compiled = aot_function(f, functorch_compile.nop)
    compiled(x, y).sum().backward()
    assert y.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 2, 2]


def test_random_numbers_are_drawn_by_the_graph_only():
    (x,) = leaves((50,))
    compiled = aot_function(lambda x: F.dropout(x, 0.5), functorch_compile.nop)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(3)
    assert torch.equal(first, F.dropout(x, 0.5)) and torch.equal(second, F.dropout(x, 0.5))


def test_expanded_gradient():
    (x,) = leaves((2, 3))
    result = aot_function(lambda x: x.reshape(3, 2).t().reshape(6), functorch_compile.nop)(x)
    result.backward(torch.ones(1).expand(6))
    assert torch.equal(x.grad, torch.ones(2, 3))


def test_view_of_an_argument():
    (x,) = leaves((2, 3))
    aot_function(lambda x: x.view(6), functorch_compile.nop)(x)[2].backward()
    assert x.grad.flatten().tolist() == [0, 0, 1, 0, 0, 0]


def test_autograd_function_and_hook():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 7

    (x,) = leaves((2,))
    aot_function(lambda x: Twice.apply(x.sin()), functorch_compile.nop)(x).sum().backward()
    torch.testing.assert_close(x.grad, 7 * x.detach().cos())


def test_decompositions():
    forward = Recording()
    table = {torch.ops.aten.sigmoid.default: lambda x: 1 / (1 + torch.exp(-x))}
    (x,) = leaves((3,))
    result = aot_function(torch.sigmoid, forward, decompositions=table)(x)
    assert "aten.exp.default" in forward.operators(0) and "aten.sigmoid.default" not in forward.operators(0)
    torch.testing.assert_close(result, torch.sigmoid(x))


# ---------------------------------------------------------------- errors


def test_second_derivative_raises():
    (x,) = leaves((2,))
    result = aot_function(lambda x: x.sin(), functorch_compile.nop)(x).sum()
    (grad,) = torch.autograd.grad(result, x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        grad.sum().backward()


def test_derivative_without_operators_stays_one_node():
    def f(x):
        return torch.linalg.cholesky(x @ x.T + 3 * torch.eye(3))

    x, y = leaves((3, 3), (3, 3))
    with torch.no_grad():
        y.copy_(x)
    backward = Recording()
    aot_function(f, functorch_compile.nop, backward)(x).sum().backward()
    f(y).sum().backward()
    assert any("linalg_cholesky_ex_backward" in name for name in backward.operators(0))
    torch.testing.assert_close(x.grad, y.grad)


def test_tensor_from_outside_that_requires_grad():
    x, w = leaves((2,), (2,))
    with pytest.raises(RuntimeError, match="requires grad"):
        aot_function(lambda x: x * w, functorch_compile.nop)(x)


# ---------------------------------------------------------------- modules and torch.compile


def model():
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)]
    return nn.Sequential(*layers)


def train(run, parameters, state):
    torch.manual_seed(1)
    losses = []
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for _ in range(4):
        loss = F.cross_entropy(run(torch.randn(6, 1, 8, 8)), torch.arange(6) % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [t.clone() for t in state.buffers()]


def test_aot_module_trains():
    plain, other = model(), model()
    forward = Recording()
    compiled = functorch_compile.aot_module(other, forward)
    expected, got = train(plain, plain.parameters(), plain), train(compiled, compiled.parameters(), other)
    assert got[0] == pytest.approx(expected[0], rel=1e-4)
    for a, b in zip(expected[1], got[1]):
        torch.testing.assert_close(b, a)
    assert len(forward.graphs) == 2
    assert next(iter(compiled.state_dict())) == "orig_module.0.weight"


def test_aot_module_simplified():
    m = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    forward = Recording()
    run = functorch_compile.aot_module_simplified(m, (x,), forward)
    torch.testing.assert_close(run(x), m(x))
    run(x).sum().backward()
    torch.testing.assert_close(m.weight.grad, x.sum(0).expand(2, 3))
    assert "aten.addmm.default" in forward.operators(0)


def test_backend_from_aot_autograd():
    forward, backward = Recording(), Recording()
    plain, other = model(), model()
    compiled = torch.compile(other, backend=aot_autograd(fw_compiler=forward, bw_compiler=backward))
    expected, got = train(plain, plain.parameters(), plain), train(compiled, other.parameters(), other)
    assert got[0] == pytest.approx(expected[0], rel=1e-4)
    for a, b in zip(expected[1], got[1]):
        torch.testing.assert_close(b, a)
    assert len(forward.graphs) == len(backward.graphs) == 1
    assert "aten.convolution.default" in forward.operators()
    assert backward.inputs_of()[-1].startswith("tangents_")


def test_memory_efficient_fusion():
    (x,) = leaves((3, 4))
    compiled = functorch_compile.memory_efficient_fusion(lambda x: F.gelu(x.sin()) * 2)
    expected, got = gradients(lambda x: F.gelu(x.sin()) * 2, [x]), gradients(compiled, [x])
    torch.testing.assert_close(got[0][0], expected[0][0])
    torch.testing.assert_close(got[1][0], expected[1][0])


def test_make_fx_of_a_gradient():
    def f(x, w):
        return torch.autograd.grad(F.layer_norm(x @ w, (3,)).square().sum(), (x, w))

    inputs = leaves((4, 2), (2, 3))
    graph = make_fx(f)(*inputs)
    assert "_backward" not in graph.code and "torch.ops.aten.mm.default" in graph.code
    others = leaves((4, 2), (2, 3))
    for a, b in zip(f(*others), graph(*others)):
        torch.testing.assert_close(a, b)
