"""Settings of PyTorch's compiler, and the marks of ``torch._dynamo``."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat._dynamo import config
from compat._functorch import config as functorch_config
from compat._inductor import config as inductor_config


@pytest.mark.parametrize("module", [config, inductor_config, functorch_config, inductor_config.triton])
def test_an_unknown_setting_raises(module: Any) -> None:
    with pytest.raises(AttributeError, match=r"config(\.triton)?\.no_such does not exist"):
        module.no_such = 1
    with pytest.raises(AttributeError, match=r"config(\.triton)?\.no_such does not exist"):
        module.no_such  # noqa: B018
    assert not hasattr(module, "no_such")


def test_settings_are_kept_and_patched() -> None:
    before = config.recompile_limit
    try:
        config.cache_size_limit = 99
        assert config.recompile_limit == 99
    finally:
        config.recompile_limit = before
    with config.patch({"verbose": True}), inductor_config.patch("triton.cudagraphs", True):
        assert config.verbose and inductor_config.triton.cudagraphs
    assert not config.verbose and not inductor_config.triton.cudagraphs

    @config.patch(suppress_errors=True)
    def setting() -> Any:
        return config.suppress_errors

    assert setting() is True and config.suppress_errors is False
    with pytest.raises(AttributeError, match="no_such does not exist"), config.patch(no_such=1):
        pass
    copied = config.get_config_copy()
    config.load_config(copied)
    assert copied["dynamic_shapes"] is True
    decorated = torch._dynamo.patch_dynamo_config(verbose=True)(lambda: config.verbose)
    assert decorated() is True and config.verbose is False


def test_marks_are_pytorchs_attributes() -> None:
    x = torch.ones(2, 3)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=5)
    torch._dynamo.maybe_mark_dynamic(x, [1])
    torch._dynamo.mark_static(x)
    assert x._dynamo_dynamic_indices == {0} and x._dynamo_weak_dynamic_indices == {1}
    assert x._dynamo_static_indices == {0, 1}
    with pytest.raises(AssertionError, match="Expected index to be int, list, or tuple"):
        torch._dynamo.mark_dynamic(x, "0")
    with pytest.raises(AssertionError, match="expects a callable"):
        torch._dynamo.disallow_in_graph(3)


def test_functions_are_returned_unchanged() -> None:
    def f(x: Any) -> Any:
        return x + 1

    for mark in (torch._dynamo.disallow_in_graph, torch._dynamo.nonstrict_trace, torch._dynamo.run):
        assert mark(f) is f
    assert torch._dynamo.substitute_in_graph(len)(f) is f
    assert torch._dynamo.optimize("eager", nopython=True)(f)(torch.ones(1)).item() == 2
    assert torch._dynamo.graph_break() is None
