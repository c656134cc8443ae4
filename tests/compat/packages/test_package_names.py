"""Names, public or private, that packages written for PyTorch use."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from typing import Any

import pytest

import compat as torch
import compat.distributed.nn
import compat.distributed.rpc
from compat import hub
from compat.cuda import nvtx
from compat.distributed.elastic.multiprocessing.errors import record
from compat.distributions import transforms, utils
from compat.nn.attention.flex_attention import _DEFAULT_SPARSE_BLOCK_SIZE
from compat.nn.modules.instancenorm import _InstanceNorm
from compat.nn.modules.module import _IncompatibleKeys
from compat.nn.parallel import scatter_gather
from compat.optim.optimizer import ParamsT
from compat.serialization import MAP_LOCATION
from compat.utils import _pytree as pytree
from compat.utils.data import dataloader
from tests.compat.packages.test_install import run

Point = namedtuple("Point", ["x", "y"])


def test_mock_patch_finds_objects_by_module_name(tmp_path: Path) -> None:
    """It finds objects by the name of the module, and patches them."""
    source = """
import torch
target = "torch.distributions.utils._sum_rightmost".split(".")
assert target[0] == torch.__name__ and torch.torch is torch
at = torch
for name in target[1:]:
    at = getattr(at, name)
print(at(torch.ones(2, 3), 1))
"""
    assert run(tmp_path, source).stdout == "tensor([3., 3.])\n"


def test_trees_with_paths() -> None:
    tree = {"a": [1, (2, 3)], "b": None}
    leaves, spec = pytree.tree_flatten_with_path(tree)
    assert [(pytree.keystr(path), leaf) for path, leaf in leaves] == [
        ("['a'][0]", 1), ("['a'][1][0]", 2), ("['a'][1][1]", 3), ("['b']", None),
    ]  # fmt: skip
    assert spec == pytree.tree_structure(tree)
    assert all(pytree.key_get(tree, path) is leaf for path, leaf in leaves)
    doubled = pytree.tree_map_with_path(lambda path, x, y: (len(path), x + y), [1, [2]], [10, [20]])
    assert doubled == [(1, 11), [(2, 22)]]
    assert pytree.tree_leaves_with_path(Point(1, 2))[1] == ((pytree.GetAttrKey("y"),), 2)
    assert pytree.tree_is_leaf(3) and not pytree.tree_is_leaf([])
    assert pytree.tree_is_leaf([], is_leaf=lambda t: t == [])
    assert pytree._get_node_type(Point(1, 2)) is namedtuple


@pytest.mark.parametrize(
    "tree",
    [(1, 2), [1, 2], {"a": 1}, OrderedDict(a=1), defaultdict(int, a=1), deque([1, 2], maxlen=4), Point(1, 2)],
)
def test_flatten_with_keys_matches_flatten(tree: Any) -> None:
    node = pytree.SUPPORTED_NODES[pytree._get_node_type(tree)]
    assert node.flatten_with_keys_fn is not None
    keyed, context = node.flatten_with_keys_fn(tree)
    parts, same = node.flatten_fn(tree)
    assert [part for _, part in keyed] == parts and context == same
    assert all(key.get(tree) == part for key, part in keyed)
    assert node.unflatten_fn(parts, context) == tree


def test_a_custom_container_with_keys() -> None:
    class Box:
        def __init__(self, inside: Any):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda parts, _: Box(*parts))
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pytree.tree_flatten_with_path(Box(1))
    del pytree.SUPPORTED_NODES[Box]
    pytree.register_pytree_node(
        Box,
        lambda b: ([b.inside], None),
        lambda parts, _: Box(*parts),
        flatten_with_keys_fn=lambda b: ([(pytree.GetAttrKey("inside"), b.inside)], None),
    )
    assert pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), Box(1)).inside == ".inside"
    del pytree.SUPPORTED_NODES[Box]


def test_names_of_distributions() -> None:
    assert utils._standard_normal(torch.Size([3]), torch.float64, torch.device("cpu")).dtype == torch.float64
    assert isinstance(transforms.ExpTransform().inv, transforms._InverseTransform)

    class Own:
        """For a package that has distributions of its own."""

    torch.distributions.register_kl(Own, torch.distributions.Normal)(lambda p, q: 0.5)
    assert torch.distributions.kl_divergence(Own(), torch.distributions.Normal(0.0, 1.0)) == 0.5
    with pytest.raises(TypeError, match=r"issubclass\(\) arg 1 must be a class"):
        torch.distributions.register_kl(3, Own)


def test_incompatible_keys_can_be_pickled() -> None:
    keys = torch.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=[])"
    assert type(keys) is _IncompatibleKeys and pickle.loads(pickle.dumps(keys)) == keys


def test_without_process_groups_distributed_raises() -> None:
    distributed = torch.distributed
    assert distributed.rpc.is_available() and distributed.group.WORLD is None
    text = "Default process group has not been initialized"
    for ask in (
        distributed.get_rank,
        distributed.get_world_size,
        distributed.barrier,
        lambda: compat.distributed.nn.all_gather(torch.ones(1)),
    ):
        with pytest.raises(ValueError, match=text):
            ask()
    with pytest.raises(ValueError, match=text):
        distributed.all_reduce(torch.ones(1), op=distributed.ReduceOp.SUM)
    assert record(len)([1]) == 1


def test_get_device_module_by_device() -> None:
    assert torch.get_device_module() is torch.cpu and torch.get_device_module(torch.device("cuda", 1)) is torch.cuda
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="at start of device string: foo"):
        torch.get_device_module("foo")


def test_dataloader_iterator_classes() -> None:
    loader = torch.utils.data.DataLoader([1, 2])
    assert type(iter(loader)) is dataloader._SingleProcessDataLoaderIter
    assert issubclass(dataloader._MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter)


def test_marks_of_compilers_and_devices() -> None:
    net = torch.compile(torch.nn.Linear(1, 1))
    assert isinstance(net, torch._dynamo.OptimizedModule) and not torch._dynamo.is_compiling()
    torch._dynamo.mark_dynamic(torch.ones(2), 0)
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class CUDAGraph"):
        torch.cuda.graph(None)
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        nvtx.range_push("step")
    assert not torch._C._are_functorch_transforms_active()
    torch.func.vmap(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(2))
    assert torch._C._nn._parse_to("cpu", torch.float64)[:2] == (torch.device("cpu"), torch.float64)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    assert str(torch.ops.aten.sort.stable) == "aten.sort.stable"
    assert str(torch.ops.aten._pin_memory.default) == "aten._pin_memory.default"


def test_the_overload_of_a_stable_sort() -> None:
    from compat.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        torch.ones(2).sort()
        torch.sort(torch.ones(2), stable=True)
    assert seen[-1] == "aten.sort.stable" and "aten.sort.default" in seen


def test_a_trace_of_several_methods() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def twice(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    net = Two()
    made = torch.jit.trace_module(net, {"forward": torch.ones(1), "twice": (torch.ones(1),)})
    assert isinstance(made, torch.jit.ScriptModule) and made.twice(torch.ones(1)) == 2
    with pytest.raises(AttributeError, match=r"expected a dictionary of \(method_name, input\) pairs"):
        torch.jit.trace_module(net, torch.ones(1))
    with pytest.raises(AttributeError):
        torch.jit.trace_module(net, {"thrice": torch.ones(1)})


def test_names_for_annotations() -> None:
    assert ParamsT is not None and MAP_LOCATION is not None and _DEFAULT_SPARSE_BLOCK_SIZE == 128
    assert issubclass(torch.nn.InstanceNorm2d, _InstanceNorm)
    assert torch._utils._element_size(torch.float64) == 8
    assert torch._utils._get_device_index(torch.device("cuda", 1)) == 1
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        torch._utils._get_device_index("cpu")
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        scatter_gather.gather([torch.ones(1)], 0)


def test_records_of_a_file() -> None:
    file = io.BytesIO()
    torch.save({"a": torch.ones(3)}, file)
    reader = torch.PyTorchFileReader(file)
    assert reader.has_record("data/0") and reader.get_record_size("data/0") == 12
    assert reader.get_storage_from_record("data/0", 12, torch.UntypedStorage).untyped_storage().nbytes() == 12
    with pytest.raises(RuntimeError, match="failed locating file nope: file not found"):
        reader.get_record("nope")
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.PyTorchFileReader(io.BytesIO(b"no archive"))


def test_the_base_class_of_storages() -> None:
    assert torch.StorageBase is torch._C.StorageBase
    assert isinstance(torch.ones(2).untyped_storage(), torch.StorageBase)


def test_parts_of_the_text_of_tensors() -> None:
    values = torch._tensor_str._tensor_str(torch.ones(2, 2), 7)
    assert values == "[[1., 1.],\n        [1., 1.]]"
    assert torch._tensor_str._add_suffixes("Index(" + values, ["dim_size=2"], 6, False).endswith(", dim_size=2)")


class TestHub:
    """Weights and repositories by URL; files replace the server."""

    def test_weights_are_fetched_once(self, tmp_path: Path) -> None:
        torch.save({"w": torch.ones(2)}, tmp_path / "net.pth")
        url, kept = (tmp_path / "net.pth").as_uri(), str(tmp_path / "kept")
        assert hub.load_state_dict_from_url(url, kept)["w"].tolist() == [1, 1]
        (tmp_path / "net.pth").unlink()
        assert hub.load_state_dict_from_url(url, kept)["w"].tolist() == [1, 1]

    def test_a_wrong_hash_leaves_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "net-00000000.pth").write_bytes(b"weights")
        with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00000000", got "'):
            hub.load_state_dict_from_url(
                (tmp_path / "net-00000000.pth").as_uri(), str(tmp_path / "kept"), check_hash=True
            )
        assert list((tmp_path / "kept").iterdir()) == []

    def test_a_model_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "inner.py").write_text("SIZE = 3\n")
        (tmp_path / "hubconf.py").write_text(
            "dependencies = ['math']\nfrom inner import SIZE\ndef net(scale=1):\n    return SIZE * scale\n"
        )
        assert hub.load(str(tmp_path), "net", scale=2, source="local") == 6
        with pytest.raises(RuntimeError, match="Cannot find callable nets in hubconf"):
            hub.load(str(tmp_path), "nets", source="local")
        with pytest.raises(ValueError, match='Unknown source: "ftp"'):
            hub.load(str(tmp_path), "net", source="ftp")
        (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\n")
        with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
            hub.load(str(tmp_path), "net", source="local")


def test_addresses_named_by_packages() -> None:
    from compat.fx.experimental import proxy_tensor, symbolic_shapes

    assert torch.functional.einsum is torch.einsum and not torch.onnx.is_in_onnx_export()
    assert proxy_tensor.get_proxy_mode() is None and symbolic_shapes.guard_or_false(torch.ones(2).shape[0] == 2)
    assert symbolic_shapes.free_unbacked_symbols(torch.ones(2)) == set()
    assert torch._tensor_str.PRINT_OPTS.precision == 4
    assert hub.get_dir().endswith("hub") and hub._get_torch_home() in hub.get_dir()


def test_names_used_by_trainers() -> None:
    from compat.autograd.profiler import emit_nvtx

    assert torch.ScriptModule is torch.jit.ScriptModule
    with emit_nvtx(enabled=False):
        pass
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"), emit_nvtx():
        pass
