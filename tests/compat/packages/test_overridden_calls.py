"""Arguments that overriding types receive for calls, and parameter names of methods, as packages use them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import compat as torch
from compat import fx


def test_torch_function_of_einsum_gets_separate_operands() -> None:
    graph = fx.symbolic_trace(lambda x, y: torch.einsum("ij,jk->ik", [x, y])).graph
    call = next(n for n in graph.nodes if n.op == "call_function")
    assert call.args[0] == "ij,jk->ik" and [n.name for n in call.args[1:]] == ["x", "y"]


def test_operations_of_libraries_are_traced_and_overridden() -> None:
    library = torch.library.Library("docs_overridden", "DEF")
    library.define("more(Tensor x) -> Tensor")
    library.impl("more", lambda x: x + 1, "CompositeExplicitAutograd")
    more = torch.ops.docs_overridden.more
    for called, shown in ((more, "docs_overridden.more"), (more.default, "docs_overridden.more.default")):
        traced = fx.symbolic_trace(lambda x: called(x) * 2)  # noqa: B023 (it is traced at once)
        call = next(n for n in traced.graph.nodes if n.op == "call_function")
        assert call.target is called and str(call.target) == shown
        assert traced(torch.ones(2)).tolist() == [4, 4]

    class Told(torch.Tensor):
        calls: ClassVar[list[Any]] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    found = more(torch.ones(1).as_subclass(Told))
    assert type(found) is Told and Told.calls[0] is more


def test_profiler_marks_are_traced() -> None:
    graph = fx.Graph()
    handle = fx.Proxy(graph.create_node("call_function", torch.ops.profiler._record_function_enter, ("part",)))
    torch.ops.profiler._record_function_exit(handle)
    assert [n.target for n in graph.nodes][-1] is torch.ops.profiler._record_function_exit


def test_method_split_with_sizes_is_split_with_sizes() -> None:
    x = torch.arange(5)
    assert [p.tolist() for p in x.split(split_size=[1, 4])] == [[0], [1, 2, 3, 4]]
    assert [len(p) for p in torch.split(x, split_size_or_sections=2, dim=0)] == [2, 2, 1]
    with pytest.raises(TypeError, match=r"Tensor\.split\(\)"):
        x.split()


def test_modules_of_layers_are_attributes() -> None:
    modules = torch.nn.modules
    assert modules.pixelshuffle.PixelShuffle is torch.nn.PixelShuffle
    assert modules.channelshuffle.ChannelShuffle is torch.nn.ChannelShuffle
    assert modules.instancenorm.InstanceNorm1d is torch.nn.InstanceNorm1d


def test_assert_of_a_traced_value_is_a_node() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        torch._assert(x.shape[0] == 2, "two rows")
        return x

    traced = fx.symbolic_trace(checked)
    assert traced(torch.ones(2)).sum() == 2
    with pytest.raises(AssertionError, match="two rows"):
        traced(torch.ones(3))


def test_private_names_that_packages_import() -> None:
    kl, normal = torch.distributions.kl, torch.distributions.multivariate_normal
    assert (torch.distributions.Normal, torch.distributions.Normal) in kl._KL_REGISTRY
    assert torch.allclose(normal._precision_to_scale_tril(4 * torch.eye(2)), 0.5 * torch.eye(2))
    assert torch.serialization.DEFAULT_PROTOCOL == 2
    assert torch.utils.data._utils.collate.np_str_obj_array_pattern.search("<U3")
    with pytest.raises(RuntimeError, match="NVTX functions not installed"), torch.cuda.nvtx.range("part {}", 1):
        pass
