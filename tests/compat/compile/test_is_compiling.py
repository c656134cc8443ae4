"""``torch.compiler.is_compiling`` and ``Module.compile``: which code of a program runs when it is compiled."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import compat as torch


class Factor(torch.nn.Module):
    """Twice its input when it is compiled, three times otherwise."""

    def forward(self, x: Any) -> Any:
        return x * (2 if torch.compiler.is_compiling() else 3)


@pytest.mark.parametrize("backend", ["inductor", lambda module, inputs: module.forward])
def test_each_call_of_a_compiled_function_is_compiling(backend: Any) -> None:
    model = Factor()
    compiled = torch.compile(model, backend=backend)
    for _ in range(4):
        assert compiled(torch.ones(1)).item() == 2 and model(torch.ones(1)).item() == 3
    with torch.compiler.set_stance("force_eager"):
        assert compiled(torch.ones(1)).item() == 3
    assert not torch.compiler.is_compiling()


def test_a_disabled_function_is_not_compiled() -> None:
    inner = torch.compiler.disable(torch.compiler.is_compiling)
    outer = torch.compile(lambda x: (x + 1, inner(), torch.compiler.is_compiling()))
    assert [outer(torch.ones(1))[1:] for _ in range(3)] == [(False, True)] * 3
    model = Factor()
    assert torch.compiler.disable(model) is model


def test_an_error_ends_compiling() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        torch.compile(fails)(torch.ones(1))
    assert not torch.compiler.is_compiling()


def test_module_compile_compiles_in_place() -> None:
    model, graphs = Factor(), []
    plain = copy.deepcopy(model)
    model.compile()
    assert [model(torch.ones(1)).item() for _ in range(3)] == [2, 2, 2] and plain(torch.ones(1)).item() == 3
    assert copy.deepcopy(model)(torch.ones(1)).item() == 3 and not model.state_dict()

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    plain.compile(backend=backend)
    plain.register_forward_hook(lambda module, args, result: result + 1)
    assert plain(torch.ones(1)).item() == 3 and len(graphs) == 1
