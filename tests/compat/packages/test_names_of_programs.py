"""Names below ``torch`` that tutorials and packages use besides the documented ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat as torch
import compat._dynamo
import compat.nn.utils.stateless
from compat.autograd.function import FunctionCtx, _ContextMethodMixin
from compat.cuda.amp.grad_scaler import GradScaler, OptState
from compat.nn import _reduction
from compat.nn.modules.transformer import _get_activation_fn
from compat.optim.optimizer import _default_to_fused_or_foreach, _use_grad_for_differentiable
from compat.utils import hooks
from tests.compat.packages.test_install import run


def test_backwards_of_softmax_are_functions() -> None:
    """DeBERTa's softmax calls one in its own backward."""
    x = torch.tensor([[0.5, -1.0, 2.0], [1.0, 1.0, -3.0]], dtype=torch.float64, requires_grad=True)
    given = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    for whole, part in (
        (torch.softmax, torch._softmax_backward_data),
        (torch.log_softmax, torch._log_softmax_backward_data),
    ):
        result = whole(x, 1)
        (expected,) = torch.autograd.grad(result, x, given, create_graph=True)
        found = part(given, result, 1, torch.float64)
        torch.testing.assert_close(found, expected)
        weights = torch.arange(6.0, dtype=torch.float64).view(2, 3)
        second = torch.autograd.grad(expected, [x, given], weights, retain_graph=True)
        torch.testing.assert_close(torch.autograd.grad(found, [x, given], weights), second)
    assert found.grad_fn.name() == "LogSoftmaxBackwardDataBackward0"


def test_crow_indices_round_trip() -> None:
    rows, cols = torch.tensor([0, 0, 2, 4]), torch.tensor([1, 4, 0, 2])
    starts = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert starts.tolist() == [0, 2, 2, 3, 3, 4] and starts.dtype == torch.int64
    assert torch._convert_indices_from_csr_to_coo(starts, cols).tolist() == [rows.tolist(), cols.tolist()]
    turned = torch._convert_indices_from_csr_to_coo(starts, cols, out_int32=True, transpose=True)
    assert turned.tolist() == [cols.tolist(), rows.tolist()] and turned.dtype == torch.int32


def test_convolution_with_the_settings_of_gpus() -> None:
    x, w = torch.arange(4.0).view(1, 1, 4), torch.ones(1, 1, 2)
    settings = (False, False, True, True)
    found = torch.ops.aten._convolution(x, w, None, [1], [0], [1], False, [0], 1, *settings)
    assert found.tolist() == [[[1.0, 3.0, 5.0]]]


def test_attention_is_restricted_by_the_deprecated_block() -> None:
    cuda = torch.backends.cuda
    with pytest.warns(FutureWarning, match="sdpa_kernel"), cuda.sdp_kernel(enable_flash=False, enable_math=True):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()


def test_call_impl_runs_hooks_and_can_be_replaced() -> None:
    """Packages call a module by ``_call_impl``, hooks included, or replace its call by a function around it."""
    seen = []
    net = torch.nn.Linear(2, 2)
    net.register_forward_hook(lambda module, args, result: seen.append(result.shape))
    torch.testing.assert_close(net._call_impl(torch.ones(2)), net(torch.ones(2)))
    assert len(seen) == 2


class _Scripted(torch.jit.ScriptModule):
    __constants__ = ("factor",)

    def __init__(self) -> None:
        super().__init__()
        self.factor = 3

    @torch.jit.script_method
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def test_module_written_for_torchscript_runs_as_python() -> None:
    assert _Scripted()(torch.ones(2)).tolist() == [3.0, 3.0]


def test_fusion_settings_are_stored() -> None:
    before = torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(before)


def test_stances_of_compiled_functions() -> None:
    @torch.compile
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def is_known(n: int) -> bool:
        with torch.compiler.set_stance("fail_on_recompile"):
            try:
                return double(torch.ones(n)).tolist() == [2.0] * n
            except RuntimeError as error:
                return "Detected recompile" not in str(error)

    for stance in ("force_eager", "eager_on_recompile"):
        with torch.compiler.set_stance(stance):
            for _ in range(4):
                assert double(torch.ones(2)).tolist() == [2.0, 2.0]
        assert not is_known(2)
    for _ in range(4):
        assert double(torch.ones(2)).tolist() == [2.0, 2.0]
    assert is_known(2) and not is_known(3)
    assert torch.compiler.set_stance("force_eager")(double)(torch.ones(3)).tolist() == [2.0] * 3
    assert not is_known(3)
    double(torch.ones(3))
    assert is_known(3)
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'fast'"):
        torch.compiler.set_stance("fast")


def test_settings_of_the_compiler_are_patched_for_a_block() -> None:
    config = torch._dynamo.config
    with config.patch(suppress_errors=True, cache_size_limit=64), config.patch("verbose", True):
        assert config.suppress_errors and config.cache_size_limit == 64 and config.verbose
    assert not config.suppress_errors and config.cache_size_limit == 8 and not config.verbose
    with (
        pytest.raises(AttributeError, match=r"torch\._dynamo\.config\.unknown does not exist"),
        config.patch(unknown=1),
    ):
        pass


def test_assert_allclose_is_deprecated_and_ignores_dtypes() -> None:
    with pytest.warns(FutureWarning, match="assert_close"):
        torch.testing.assert_allclose(torch.ones(2, dtype=torch.float64), [1.0, 1.0])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))


def test_masks_of_copied_attention_modules() -> None:
    """Programs that copy ``TransformerEncoderLayer`` call what it calls."""
    F = torch.nn.functional
    mask = torch.tensor([True, False])
    found = F._canonical_mask(mask, "mask", F._none_or_dtype(None), "", torch.float64, check_other=False)
    assert found.tolist() == [-float("inf"), 0.0] and found.dtype == torch.float64
    assert F._canonical_mask(None, "mask", torch.bool, "other", torch.float32) is None
    with pytest.warns(UserWarning, match="mismatched mask and other"):
        F._canonical_mask(mask, "mask", torch.float32, "other", torch.float32)
    with pytest.raises(AssertionError, match="only bool and floating types of mask"):
        F._canonical_mask(torch.ones(2, dtype=torch.int64), "mask", None, "", torch.float32)
    assert F._none_or_dtype(mask) is torch.bool
    with pytest.raises(RuntimeError, match=r"must be None or torch\.Tensor"):
        F._none_or_dtype(1)


class _Halved(torch.optim.Optimizer):
    """An optimizer as packages write them after PyTorch's own."""

    def __init__(self, params: list[torch.Tensor], differentiable: bool = False):
        super().__init__(params, {"differentiable": differentiable})

    @_use_grad_for_differentiable
    def step(self, closure: None = None) -> None:
        fused, foreach = _default_to_fused_or_foreach(self.param_groups[0]["params"], differentiable=False)
        assert not fused and not foreach
        self.recorded = torch.is_grad_enabled()


def test_helpers_of_optimizers() -> None:
    for differentiable in (False, True):
        optimizer = _Halved([torch.ones(1, requires_grad=True)], differentiable)
        optimizer.step()
        assert optimizer.recorded is differentiable
    assert torch.is_grad_enabled()


def test_helpers_of_layers_and_losses() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert _get_activation_fn("relu")(x).tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="relu/gelu, not tanh"):
        _get_activation_fn("tanh")
    assert [_reduction.get_enum(r) for r in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert _reduction.legacy_get_string(False, True) == "sum"


def test_arguments_for_making_tensors() -> None:
    given = {"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}}
    assert torch.nn.factory_kwargs(given) == {"dtype": torch.float64, "device": "cpu"}
    assert torch.nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        torch.nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="dtype specified twice"):
        torch.nn.factory_kwargs({"dtype": torch.float64, "factory_kwargs": {"dtype": torch.float32}})


def test_reparametrize_module_in_a_block() -> None:
    net = torch.nn.Linear(2, 1, bias=False)
    with torch.nn.utils.stateless._reparametrize_module(net, {"weight": torch.tensor([[2.0, 3.0]])}):
        assert net(torch.ones(2)).tolist() == [5.0]


def test_size_as_a_tensor() -> None:
    found = torch._shape_as_tensor(torch.ones(2, 3))
    assert found.tolist() == [2, 3] and found.dtype == torch.int64


def test_warn_if_has_hooks_ignores_unserializable_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(hooks.unserializable_hook(lambda grad: None))
    hooks.warn_if_has_hooks(x)
    x.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        hooks.warn_if_has_hooks(x)


def test_public_objects_at_alternative_addresses() -> None:
    assert _ContextMethodMixin is FunctionCtx
    assert torch.nn.init._no_grad_uniform_ is torch.nn.init.uniform_
    assert issubclass(GradScaler, torch.amp.GradScaler) and OptState.READY.value == 0
    assert torch.cuda.amp.GradScaler is GradScaler and torch.cuda.default_generators == ()
    with torch.cuda.device_of(torch.ones(1)):
        pass
    with torch.accelerator.device_index(None):
        pass
    with pytest.warns(DeprecationWarning, match="get_autocast_dtype"):
        assert torch.get_autocast_gpu_dtype() is torch.float16
    assert torch._C._get_privateuse1_backend_name() == "privateuseone" and not torch._C._is_tracing()


def test_settings_of_absent_compilers_can_be_set(tmp_path: Path) -> None:
    """gpt-fast sets them before anything else."""
    source = """
import torch
import torch._inductor.config
torch._inductor.config.coordinate_descent_tuning = True
torch._inductor.config.triton.unique_kernel_names = True
torch._functorch.config.enable_autograd_cache = True
from torch.ao.quantization import FakeQuantizeBase
print("set")
"""
    done = run(tmp_path, source)
    assert done.stdout == "set\n", done.stderr
