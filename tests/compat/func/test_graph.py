"""The graph that a function sees inside ``grad`` and ``vjp``, compared with PyTorch."""

import pytest

import compat as torch
from compat.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap


def seen(of, x, transform=grad):
    """What a function can see of the results that it computes from its argument."""
    found = []

    def f(x):
        found.append(of(x))
        return (x * x).sum()

    transform(f)(x)
    return found[0]


def state(t):
    return t.requires_grad, t.is_leaf, type(t.grad_fn).__name__


def test_arguments_of_grad_require_grad():
    x = torch.ones(3)
    assert seen(state, x) == (True, True, "NoneType")
    assert seen(lambda x: state(x * 2), x) == (True, False, "MulBackward0")
    assert seen(lambda x: state(x.view(-1)), x) == (True, False, "ViewBackward0")
    assert seen(lambda x: state(x.detach()), x) == (False, True, "NoneType")
    assert seen(lambda x: state(torch.ones(3)), x) == (False, True, "NoneType")
    with torch.no_grad():
        assert seen(lambda x: state(x * 2), x) == (True, False, "MulBackward0")


def test_only_reverse_mode_has_requires_grad():
    x = torch.ones(2, 3)
    assert seen(state, x, lambda f: lambda x: jvp(f, (x,), (x,)))[0] is False
    assert seen(state, x, vmap)[0] is False
    assert seen(state, x, jacfwd)[0] is False
    assert seen(state, x, jacrev)[0] is True
    assert seen(state, x, lambda f: vmap(grad(f)))[0] is True
    assert seen(state, x, lambda f: grad(lambda x: vmap(f)(x).sum()))[0] is False


def test_nothing_is_recorded_under_no_grad():
    def of(x):
        with torch.no_grad():
            return (x * 2).requires_grad, vmap(torch.sin)(x).requires_grad

    assert seen(of, torch.ones(3)) == (False, False)


def test_results_of_transforms_within_require_grad():
    x = torch.ones(3)
    for inner in (vmap(torch.sin), grad(lambda v: v.sin().sum()), lambda v: jvp(torch.sin, (v,), (v,))[1]):
        required, leaf, name = seen(lambda x, inner=inner: state(inner(x)), x)
        assert (required, leaf) == (True, False)
        assert name.endswith("Backward0")


def test_nodes_can_be_inspected():
    def of(x):
        node = (x * 2).sin().grad_fn
        following = node.next_functions[0][0]
        return node.name(), following.name(), following.next_functions[0][0].name(), node._saved_self.detach().tolist()

    expected = ("SinBackward0", "MulBackward0", "torch::autograd::AccumulateGrad", [2.0, 2.0])
    assert seen(of, torch.ones(2)) == expected


def test_gradients_inside_grad():
    def f(x):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g.sum()

    assert grad(f)(torch.ones(3)).tolist() == [6.0] * 3
    assert vmap(grad(f))(torch.ones(2, 3)).tolist() == [[6.0] * 3] * 2


@pytest.mark.parametrize(
    "inner",
    [
        vmap(lambda v, u: v.sin() * u),
        lambda x, w: vmap(lambda v: v.sin() * w[1:].sum() + w[:2].t().sum())(x),
        lambda x, w: grad(lambda v: (v.sin() * w).sum())(x),
        lambda x, w: jvp(lambda v: v.sin() * w, (x,), (w,))[1],
        lambda x, w: vjp(lambda v: v.sin() * w, x)[1](w)[0],
    ],
)
def test_gradients_inside_grad_go_through_transforms_within(inner):
    def f(x, take):
        w = x.exp()
        z = (inner(x, w) * x).sum()
        g, h = take(z, x, w)
        return (g * g).sum() + h.sum()

    x = torch.linspace(0.1, 1, 3)

    def by_autograd(x):
        return f(x, lambda z, x, w: torch.autograd.grad(z, (x, w), create_graph=True))

    def outside(x):
        w = x.exp()
        on_x, on_w = grad(lambda x, w: (inner(x, w) * x).sum(), argnums=(0, 1))(x, w)
        through = on_w * w
        return ((on_x + through) ** 2).sum() + on_w.sum()

    torch.testing.assert_close(vjp(by_autograd, x)[0], outside(x))
    torch.testing.assert_close(grad(by_autograd)(x), grad(outside)(x))


def test_hooks_inside_grad():
    def f(x):
        x.register_hook(lambda g: g * 10)
        y = x * 2
        y.register_hook(lambda g: g * 3)
        y.register_hook(lambda g: g * 100).remove()
        return (y**2).sum()

    assert grad(f)(torch.ones(3)).tolist() == [240.0] * 3
    assert vmap(grad(f))(torch.ones(2, 3)).tolist() == [[240.0] * 3] * 2


def test_hooks_inside_nested_transforms():
    def g(x):
        y = x.sin()
        y.register_hook(lambda g: g * 2)
        return y.sum()

    found = grad(lambda x: grad(g)(x).sum())(torch.ones(2))
    torch.testing.assert_close(found, -2 * torch.ones(2).sin())


def test_hooks_on_one_of_several_results_and_in_another_memory_order():
    def f(x):
        variance, mean = torch.var_mean(x)
        variance.register_hook(lambda g: g * 2)
        mean.register_hook(lambda g: g * 3)
        return variance + mean

    assert grad(f)(torch.arange(3.0)).tolist() == [-1.0, 1.0, 3.0]

    def of_transposed(x):
        y = x.t() * 2
        assert y.stride() == (1, 3)
        y.register_hook(lambda g: g * torch.arange(6.0).view(3, 2))
        return (y * y).sum()

    assert grad(of_transposed)(torch.ones(2, 3)).tolist() == [[0.0, 16.0, 32.0], [8.0, 24.0, 40.0]]


def test_hooks_on_complex_numbers_get_gradients():
    got = []

    def f(x):
        y = x * (1 + 2j)
        y.register_hook(lambda g: (got.append(g.detach()), g * 1j)[1])
        return (y * (2 - 1j)).real.sum()

    found = grad(f)(torch.ones(1, dtype=torch.complex64))
    assert (got[0].item(), found.item()) == (2 + 1j, 3 + 4j)


def test_a_hook_on_a_view_is_refused():
    with pytest.raises(RuntimeError, match="a view of a tensor that is used elsewhere cannot have hooks"):
        grad(lambda x: (x.t().register_hook(lambda g: g), x.sum())[1])(torch.ones(2, 2))


def test_requires_grad_may_be_assigned_inside_grad():
    def f(x):
        made = torch.ones(3)
        made.requires_grad = True
        assert made.requires_grad
        x.requires_grad = False
        return (x * x).sum()

    assert grad(f)(torch.ones(3)).tolist() == [0.0] * 3


def test_in_place_writes_inside_grad_stay_in_the_graph():
    def f(x):
        y = vmap(torch.sin)(x)
        y.mul_(x)
        y[0] = 3.0
        assert y.requires_grad
        assert not y.is_leaf
        return y.sum()

    x = torch.arange(3.0)
    expected = x.cos() * x + x.sin()
    expected[0] = 0
    torch.testing.assert_close(grad(f)(x), expected)


def test_modules_hooks_on_gradients():
    model = torch.nn.Linear(2, 2)
    parameters = dict(model.named_parameters())
    plain = grad(lambda p: functional_call(model, p, (torch.ones(2),)).sum())(parameters)

    def f(p):
        y = functional_call(model, p, (torch.ones(2),))
        y.register_hook(lambda g: g * 2)
        return y.sum()

    torch.testing.assert_close(grad(f)(parameters)["weight"], plain["weight"] * 2)


def test_results_of_custom_functions_name_these():
    class Double(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert not output.requires_grad

        @staticmethod
        def backward(ctx, g):
            return g * 2

    found = seen(lambda x: state(Double.apply(x)), torch.ones(2))
    assert found == (True, False, "DoubleGeneratedBackward")


def test_forward_mode_jacobians_inside_vmap():
    def f(x):
        return torch.autograd.functional.jacobian(lambda x: x.sin().sum(), x, strategy="forward-mode", vectorize=True)

    x = torch.randn(5, 3)
    torch.testing.assert_close(vmap(f)(x), x.cos())
    assert f(torch.zeros(3)).tolist() == [1.0] * 3


def test_arguments_of_vmap_and_jvp_have_no_nodes():
    captured = torch.ones(3, requires_grad=True)
    x = torch.ones(2, 3)
    assert seen(lambda x: state(x * captured), x, vmap) == (False, True, "NoneType")
    assert seen(lambda x: state(x * captured), x, lambda f: lambda x: jvp(f, (x,), (x,))) == (False, True, "NoneType")
    assert seen(lambda x: state(x * captured), x) == (True, False, "MulBackward0")
    vmap(lambda x: x * captured)(x).sum().backward()
    assert captured.grad.tolist() == [2.0] * 3
