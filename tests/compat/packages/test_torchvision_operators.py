"""torchvision's operators, compared with NumPy, and the stub of its compiled library."""

from __future__ import annotations

import importlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import compat as torch
from compat._libraries import load, loaded

importlib.import_module("compat._libraries.torchvision")
vision = torch.ops.torchvision


def iou(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    area = lambda box: np.prod(box[2:] - box[:2])
    return float(shared / (area(a) + area(b) - shared))


def test_nms_keeps_the_highest_scores() -> None:
    rng = np.random.default_rng(0)
    corner, size, scores = rng.uniform(0, 20, (60, 2)), rng.uniform(3, 12, (60, 2)), rng.uniform(0, 1, 60)
    boxes = np.concatenate([corner, corner + size], 1)
    kept: list[int] = []
    for n in np.argsort(-scores):
        if all(iou(boxes[n], boxes[k]) <= 0.4 for k in kept):
            kept.append(n)
    found = vision.nms(torch.tensor(boxes), torch.tensor(scores), 0.4)
    assert found.tolist() == kept and found.dtype == torch.int64
    with pytest.raises(RuntimeError, match="boxes should have 4 elements in dimension 1, got 5"):
        vision.nms(torch.ones(2, 5), torch.ones(2), 0.5)


def sampled(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The image (channels, rows, columns) at a point, as ``roi_align`` interpolates it."""
    _, h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    return (
        image[:, y0, x0] * (1 - fy) * (1 - fx) + image[:, y0, x1] * (1 - fy) * fx
        + image[:, y1, x0] * fy * (1 - fx) + image[:, y1, x1] * fy * fx
    )  # fmt: skip


def aligned_average(
    image: np.ndarray, roi: np.ndarray, scale: float, bins: int, ratio: int, aligned: bool
) -> np.ndarray:
    x1, y1, x2, y2 = roi[1:] * scale - 0.5 * aligned
    w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
    gh, gw = (ratio, ratio) if ratio > 0 else (int(np.ceil(h / bins)), int(np.ceil(w / bins)))
    out = np.zeros((image.shape[1], bins, bins))
    for p, q in product(range(bins), range(bins)):
        for i, j in product(range(gh), range(gw)):
            y, x = y1 + (p + (i + 0.5) / gh) * h / bins, x1 + (q + (j + 0.5) / gw) * w / bins
            out[:, p, q] += sampled(image[int(roi[0])], y, x) / max(gh * gw, 1)
    return out


IMAGE = np.random.default_rng(1).standard_normal((2, 8, 9, 11))
ROIS = np.array([[0, 1.2, 0.7, 9.5, 8.1], [1, -3.0, 2.0, 4.4, 12.0], [1, 6.3, 6.6, 6.9, 7.0], [0, 0, 0, 22, 18.0]])


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_averages(ratio: int, aligned: bool) -> None:
    found = vision.roi_align(torch.tensor(IMAGE), torch.tensor(ROIS), 0.5, 2, 2, ratio, aligned)
    expected = np.stack([aligned_average(IMAGE, roi, 0.5, 2, ratio, aligned) for roi in ROIS])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_ps_roi_align_averages() -> None:
    found, mapping = vision.ps_roi_align(torch.tensor(IMAGE), torch.tensor(ROIS), 0.5, 2, 2, 2)
    whole = np.stack([aligned_average(IMAGE, roi, 0.5, 2, 2, True) for roi in ROIS]).reshape(4, 2, 2, 2, 2, 2)
    expected = np.einsum("kcpqpq->kcpq", whole)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert mapping.dtype == torch.int32 and mapping[3].flatten().tolist() == list(range(8))


def bins_of(
    roi: np.ndarray, scale: float, bins: int, extra: int, limits: tuple[int, int]
) -> list[list[tuple[int, int]]]:
    x1, y1, x2, y2 = (int(np.sign(v) * np.floor(abs(v) + 0.5)) for v in roi[1:] * scale)
    found = []
    for start, stop, limit in ((y1, y2, limits[0]), (x1, x2, limits[1])):
        size = max(stop - start + extra, 1) / bins
        edges = [(int(np.floor(n * size)) + start, int(np.ceil((n + 1) * size)) + start) for n in range(bins)]
        found.append([(min(max(a, 0), limit), min(max(b, 0), limit)) for a, b in edges])
    return found


def test_roi_pool_maxima_and_argmax() -> None:
    image = torch.tensor(IMAGE, requires_grad=True)
    found, where = vision.roi_pool(image, torch.tensor(ROIS), 0.5, 2, 2)
    for k, roi in enumerate(ROIS):
        rows, columns = bins_of(roi, 0.5, 2, 1, IMAGE.shape[2:])
        for p, q in product(range(2), range(2)):
            part = IMAGE[int(roi[0])][:, slice(*rows[p]), slice(*columns[q])].reshape(8, -1)
            expected = part.max(1) if part.size else np.zeros(8)
            np.testing.assert_array_equal(found[k, :, p, q].detach().numpy(), expected)
            if part.size:
                flat = IMAGE[int(roi[0])].reshape(8, -1)
                assert (flat[np.arange(8), where[k, :, p, q].numpy()] == expected).all()


def test_ps_roi_pool_averages() -> None:
    found, _ = vision.ps_roi_pool(torch.tensor(IMAGE), torch.tensor(ROIS), 0.5, 2, 2)
    for k, roi in enumerate(ROIS):
        rows, columns = bins_of(roi, 0.5, 2, 0, (IMAGE.shape[2] - 1, IMAGE.shape[3] - 1))
        for c, p, q in product(range(2), range(2), range(2)):
            part = IMAGE[int(roi[0]), c * 4 + p * 2 + q, slice(*rows[p]), slice(*columns[q])]
            np.testing.assert_allclose(found[k, c, p, q].item(), part.mean() if part.size else 0.0, atol=1e-12)


def zero_padded(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The image interpolated between pixels, zero outside."""
    _, h, w = image.shape
    y0, x0 = int(np.floor(y)), int(np.floor(x))
    total = np.zeros(len(image))
    for a, b in product((0, 1), (0, 1)):
        if 0 <= y0 + a < h and 0 <= x0 + b < w:
            total += image[:, y0 + a, x0 + b] * (1 - abs(y - y0 - a)) * (1 - abs(x - x0 - b))
    return total


def test_deformable_convolution() -> None:
    rng = np.random.default_rng(2)
    image, weight, bias = rng.standard_normal((1, 4, 6, 7)), rng.standard_normal((4, 2, 3, 2)), rng.standard_normal(4)
    offset, mask = rng.standard_normal((1, 24, 3, 6)), rng.uniform(0, 1, (1, 12, 3, 6))
    tensors = [torch.tensor(v, requires_grad=True) for v in (image, weight, offset, mask, bias)]
    found = vision.deform_conv2d(*tensors, 2, 1, 1, 0, 1, 1, 2, 2, True)
    for i, j, o in product(range(3), range(6), range(4)):
        total = bias[o]
        for c, p, q in product(range(2), range(3), range(2)):
            channel = (o // 2) * 2 + c
            tap = (channel // 2) * 6 + p * 2 + q
            y, x = i * 2 - 1 + p + offset[0, 2 * tap, i, j], j + q + offset[0, 2 * tap + 1, i, j]
            total += weight[o, c, p, q] * mask[0, tap, i, j] * zero_padded(image[0, [channel]], y, x)[0]
        np.testing.assert_allclose(found[0, o, i, j].item(), total, atol=1e-12)
    grads = vision._deform_conv2d_backward(torch.ones_like(found), *tensors, 2, 1, 1, 0, 1, 1, 2, 2, True)
    direct = torch.autograd.grad(found.sum(), tensors)
    for a, b in zip(grads, direct):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool"])
def test_backward_operators_are_the_gradients(name: str) -> None:
    image, rois = torch.tensor(IMAGE, requires_grad=True), torch.tensor(ROIS)
    size, more = (2, 8, 9, 11), {"roi_align": (2, True), "ps_roi_align": (2,), "roi_pool": ()}[name]
    out = getattr(vision, name)(image, rois, 0.5, 2, 2, *more)
    out, rest = (out, ()) if name == "roi_align" else (out[0], (out[1],))
    g = torch.randn(out.shape, dtype=out.dtype)
    tail = {"roi_align": (*size, 2, True), "ps_roi_align": (2, *size), "roi_pool": size}[name]
    found = getattr(vision, f"_{name}_backward")(g, rois, *rest, 0.5, 2, 2, *tail)
    if name != "roi_pool":  # whose maxima are taken of gathered pixels, below autograd
        torch.testing.assert_close(found, torch.autograd.grad(out, image, g)[0])
    step = torch.randn(image.shape, dtype=image.dtype) * 1e-6
    moved = getattr(vision, name)(image + step, rois, 0.5, 2, 2, *more)
    change = ((moved if name == "roi_align" else moved[0]) - out) * g
    torch.testing.assert_close((found * step).sum(), change.sum(), rtol=1e-3, atol=1e-9)


def test_load_library_of_an_unknown_library_raises(tmp_path: Path) -> None:
    file = tmp_path / "kernels.so"
    file.write_bytes(b"")
    with pytest.raises(OSError, match="compiled for PyTorch's C\\+\\+"):
        torch.ops.load_library(file)
    with pytest.raises(OSError, match="No such file"):
        load(tmp_path / "nothing.so")


@pytest.mark.parametrize("name", ["_C.so", "_C_stable.so", "_C_stable.cpython-311-x86_64-linux-gnu.so"])
def test_torchvision_s_library_has_one_of_two_names(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "torchvision"
    folder.mkdir()
    (folder / name).write_bytes(b"")
    load(folder / name)
    assert str(folder / name) in loaded


def test_autocast_kernels_run_unless_excluded() -> None:
    library = torch.library.Library("docs_autocast", "DEF")
    library.define("kind(Tensor x) -> Tensor")
    library.impl("kind", lambda x: x, "CompositeImplicitAutograd")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def cast(x: torch.Tensor) -> torch.Tensor:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return torch.ops.docs_autocast.kind(x.to(torch.bfloat16))

    library.impl("kind", cast, "AutocastCPU")
    assert torch.ops.docs_autocast.kind(torch.ones(1)).dtype == torch.float32
    with torch.autocast("cpu"):
        assert torch.ops.docs_autocast.kind(torch.ones(1)).dtype == torch.bfloat16
    library._destroy()
