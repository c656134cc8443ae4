"""The two APIs in one function: tensors as operands of funcgrad's functions, and funcgrad's values in torch's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.errors import DerivativeLostError

F = torch.nn.functional
TENSOR, ARRAY = torch.tensor([1.0, 2.0, 3.0]), fnp.array([1.0, 2.0, 3.0])
MASK, PLACES = torch.tensor([True, False, True]), torch.tensor([0, 2])
KEY = fg.random.key(0)


def written(v: Any) -> Any:
    made = torch.zeros(3)
    made[0] = fnp.sum(fnp.multiply(v, v))
    made += fnp.multiply(v, v)
    return made.sum()


def squares(v: Any) -> Any:
    """A funcgrad array, whatever ``v`` is."""
    return fnp.multiply(v, v)


#: Functions of a tensor, or an array, of three elements.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda v: fnp.sum(fnp.sin(v) * v),
    "operators": lambda v: fnp.sum(TENSOR * v + v / ARRAY - squares(v) ** 2),
    "operators of arrays": lambda v: (ARRAY * v * TENSOR).sum(),
    "stack": lambda v: fnp.sum(fnp.stack([v, TENSOR, ARRAY * v]) ** 2),
    "array of a list": lambda v: fnp.sum(fnp.array([v, v]) ** 2),
    "where": lambda v: fnp.sum(fnp.where(MASK, squares(v), TENSOR)),
    "index": lambda v: fnp.sum(ARRAY[PLACES] * fnp.asarray(v)[PLACES]),
    "at": lambda v: fnp.sum(ARRAY.at[PLACES].set((v * v)[:2])),
    "lax": lambda v: fg.lax.dot(v, v),
    "special": lambda v: fnp.sum(fg.special.erf(v)),
    "scipy": lambda v: fnp.sum(fg.scipy.stats.norm.pdf(v)),
    "nn": lambda v: fg.nn.softmax(v)[0],
    "linalg": fg.linalg.norm,
    "fft": lambda v: fnp.sum(fnp.abs(fg.fft.fft(v))),
    "random": lambda v: fnp.sum(fg.random.normal(KEY, (3,)) * v * v),
    "cond": lambda v: fg.cond(v.sum() > 0, lambda u: fnp.sum(u * u), fnp.sum, v),
    "jit": fg.jit(lambda u: fnp.sum(u * u * TENSOR)),
    "checkpoint": fg.checkpoint(lambda u: torch.sum(squares(u))),
    "torch.sin": lambda v: torch.sin(squares(v)).sum(),
    "torch.stack": lambda v: torch.stack([squares(v), TENSOR]).sum(),
    "torch.einsum": lambda v: torch.einsum("i,i->", squares(v), TENSOR),
    "torch.clamp": lambda v: torch.clamp(squares(v), 0, 5).sum(),
    "torch.where": lambda v: torch.where(squares(v) < TENSOR, squares(v), TENSOR).sum(),
    "torch.linalg": lambda v: torch.linalg.norm(squares(v)),
    "F.softmax": lambda v: F.softmax(squares(v), dim=0)[0],
    "F.mse_loss": lambda v: F.mse_loss(squares(v), TENSOR),
    "methods": lambda v: TENSOR.add(squares(v)).dot(squares(v)),
    "matmul": lambda v: TENSOR @ squares(v) + squares(v) @ TENSOR,
    "power": lambda v: (TENSOR ** squares(v)).sum() + (2 ** torch.as_tensor(v)).sum(),
    "written": written,
    "index of a tensor": lambda v: TENSOR[fnp.array([0, 1])].sum() * fnp.sum(v),
    "asarray": lambda v: (torch.asarray(squares(v)) * torch.as_tensor(squares(v))).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_go_through_both(name: str) -> None:
    f, x = PROGRAMS[name], np.array([0.5, 1.5, 0.8], np.float32)
    t, direction = torch.from_numpy(x), np.array([1.0, -0.5, 0.25], np.float32)
    value, pullback = fg.vjp(f, t)
    found = np.asarray(pullback(value * 0 + 1)[0])
    step = np.float32(1e-2)
    above, below = (float(f(torch.from_numpy(x + s * direction))) for s in (step, -step))
    np.testing.assert_allclose(found @ direction, (above - below) / (2 * step), 2e-2, 2e-2)
    for same in (fg.grad(f)(t), fg.grad(f)(fnp.asarray(x)), fg.jit(fg.grad(f))(t)):
        np.testing.assert_allclose(np.asarray(same), found, 1e-4, 1e-5)
    tangent = fg.jvp(f, (t,), (torch.from_numpy(direction),))[1]
    np.testing.assert_allclose(np.asarray(tangent), found @ direction, 1e-4, 1e-5)
    (of_tensor,) = fg.hvp(f, (t,), (torch.from_numpy(direction),))
    (of_array,) = fg.hvp(f, (fnp.asarray(x),), (fnp.asarray(direction),))
    np.testing.assert_allclose(np.asarray(of_tensor), np.asarray(of_array), 1e-4, 1e-5)


def test_torch_func_goes_through_functions_of_funcgrad() -> None:
    x = torch.tensor([0.5, 1.5, 2.5])
    total = lambda v: torch.as_tensor(fnp.sum(fnp.sin(v) * v))
    wanted = fg.grad(total)(x)
    torch.testing.assert_close(torch.func.grad(total)(x), wanted)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(total))(torch.stack([x, x]))[1], wanted)
    torch.testing.assert_close(fg.grad(lambda v: (torch.func.grad(total)(v) ** 2).sum())(x), fg.grad(
        lambda v: (fg.grad(total)(v) ** 2).sum())(x))  # fmt: skip


def test_a_tensor_with_a_graph_is_refused_outside_of_transforms() -> None:
    x = torch.ones(3, requires_grad=True)
    for t in (x, x * 2):
        with pytest.raises(RuntimeError, match=r"requires grad.*detach"):
            fnp.sum(t)
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
            np.asarray(t)
    assert fnp.sum(x.detach()) == 3.0
    with torch.no_grad():
        assert fnp.sum(x) == 3.0
    with pytest.raises(TypeError, match="sparse"):
        fnp.sum(torch.eye(2).to_sparse())


#: Operations that would make a constant of a tensor.
WAYS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x * x.item(),
    "float": lambda x: x * float(x),
    "complex": lambda x: x * complex(x).real,
    "tolist": lambda x: x * x.tolist(),
    "numpy": lambda x: x * float(x.numpy()),
    "np.asarray": lambda x: x * float(np.asarray(x)),
    "np.float64": lambda x: x * float(np.float64(x)),
    "math.sin": lambda x: x * math.sin(x),
    "tensor of a list": lambda x: (x * torch.tensor([x])).sum(),
    "full": lambda x: (x * torch.full((2,), x)).sum(),
    "alpha": lambda x: torch.add(x, x, alpha=x),
    "no_grad": lambda x: x * torch.no_grad()(x.item)(),
    "tensor of a value": lambda x: x * torch.tensor(fnp.multiply(x, x)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_numbers_of_tensors_are_refused_in_transforms_of_funcgrad(way: str) -> None:
    x, f = torch.tensor(2.5), WAYS[way]
    for call in (
        lambda: fg.grad(f)(x),
        lambda: fg.vjp(f, x),
        lambda: fg.jvp(f, (x,), (torch.ones(()),)),
        lambda: fg.hessian(f)(x),
        lambda: fg.grad(lambda y: torch.func.vjp(f, y)[0])(x),
    ):
        # PyTorch's own errors differ for some of these in torch.func's transforms.
        with pytest.raises((DerivativeLostError, RuntimeError, TypeError), match=r"lost|numpy\(\)|must be Number"):
            call()
    with pytest.raises(DerivativeLostError, match=r"test_mixing\.py"):
        fg.grad(f)(x)
    if way == "math.sin":
        with pytest.raises(DerivativeLostError, match=r"torch\.sin, or x\.detach\(\)"):
            fg.grad(f)(x)


def test_numbers_beside_overriding_types() -> None:
    with torch.overrides.BaseTorchFunctionMode():
        test_other_numbers_of_tensors_stay()
        with pytest.raises(DerivativeLostError, match=r"math\.sin\(\.\.\.\) .*test_mixing\.py.*torch\.sin"):
            fg.grad(WAYS["math.sin"])(torch.tensor(2.5))


def test_other_numbers_of_tensors_stay() -> None:
    allowed = {
        "detach": (lambda x: x * x.detach().item(), 2.5),
        "int": (lambda x: x * int(x), 2.0),
        "bool": (lambda x: x * 3 if x > 1 else x, 3.0),
        "format": (lambda x: x * len(f"{x:.3f}" + "%.1f" % x + repr(x)[:1]), 9.0),  # noqa: UP031
        "another": (lambda x: x * TENSOR[1].item() * float(TENSOR[2]), 6.0),
        "force": (lambda x: x * float(x.numpy(force=True)), 2.5),
    }
    x = torch.tensor(2.5)
    for name, (f, wanted) in allowed.items():
        assert fg.grad(f)(x).item() == wanted, name
    # As in PyTorch.
    assert torch.func.grad(lambda x: x * x.item())(x).item() == 2.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert float(torch.tensor(2.5, requires_grad=True)) == 2.5
    assert torch.tensor(2.5, requires_grad=True).item() == 2.5
