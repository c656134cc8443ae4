"""The dispatcher: the layers that a call goes through, and that a call that nothing intercepts goes through none."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

import compat as torch
from compat._core.dispatch.dispatcher import ORDER, Call, active, add_layer, all_calls, layers
from compat._core.dispatch.overrides import overridden_layout
from compat._operators.pointwise.arithmetic import mul
from compat.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_layers_are_tried_in_order() -> None:
    torch.ones(2).to_sparse()
    with Names():
        found = [layer.name for layer in layers]
    assert found == sorted(found, key=ORDER.index) and {"mode", "layout"} <= set(found)


def test_a_layer_is_added_once() -> None:
    torch.ones(2).to_sparse()
    before = list(layers)
    add_layer("layout", lambda call: True, lambda call, below: None)
    assert layers == before


def test_entry_functions_keep_their_globals() -> None:
    function = mul.function
    function(torch.ones(2), 2)
    before = dict(function.__globals__)
    with Names() as names:
        function(torch.ones(2), 2)
        assert all(function.__globals__[name] is value for name, value in before.items())
    assert names.seen == ["aten.ones.default", "aten.mul.Tensor"] and not active.modes


def test_a_mode_that_fails_leaves_calls_as_they_were() -> None:
    with pytest.raises(ZeroDivisionError), Names():
        1 / 0  # noqa: B018
    assert not active.modes


def test_calls_go_through_the_layers_of_their_own_thread() -> None:
    found: list[list[float]] = []
    with Names() as names:
        thread = threading.Thread(target=lambda: found.append((torch.ones(2) * 2).tolist()))
        thread.start()
        thread.join()
    assert found == [[2.0, 2.0]] and names.seen == []


def test_a_layer_goes_on_with_those_below() -> None:
    seen: list[Call] = []
    before = list(layers)
    layers.clear()
    try:
        add_layer("profiler", lambda call: True, lambda call, below: [seen.append(call), below()][1])
        add_layer("layout", lambda call: call.operator is mul, lambda call, below: -below())
        with all_calls():
            found = mul.function(torch.ones(2), 3)
    finally:
        layers[:] = before
    assert found.tolist() == [-3.0, -3.0] and any(call.operator is mul for call in seen)


def test_no_plan_is_made_for_the_layout_of_a_type_that_overrides_operators() -> None:
    t = torch.ones(2)
    t * t
    kernel = next(iter(mul.kernels.values()))
    with pytest.raises(AssertionError, match="has no plan"):
        kernel.plan((overridden_layout(t._layout_),) * len(kernel.inputs), None)


def _fresh(program: str) -> list[str]:
    """The words that a program prints in a new process, in which no layer has been added before."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_first_sparse_tensor_adds_its_layer() -> None:
    program = "import compat as torch; t = torch.eye(2).to_sparse(); print((t + t).to_dense().tolist(), t.is_sparse)"
    assert "".join(_fresh(program)) == "[[2.0,0.0],[0.0,2.0]]True"


def test_functions_that_were_imported_before_are_seen() -> None:
    program = """
from compat import Tensor, zeros
fill = Tensor.uniform_
from compat.utils._python_dispatch import TorchDispatchMode
class Names(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))
with Names():
    fill(zeros(2))
"""
    assert _fresh(program) == ["aten.zeros.default", "aten.uniform_.default"]


def test_the_first_overriding_class_is_called_whatever_was_imported() -> None:
    program = """
import compat as torch
class Logged(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func)
        return func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))
x = torch.Tensor._make_wrapper_subclass(Logged, (2,))
x.inner = torch.ones(2)
x * 2
"""
    assert _fresh(program) == ["aten.mul.Tensor"]
