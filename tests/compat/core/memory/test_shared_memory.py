"""Memory that tensors share with NumPy, JAX and objects with DLPack or the buffer protocol."""

from __future__ import annotations

import array as arrays
import ctypes
import gc
import time
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat as torch
from compat._core.memory.numpy_storage import Hosted


def test_writes_are_visible_to_numpy_and_the_tensor() -> None:
    x = torch.zeros(2, 3)
    array = x.numpy()
    array[0, 1] = 4
    assert x.tolist() == [[0, 4, 0], [0, 0, 0]]
    x[1] = 7
    assert array.tolist() == [[0, 4, 0], [7, 7, 7]]
    x.T.numpy()[2, 0] = 9
    assert x[0, 2] == 9 and array[0, 2] == 9


def test_operations_recorded_before_a_write_do_not_see_it() -> None:
    array = np.ones(3, np.float32)
    x = torch.from_numpy(array)
    before = x * 2
    array[:] = 5
    assert before.tolist() == [2, 2, 2]
    assert (x * 2).tolist() == [10, 10, 10]


def test_backward_reads_saved_memory_as_it_is_then() -> None:
    """As in PyTorch, whose version counters do not see NumPy either."""
    array = np.ones(2, np.float32)
    x, w = torch.from_numpy(array), torch.ones(2, requires_grad=True)
    y = (x * w).sum()
    array[:] = 3
    y.backward()
    assert w.grad.tolist() == [3, 3]


def test_an_optimizer_writes_into_the_array() -> None:
    array = np.ones(2, np.float32)
    p = torch.nn.Parameter(torch.from_numpy(array))
    optimizer = torch.optim.SGD([p], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    assert array.tolist() == [0, 0]


@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[1:],
        lambda a: a[:, 1:3],
        lambda a: a[::2, ::3],
        lambda a: a[2],
        lambda a: a[:, 1],
        lambda a: a[1, 2:3],
        lambda a: np.broadcast_to(a[0], (3, 4)),
        lambda a: a[:0],
        lambda a: a.transpose()[..., None],
    ],
)
def test_any_strides(cut: Any) -> None:
    array = np.arange(16.0).reshape(4, 4)
    part = cut(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.from_numpy(part)
    assert tuple(x.shape) == part.shape
    assert x.stride() == tuple(s // 8 for s in part.strides)
    np.testing.assert_array_equal(x.numpy(), part)
    array += 1
    np.testing.assert_array_equal(x.numpy(), part)
    if part.flags.writeable:
        x.mul_(2)
        np.testing.assert_array_equal(x.numpy(), part)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_random_programs_of_both(data: Any) -> None:
    """Two tensors and two arrays over one memory, written and read at random, against one list of numbers."""
    array = np.zeros((3, 4), np.float32)
    made = data.draw(st.booleans())
    x = torch.from_numpy(array) if made else torch.tensor(array)
    model = np.zeros((3, 4), np.float32)
    if not made:
        del array
    for step in range(data.draw(st.integers(1, 12))):
        i, j = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 3))
        what = data.draw(st.sampled_from(["numpy", "tensor", "view", "add", "read", "column"]))
        if what == "numpy":
            x.numpy()[i, j] = step
            model[i, j] = step
        elif what == "tensor":
            x[i, j] = step
            model[i, j] = step
        elif what == "view":
            x[i].detach().numpy()[j] = step
            model[i, j] = step
        elif what == "add":
            x.add_(1)
            model += 1
        elif what == "column":
            x.t()[j].mul_(2)
            model[:, j] *= 2
        else:
            np.testing.assert_array_equal((x + 1).numpy(), model + 1)
    np.testing.assert_array_equal(x.numpy(), model)
    if made:
        np.testing.assert_array_equal(array, model)


def test_a_storage_is_an_ordinary_one_again_when_nothing_else_refers_to_its_memory() -> None:
    x = torch.ones(4)
    held = x.numpy()[1:3]
    assert type(x.untyped_storage()) is Hosted
    held[:] = 2
    _ = x + 1
    assert type(x.untyped_storage()) is Hosted
    del held
    gc.collect()
    assert (x + 1).tolist() == [2, 3, 3, 2]
    assert type(x.untyped_storage()) is not Hosted


def test_exported_memory_is_not_resized() -> None:
    x = torch.ones(2)
    held = np.from_dlpack(x)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(10)
    assert held.tolist() == x.tolist() == [1, 1]
    del held
    assert x.resize_(3).shape == (3,)


def test_addresses_are_those_of_the_memory() -> None:
    array = np.zeros(4, np.float32)
    assert torch.from_numpy(array[1:]).data_ptr() == array.ctypes.data + 4
    x, y = torch.zeros(4), torch.zeros(4)
    assert x[2:].data_ptr() == x.data_ptr() + 8 != y[2:].data_ptr()
    told = x.data_ptr()
    x.numpy()
    assert x.data_ptr() == told


def test_versions_count_tensors_writes_only() -> None:
    array = np.zeros(2, np.float32)
    x = torch.from_numpy(array)
    array[0] = 1
    assert x._version == 0
    x.add_(1)
    assert x._version == 1


def test_read_only_arrays_are_not_written() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.from_numpy(array)
    x[0] = 7
    assert x.tolist() == [7, 1, 2] and array.tolist() == [0, 1, 2]


def test_errors() -> None:
    for array, kind, text in [
        (np.arange(3)[::-1], ValueError, "negative"),
        (np.zeros(2, ">f4"), ValueError, "byte order"),
        (np.zeros(2, [("a", "f4"), ("b", "i2")])["a"], ValueError, "not a multiple of the element byte size"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        ([1], TypeError, "expected np.ndarray"),
    ]:
        with pytest.raises(kind, match=text):
            torch.from_numpy(array)
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(1, dtype=torch.bfloat16).numpy()


def test_as_tensor_asarray_and_frombuffer() -> None:
    array = np.zeros(2, np.float32)
    for alias in (torch.as_tensor(array), torch.asarray(array), torch.frombuffer(array, dtype=torch.float32)):
        alias += 1
    assert array.tolist() == [3, 3]
    assert torch.as_tensor(array, dtype=torch.float64).add_(1).tolist() == [4, 4] and array[0] == 3
    assert torch.asarray(array, copy=True).add_(1).tolist() == [4, 4] and array[0] == 3
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        torch.asarray(array, dtype=torch.float64, copy=False)
    numbers = arrays.array("i", [1, 2, 3])
    x = torch.frombuffer(numbers, dtype=torch.int32, offset=4)
    x[1] = 9
    assert numbers.tolist() == [1, 2, 9]
    numbers[1] = 5
    assert x.tolist() == [5, 9]
    with pytest.raises(ValueError, match=r"buffer length \(10 bytes\) after offset \(2 bytes\)"):
        torch.frombuffer(numbers, dtype=torch.int32, offset=2)


def test_numpy_takes_tensors() -> None:
    x = torch.ones(2)
    np.asarray(x)[0] = 5
    np.array(x)[0] = 6
    assert x.tolist() == [5, 1]
    assert np.asarray(x, np.float64).dtype == np.float64
    np.add(np.asarray(x), 1, out=x.numpy())
    assert x.tolist() == [6, 2]
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(x, np.float64, copy=False)


def test_batches_of_a_loader_are_over_the_arrays() -> None:
    array = np.zeros((4, 2), np.float32)
    data = torch.utils.data.TensorDataset(torch.from_numpy(array))
    array[2] = 1
    batches = [batch.tolist() for (batch,) in torch.utils.data.DataLoader(data, batch_size=2)]
    assert batches == [[[0, 0], [0, 0]], [[1, 1], [0, 0]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.bool, torch.complex64, torch.bfloat16])
def test_dlpack_round_trip(dtype: Any) -> None:
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    y = torch.from_dlpack(x.t())
    assert (
        y.dtype is dtype and y.stride() == (1, 3) and y.data_ptr() == x.numpy().ctypes.data
        if (dtype is not torch.bfloat16)
        else y.dtype is dtype
    )
    y[0, 1] = 0
    assert x[1, 0].item() == 0
    x[0, 2] = 0
    assert y[2, 0].item() == 0


def test_dlpack_with_numpy_and_jax() -> None:
    x = torch.arange(4.0)
    array = np.from_dlpack(x)
    x[0] = 9
    assert array[0] == 9
    assert jax.numpy.from_dlpack(x).tolist() == [9, 1, 2, 3]
    assert torch.from_dlpack(jax.numpy.arange(3)).tolist() == [0, 1, 2]
    assert torch.from_dlpack(jax.numpy.ones(2, "bfloat16")).dtype is torch.bfloat16
    assert torch.asarray(torch.to_dlpack(x), copy=False).data_ptr() == x.data_ptr()
    capsule = torch.to_dlpack(x)
    assert torch.from_dlpack(capsule).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(torch.ones(1, requires_grad=True))
    assert torch.from_dlpack(array, copy=True).add_(1)[0] == 10 and array[0] == 9
    kind, number = x.__dlpack_device__()
    assert (kind.name, number) == ("kDLCPU", 0)


def test_inside_a_transform_memory_is_not_shared() -> None:
    """A traced value has no contents: NumPy's memory stays unchanged."""
    array = np.ones(2, np.float32)

    def f(w: Any) -> Any:
        x = torch.from_numpy(array)
        x.mul_(w)
        return x.sum()

    assert torch.func.grad(f)(torch.tensor(3.0)).item() == 2
    assert array.tolist() == [1, 1]


# ---------------------------------------------------------------- parts of large memory


def large() -> tuple[np.ndarray, Any]:
    array = np.arange(300 * 100, dtype=np.float32).reshape(300, 100)
    return array, torch.from_numpy(array)


@pytest.mark.parametrize(
    "cut",
    [lambda x: x[7], lambda x: x[-2], lambda x: x[3:9], lambda x: x[5:200:50], lambda x: x[:, 4], lambda x: x[2, 3:5]],
)
def test_parts_of_large_memory_are_seen_from_both_sides(cut: Any) -> None:
    array, x = large()
    part, there = cut(x), cut(array)
    doubled = part * 2
    before = there.copy()
    there[...] += 1
    np.testing.assert_array_equal(doubled.numpy(), before * 2)  # recorded before the write
    np.testing.assert_array_equal((part * 2).numpy(), there * 2)
    part.mul_(3)
    np.testing.assert_array_equal(there, part.numpy())
    np.testing.assert_array_equal(array, x.numpy())
    x.zero_()
    assert not part.any() and part._version == x._version == 2


def test_parts_of_large_arrays_keep_their_offset() -> None:
    array, x = large()
    part = x[7][10:20]
    assert part.data_ptr() == array.ctypes.data + 710 * 4 and part._base is x
    assert part.storage_offset() == 710 and part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    np.testing.assert_array_equal(x[7].as_strided((2,), (100,), 5).numpy(), array.reshape(-1)[[5, 105]])
    np.testing.assert_array_equal(x[7].as_strided((2,), (100,)).numpy(), array[[7, 8], [0, 0]])
    assert x[3:5].is_set_to(x[3:5]) and not x[3:5].is_set_to(x[4:6])


def test_writes_that_overlap_parts_of_large_arrays_raise() -> None:
    _, x = large()
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[3:6].add_(x[4:7])
    x[3:6].add_(x[6:9])


def test_recorded_operations_write_into_parts_of_large_memory() -> None:
    array, x = large()
    w = torch.tensor(2.0, requires_grad=True)
    x[1:3].mul_(w)
    x[1:3].sum().backward()
    assert w.grad == float(np.arange(100, 300, dtype=np.float32).sum())
    assert array[1, 1] == 202


def test_rows_of_large_memory_are_gathered_as_they_are() -> None:
    array, x = large()
    places = torch.tensor([5, -1, 7])
    rows = x[places]
    array[5] = 0
    np.testing.assert_array_equal(rows.numpy()[0], np.arange(500, 600))
    np.testing.assert_array_equal(x[places].numpy(), array[[5, -1, 7]])
    np.testing.assert_array_equal(x[:, places].numpy(), array[:, [5, -1, 7]])
    with pytest.raises(IndexError, match="index 300 is out of bounds for dimension 0 with size 300"):
        x[torch.tensor([300])]


def test_every_place_of_a_tensor_is_cut_out_by_one_plan() -> None:
    x = torch.arange(20000.0).view(10000, 2)
    from compat._operators.view.slicing import select

    before = len(select.plans)
    assert [x[i].tolist()[0] for i in range(0, 10000, 500)] == [2.0 * i for i in range(0, 10000, 500)]
    assert len(select.plans) == before


def test_threads_find_together_that_memory_is_shared_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from compat._core.memory import numpy_storage

    x = torch.ones(3)
    x.numpy()  # no references
    same_bytes = numpy_storage._same_bytes

    def slowly(a: np.ndarray, b: np.ndarray) -> bool:
        time.sleep(0.01)
        return same_bytes(a, b)

    monkeypatch.setattr(numpy_storage, "_same_bytes", slowly)
    with ThreadPoolExecutor(4) as threads:
        assert [t.tolist() for t in threads.map(lambda n: x + n, range(4))] == [[n + 1.0] * 3 for n in range(4)]


def _sizes_that_stay() -> list[torch.Tensor]:
    given, part, through = torch.ones(5), torch.ones(5), torch.ones(5)
    given.numpy()
    part[1:3].numpy()
    np.asarray(through)
    buffer = bytearray(20)
    return [
        given,
        part,
        through,
        torch.from_numpy(np.ones(5)),
        torch.as_tensor(np.ones(5)),
        torch.frombuffer(buffer, dtype=torch.float32),
        torch.from_dlpack(torch.ones(5)),
    ]


@pytest.mark.parametrize("i", range(7))
def test_the_size_of_memory_that_numpy_has_or_had_stays(i: int) -> None:
    x = _sizes_that_stay()[i]
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(10)
    assert x.shape == (5,) and x.resize_(3).shape == (3,)
    assert x.clone().resize_(10).shape == (10,)
    assert x.set_(torch.ones(2, dtype=x.dtype)).resize_(10).shape == (10,)


def test_reading_values_keeps_the_size_dynamic() -> None:
    x = torch.ones(5)
    x.tolist(), x[0].item(), repr(x), x.__dlpack__()
    assert x.untyped_storage().resizable() and x.resize_(10).shape == (10,)


def test_memory_can_be_read_at_data_ptr() -> None:
    """As packages such as ``safetensors`` read the memory of tensors."""
    x = torch.arange(6.0).view(2, 3) * 2
    address = x.data_ptr()
    assert ctypes.string_at(address, 24) == x.numpy().copy().tobytes()
    x += 1
    assert x.data_ptr() == address and ctypes.string_at(address, 24) == x.numpy().copy().tobytes()
    assert x[1].data_ptr() == address + 12 and ctypes.string_at(x[1].data_ptr(), 4) == np.float32(7).tobytes()
    half = torch.ones(3, dtype=torch.bfloat16)
    assert ctypes.string_at(half.data_ptr(), 6) == b"\x80\x3f" * 3
    shared = x.numpy()
    shared[0, 0] = 5
    assert ctypes.string_at(x.data_ptr(), 4) == np.float32(5).tobytes()
    assert torch.ones(2).data_ptr() != address and torch.empty(0).data_ptr() == 0
