"""Saved attributes of nodes: the layers and operations of networks, their nodes, saved attributes and edges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import compat as torch
from compat import Tensor, nn
from compat.nn import functional as F

CONVOLUTION = "bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight"
LEAF = "AccumulateGrad"


def randn(*size: int) -> Tensor:
    return torch.randn(*size, requires_grad=True)


def saved(out: Tensor) -> str:
    """The names after ``_saved_`` in ``dir`` of a node, in order."""
    return " ".join(name.removeprefix("_saved_") for name in dir(out.grad_fn) if name.startswith("_saved_"))


def edges(out: Tensor) -> list[str | None]:
    """The types of the next nodes."""
    return [type(node).__name__ if node is not None else None for node, _ in out.grad_fn.next_functions]


def same_leaf(f: Callable[[Tensor], Tensor], *size: int) -> Callable[[], Tensor]:
    return lambda: f(randn(*size))


IMAGE = (1, 3, 4, 4)
LAYERS: dict[str, tuple[Callable[[], Tensor], str, str, list[str | None]]] = {
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, 1, 1)(torch.randn(1, 3, 4)), "Convolution", CONVOLUTION, [None, LEAF, LEAF]),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, 1, 1)(torch.randn(IMAGE)), "Convolution", CONVOLUTION, [None, LEAF, LEAF]),
    "Conv3d": (
        lambda: nn.Conv3d(3, 4, 3, 1, 1)(torch.randn(1, 3, 4, 4, 4)),
        "Convolution",
        CONVOLUTION,
        [None, LEAF, LEAF],
    ),
    "groups": (
        lambda: nn.Conv2d(3, 3, 3, 1, 1, groups=3)(torch.randn(IMAGE)),
        "Convolution",
        CONVOLUTION,
        [None, LEAF, LEAF],
    ),
    "dilation": (
        lambda: nn.Conv2d(3, 4, 3, 1, 1, dilation=2)(torch.randn(IMAGE)),
        "Convolution",
        CONVOLUTION,
        [None, LEAF, LEAF],
    ),
    "Linear": (
        lambda: nn.Linear(3, 4)(randn(1, 3)),
        "Addmm",
        "alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides",
        [LEAF, LEAF, "TBackward0"],
    ),
    "Linear, four dimensions": (
        lambda: nn.Linear(3, 4)(randn(1, 4, 4, 3)),
        "View",
        "self_sym_sizes",
        ["AddmmBackward0"],
    ),
    "BatchNorm2d": (
        lambda: nn.BatchNorm2d(3)(torch.randn(IMAGE)),
        "NativeBatchNorm",
        "eps input result1 result2 running_mean running_var training weight",
        [None, LEAF, LEAF],
    ),
    "LayerNorm": (
        lambda: nn.LayerNorm([3, 4, 4])(torch.randn(IMAGE)),
        "NativeLayerNorm",
        "bias input normalized_shape result1 result2 weight",
        [None, LEAF, LEAF],
    ),
    "GroupNorm": (
        lambda: nn.GroupNorm(3, 3)(torch.randn(IMAGE)),
        "NativeGroupNorm",
        "C HxW N eps group input result1 result2 weight",
        [None, LEAF, LEAF],
    ),
    "AdaptiveAvgPool2d": (
        same_leaf(nn.AdaptiveAvgPool2d((1, 1)), *IMAGE),
        "Mean",
        "dim keepdim self_sym_numel self_sym_sizes",
        [LEAF],
    ),
    "MaxPool2d": (
        same_leaf(nn.MaxPool2d((2, 2)), *IMAGE),
        "MaxPool2DWithIndices",
        "ceil_mode dilation kernel_size padding result1 self stride",
        [LEAF],
    ),
    "AvgPool2d": (
        same_leaf(nn.AvgPool2d((2, 2)), *IMAGE),
        "AvgPool2D",
        "ceil_mode count_include_pad divisor_override kernel_size padding self stride",
        [LEAF],
    ),
    "Flatten": (same_leaf(nn.Flatten(), *IMAGE), "View", "self_sym_sizes", [LEAF]),
}


def pair(
    f: Callable[[Tensor, Tensor], Tensor], first: tuple[int, ...], second: tuple[int, ...]
) -> Callable[[], Tensor]:
    return lambda: f(nn.Parameter(torch.randn(first)), nn.Parameter(torch.randn(second)))


NLL = "ignore_index reduction self target total_weight weight"
UPSAMPLED = "output_size scales_h scales_w self_sym_sizes"
OPERATIONS: dict[str, tuple[Callable[[], Tensor], str, str, list[str | None]]] = {
    "add": (pair(lambda a, b: a + b, IMAGE, IMAGE), "Add", "alpha", [LEAF, LEAF]),
    "sub": (pair(lambda a, b: a - b, IMAGE, IMAGE), "Sub", "alpha", [LEAF, LEAF]),
    "mul": (pair(lambda a, b: a * b, IMAGE, IMAGE), "Mul", "other self", [LEAF, LEAF]),
    "div": (pair(lambda a, b: a / b, IMAGE, IMAGE), "Div", "other self", [LEAF, LEAF]),
    "pow": (same_leaf(lambda a: a**2, *IMAGE), "Pow", "exponent self", [LEAF]),
    "matmul": (pair(torch.matmul, IMAGE, IMAGE), "UnsafeView", "self_sym_sizes", ["BmmBackward0"]),
    "bmm": (pair(torch.matmul, IMAGE, (1, 3, 4, 5)), "UnsafeView", "self_sym_sizes", ["BmmBackward0"]),
    "mm": (
        pair(torch.matmul, (4, 4), (4, 5)),
        "Mm",
        "mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides",
        [LEAF, LEAF],
    ),
    "cat": (pair(lambda a, b: torch.cat([a, b], dim=1), (1, 4, 4, 4), (1, 6, 4, 4)), "Cat", "dim", [LEAF, LEAF]),
    "chunk": (
        same_leaf(lambda a: torch.chunk(a, 2, dim=1)[0], 1, 4, 4, 4),
        "Split",
        "dim self_sym_sizes split_size",
        [LEAF],
    ),
    "split": (
        same_leaf(lambda a: a.split([1, 3], dim=1)[0], 1, 4, 4, 4),
        "SplitWithSizes",
        "dim self_sym_sizes split_sizes",
        [LEAF],
    ),
    "unbind": (same_leaf(lambda a: a.unbind(1)[0], 1, 4, 4, 4), "Unbind", "dim", [LEAF]),
    "reshape": (same_leaf(lambda a: a.reshape(1, 3, 16), *IMAGE), "View", "self_sym_sizes", [LEAF]),
    "view": (same_leaf(lambda a: a.view(1, 3, 16), *IMAGE), "View", "self_sym_sizes", [LEAF]),
    "view, one size left open": (same_leaf(lambda a: a.view(1, -1, 16), *IMAGE), "View", "self_sym_sizes", [LEAF]),
    "clone": (same_leaf(lambda a: a.clone(), *IMAGE), "Clone", "", [LEAF]),
    "permute": (same_leaf(lambda a: a.permute(0, 2, 1, 3), 1, 2, 3, 4), "Permute", "dims", [LEAF]),
    "squeeze": (same_leaf(lambda a: a.squeeze(), 1, 2, 3, 4), "Squeeze", "self_sym_sizes", [LEAF]),
    "unsqueeze": (same_leaf(lambda a: a.unsqueeze(0), 1, 2, 3, 4), "Unsqueeze", "dim", [LEAF]),
    "transpose": (same_leaf(lambda a: a.transpose(0, 1), 1, 2, 3, 4), "Transpose", "dim0 dim1", [LEAF]),
    "slice": (
        same_leaf(lambda a: a[:, :, :8, :], 1, 3, 10, 32),
        "Slice",
        "dim end self_sym_sizes start step",
        [LEAF],
    ),
    "slice of everything": (same_leaf(lambda a: a[:, :16, :, :], 1, 3, 10, 32), "Alias", "", [LEAF]),
    "expand": (same_leaf(lambda a: a.expand(1, 3, 4, 4), 1, 3, 1, 1), "Expand", "self_sym_sizes", [LEAF]),
    "relu": (same_leaf(torch.relu, *IMAGE), "Relu", "result", [LEAF]),
    "silu": (same_leaf(F.silu, *IMAGE), "Silu", "self", [LEAF]),
    "gelu": (same_leaf(F.gelu, *IMAGE), "Gelu", "approximate self", [LEAF]),
    "hardswish": (same_leaf(F.hardswish, *IMAGE), "Hardswish", "self", [LEAF]),
    "sigmoid": (same_leaf(torch.sigmoid, *IMAGE), "Sigmoid", "result", [LEAF]),
    "tanh": (same_leaf(torch.tanh, *IMAGE), "Tanh", "result", [LEAF]),
    "softmax": (same_leaf(lambda a: torch.softmax(a, dim=1), *IMAGE), "Softmax", "dim result", [LEAF]),
    "log_softmax": (same_leaf(lambda a: torch.log_softmax(a, dim=1), *IMAGE), "LogSoftmax", "dim result", [LEAF]),
    "exp": (same_leaf(torch.exp, 3, 4), "Exp", "result", [LEAF]),
    "log": (same_leaf(torch.log, 3, 4), "Log", "self", [LEAF]),
    "sum": (same_leaf(torch.sum, 3, 4), "Sum", "self_sym_sizes", [LEAF]),
    "glu": (same_leaf(F.glu, 3, 4), "Glu", "dim self", [LEAF]),
    "nll_loss": (same_leaf(lambda a: F.nll_loss(a, torch.tensor([2, 0, 1])), 3, 4), "NllLoss", NLL, [LEAF]),
    "cross_entropy": (
        same_leaf(lambda a: F.cross_entropy(a, torch.tensor([2, 0, 1])), 3, 4),
        "NllLoss",
        NLL,
        ["LogSoftmaxBackward0"],
    ),
    "unfold": (
        same_leaf(lambda a: F.unfold(a, 2), *IMAGE),
        "Im2Col",
        "dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride",
        [LEAF],
    ),
    "fold": (same_leaf(lambda a: F.fold(a, 4, 2), 1, 12, 9), "Col2Im", "dilation kernel_size padding stride", [LEAF]),
    "bilinear": (
        same_leaf(lambda a: F.interpolate(a, scale_factor=2, mode="bilinear", align_corners=True), *IMAGE),
        "UpsampleBilinear2D",
        f"align_corners {UPSAMPLED}",
        [LEAF],
    ),
    "nearest": (
        same_leaf(lambda a: F.interpolate(a, scale_factor=2, mode="nearest"), *IMAGE),
        "UpsampleNearest2D",
        UPSAMPLED,
        [LEAF],
    ),
    "bicubic": (
        same_leaf(lambda a: F.interpolate(a, scale_factor=2, mode="bicubic", align_corners=True), *IMAGE),
        "UpsampleBicubic2D",
        f"align_corners {UPSAMPLED}",
        [LEAF],
    ),
}


@pytest.mark.parametrize(("run", "name", "shown", "leads_to"), (LAYERS | OPERATIONS).values(), ids=LAYERS | OPERATIONS)
def test_node(run: Callable[[], Tensor], name: str, shown: str, leads_to: list[str | None]) -> None:
    out = run()
    # the mean over given dimensions is the second of two operations of that name
    expected = f"{name}Backward{int(name == 'Mean')}"
    assert out.grad_fn.name() == type(out.grad_fn).__name__ == expected
    assert repr(out.grad_fn).startswith(f"<{expected} object at 0x")
    assert saved(out) == shown
    assert edges(out) == leads_to
    assert all(number == 0 for _, number in out.grad_fn.next_functions)


def test_values_of_a_convolution() -> None:
    x, conv = torch.randn(IMAGE), nn.Conv2d(3, 4, 3, 1, 1, dilation=2)
    node = conv(x).grad_fn
    assert node._saved_input is x and node._saved_weight is conv.weight
    assert (node._saved_stride, node._saved_padding, node._saved_dilation) == ((1, 1), (1, 1), (2, 2))
    assert (node._saved_groups, node._saved_bias_sym_sizes_opt, node._saved_transposed) == (1, (4,), False)
    assert [edge[0].variable for edge in node.next_functions[1:]] == [conv.weight, conv.bias]


def test_values_of_a_linear_layer() -> None:
    x, fc = randn(1, 3), nn.Linear(3, 4)
    node = fc(x).grad_fn
    assert (node._saved_alpha, node._saved_beta) == (1, 1)
    assert node._saved_mat1 is x and torch.equal(node._saved_mat2, fc.weight.t())
    assert (node._saved_mat1_sym_sizes, node._saved_mat2_sym_sizes) == ((1, 3), (3, 4))
    assert [n.variable for n, _ in node.next_functions[:2]] == [fc.bias, x]
    assert node.next_functions[2][0].next_functions[0][0].variable is fc.weight


def test_values_of_normalizations() -> None:
    x = torch.randn(2, 3, 4, 4)
    batch = nn.BatchNorm2d(3)(x).grad_fn
    torch_mean, torch_std = x.mean((0, 2, 3)), (x.var((0, 2, 3), unbiased=False) + 1e-5).rsqrt()
    assert torch.allclose(batch._saved_result1, torch_mean, atol=1e-6)
    assert torch.allclose(batch._saved_result2, torch_std, rtol=1e-5)
    assert (batch._saved_training, batch._saved_eps) == (True, 1e-5)
    group = nn.GroupNorm(3, 3)(x).grad_fn
    assert (group._saved_N, group._saved_C, group._saved_HxW, group._saved_group) == (2, 3, 16, 3)
    assert nn.LayerNorm([3, 4, 4])(x).grad_fn._saved_normalized_shape == (3, 4, 4)


def test_saved_tensors_are_the_tensors_themselves() -> None:
    a = randn(*IMAGE)
    for f in (F.silu, F.gelu, F.hardswish):
        assert f(a).grad_fn._saved_self is a
    for f in (torch.sigmoid, torch.tanh):
        assert f(a).grad_fn._saved_result.shape == a.shape
    assert F.gelu(a).grad_fn._saved_approximate == "none"
    result = torch.relu(a)
    assert result.grad_fn._saved_result.data_ptr() == result.data_ptr()
    assert result.grad_fn._saved_result.shape == a.shape


def test_values_of_views_and_joins() -> None:
    a = randn(1, 4, 4, 4)
    pieces = torch.chunk(a, 2, dim=1)
    node = pieces[0].grad_fn
    assert node is not None and [p.output_nr for p in pieces] == [0, 1]
    assert (node._saved_dim, node._saved_split_size, node._saved_self_sym_sizes) == (1, 2, (1, 4, 4, 4))
    assert torch.cat([a, a], dim=1).grad_fn._saved_dim == 1
    cut = a[:, 1:3].grad_fn
    assert (cut._saved_dim, cut._saved_start, cut._saved_end, cut._saved_step) == (1, 1, 3, 1)
    assert a.permute(0, 2, 1, 3).grad_fn._saved_dims == (0, 2, 1, 3)
    assert a.view(1, -1, 16).grad_fn._saved_self_sym_sizes == (1, 4, 4, 4)


def test_values_of_pools_and_upsampling() -> None:
    a = randn(*IMAGE)
    pooled = nn.MaxPool2d((2, 2))(a)
    node = pooled.grad_fn
    assert pooled.shape == (1, 3, 2, 2) and node._saved_self is a
    assert (node._saved_kernel_size, node._saved_stride, node._saved_padding) == ((2, 2), (2, 2), (0, 0))
    flat = a.flatten(2)
    assert torch.equal(flat.gather(2, node._saved_result1.flatten(2)).view_as(pooled), pooled)
    mean = nn.AdaptiveAvgPool2d((1, 1))(a)
    assert (
        mean.shape == (1, 3, 1, 1) and mean.grad_fn._saved_keepdim is True and mean.grad_fn._saved_self_sym_numel == 48
    )
    large = F.interpolate(a, scale_factor=2, mode="nearest")
    assert large.shape == (1, 3, 8, 8)
    assert (large.grad_fn._saved_scales_h, large.grad_fn._saved_self_sym_sizes) == (2.0, IMAGE)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: torch.linalg.slogdet(a)[1],
        lambda a: torch.linalg.solve(a, a),
        lambda a: F.nll_loss(a, torch.tensor([2, 0, 1])),
        lambda a: a.max(0)[0],
        lambda a: a.sort()[0],
    ],
    ids=["slogdet", "solve", "nll_loss", "max", "sort"],
)
def test_nodes_expect_gradients_of_differentiable_results(f: Callable[[Tensor], Tensor]) -> None:
    a = randn(3, 3)
    out = f(a)
    expected = [tuple(m.shape) for m in out.grad_fn._input_metadata]
    assert expected in ([tuple(out.shape)], [(), ()]), "and of the sign of a determinant, which has none but zero"
    grads = [torch.ones(size) for size in expected]
    (by_backward,) = torch.autograd.grad(out, a, torch.ones_like(out), retain_graph=True)
    called = out.grad_fn(*grads)
    by_call = called[0] + called[1] if isinstance(called, tuple) else called
    assert torch.allclose(by_call, by_backward, atol=1e-4)
