"""``gradcheck`` and ``gradgradcheck``: compare derivatives with finite differences.

A check considers one real function at a time: the real and the imaginary part of complex results, and in forward mode
also of complex arguments. In slow mode Jacobians are compared; in fast mode their products with random vectors (``v J
u``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn
from compat.autograd import forward_ad
from compat.autograd._backward import as_tuple, grad
from compat.autograd._engine_queries import UndefinedGradBackward, set_history
from compat.autograd._gradcheck_cases import (
    Case,
    Check,
    GradcheckError,
    cases,
    close,
    differentiable,
    is_inexact_tensor,
    random_vector,
    torch_function,
)

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


# ---------------------------------------------------------------- checks besides finite differences


_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."
_BATCHED_FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD."


def _compare_batched(function: Callable[..., Any], given: Sequence[Tensor], output: int | None, about: str) -> None:
    """Compares a batched gradient with the gradients of batch elements."""
    stack = torch_function("stack")
    expected = [stack(list(column)) for column in zip(*[function(x) for x in given])]
    try:
        with level_stack.graphs():
            found = torch_function("vmap")(function)(stack(list(given)))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{about}") from error
    for i, (got, want) in enumerate(zip(found, expected)):
        if not bool(torch_function("allclose")(got, want)):
            raise GradcheckError(
                f"For output {i if output is None else output} and input {i}:\n\n{about}\n\nGot:\n{got}\n\n"
                f"Expected:\n{want}"
            )


def _check_batched_forward(func: Callable[..., Any], inputs: tuple) -> None:
    for index, current in enumerate(inputs):
        if not (is_inexact_tensor(current) and current.requires_grad):
            continue

        def jvp(tangent: Tensor, index: int = index) -> tuple:
            with forward_ad.dual_level():
                given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
                given[index] = forward_ad.make_dual(given[index], tangent)
                unpacked = [forward_ad.unpack_dual(o) for o in as_tuple(func(*given)) if o is not None]
                return tuple(p.detach().new_zeros(p.shape) if t is None else t for p, t in unpacked)

        tangents = [torch_function("randn_like")(current.detach()) for _ in range(2)]
        _compare_batched(jvp, tangents, None, _BATCHED_FORWARD)


def _check_batched(inputs: Sequence[Tensor], output: Tensor, number: int) -> None:
    def vjp(v: Tensor) -> tuple:
        grads = grad((output,), inputs, [v], retain_graph=True, allow_unused=True)
        return tuple(x.detach().new_zeros(x.shape) if g is None else g for g, x in zip(grads, inputs))

    seeds = [torch_function("randn_like")(output.detach()) for _ in range(2)]
    _compare_batched(vjp, seeds, number, _BATCHED)


def _check_zero_seeds(outputs: Sequence[Tensor], inputs: Sequence[Tensor], masked: bool) -> None:
    """Checks that gradients are zero for zero incoming gradients."""
    seeds = [torch_function("zeros_like")(o.detach()) for o in outputs]
    for g, x in zip(grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True), inputs):
        if g is None:
            continue
        if not (close(g, g.new_zeros(g.shape), 1e-5, 1e-8) if masked else bool((g == 0).all())):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def _without_gradient(t: Tensor) -> Tensor:
    """A copy whose node discards the gradient, so that backward of ``t`` gets None."""
    with no_grad():
        copy = t.clone()
    set_history(UndefinedGradBackward(), (t,), (copy,))
    return copy


_NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


def _check_undefined(func: Callable[..., Any], inputs: tuple, differentiated: Sequence[Tensor]) -> None:
    """Checks that backward handles missing gradients, all of them or one."""
    count = len(differentiable(func(*inputs)))
    for missing in [range(count), *([[i] for i in range(count)] if count > 1 else [])]:
        outputs = differentiable(func(*inputs))
        given = [_without_gradient(o) if i in missing else o for i, o in enumerate(outputs)]
        seeds = [torch_function("zeros_like")(o.detach()) for o in given]
        try:
            grads = grad(given, differentiated, seeds, allow_unused=True)
        except RuntimeError as error:
            _warn_undefined()
            raise GradcheckError(f"Expected backward function to handle undefined output grads. {_NOTES}") from error
        if any(g is not None and not bool((g == 0).all()) for g in grads):
            _warn_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                f"{_NOTES}"
            )


def _warn_undefined() -> None:
    warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature'
    )


def _check_undefined_forward(case: Case) -> None:
    """Checks that an argument without a tangent is treated as one with a zero tangent."""
    zeros_like = torch_function("zeros_like")
    generator = torch_function("Generator")()
    moved = {i: random_vector(case.inputs[i], generator).reshape(case.inputs[i].shape) for i in case.input_indices}
    for index in case.input_indices:
        found = []
        for zero in (True, False):
            with forward_ad.dual_level():
                given = [
                    forward_ad.make_dual(x.detach(), zeros_like(x) if i == index else moved[i])
                    if i in moved and (zero or i != index)
                    else x.detach()
                    if i == index
                    else x
                    for i, x in enumerate(case.inputs)
                ]
                found.append([forward_ad.unpack_dual(o).tangent for o in case.func(*given) if is_inexact_tensor(o)])
        for i, (one, other) in enumerate(zip(*found)):
            if one is not None and other is not None and not bool(torch_function("allclose")(one, other)):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {i} when input: {case.inputs[index]} has an "
                    f"undefined tangent value. Got: {one} but expected: {other}"
                )


# ---------------------------------------------------------------- public functions


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks the gradients of ``func`` against finite differences.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors.
        inputs: the arguments, one or a tuple; tensors that require grad are checked, and should be float64 or
            complex128.
        eps: the step of the differences.
        atol, rtol: the tolerances.
        raise_exception: whether to raise an error, rather than return False.
        nondet_tol: the tolerance between two backward passes.
        check_undefined_grad: whether missing gradients must be treated as zeros.
        check_grad_dtypes: whether gradients must have the arguments' dtypes.
        check_batched_grad, check_batched_forward_grad: whether to check gradients, or tangents, under ``vmap``.
        check_forward_ad, check_backward_ad: whether to check forward mode, and reverse mode.
        fast_mode: whether to compare products with random vectors rather than Jacobians.
        masked: for sparse inputs, whether to perturb only stored elements.

    Returns:
        True.

    Raises:
        GradcheckError: if derivatives are wrong.
        ValueError: if no input requires grad, and for sparse results.

    Example:
        >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: (x * x.sin()).sum(), x)
        True
    """
    for holds, text in (
        (
            check_forward_ad or check_backward_ad,
            "Expected at least one of check_forward_ad or check_backward_ad to be True",
        ),
        (
            check_backward_ad or not check_batched_grad,
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            check_forward_ad or not check_batched_forward_grad,
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
    ):
        if not holds:
            raise AssertionError(text)
    check = Check(eps, atol, rtol, nondet_tol, check_grad_dtypes, check_undefined_grad, fast_mode, masked)
    try:
        given = as_tuple(inputs)
        if any(isinstance(x, Tensor) and x.is_sparse for x in given):
            func, given = _densified(func, given, masked)
        _check_inputs(given)
        for case in cases(check, func, given, check_backward_ad, check_forward_ad):
            case.run()
            if case.forward and check_undefined_grad:
                _check_undefined_forward(case)
        if check_batched_forward_grad:
            _check_batched_forward(func, given)
        if check_backward_ad:
            _check_backward(func, given, check, check_batched_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _densified(func: Callable[..., Any], inputs: tuple, masked: bool) -> tuple[Callable[..., Any], tuple]:
    """The function and its inputs, with sparse inputs replaced by dense tensors.

    The function raises ``ValueError`` if it returns sparse tensors.

    Args:
        masked: whether the dense tensors are the stored elements of sparse inputs, rather than all elements.
    """
    torch = names_of("torch")
    parts = {i: x.detach().coalesce() for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.is_sparse}

    def of_dense(*given: Any) -> Any:
        args = list(given)
        for i, part in parts.items():
            if masked:
                args[i] = torch["sparse_coo_tensor"](part.indices(), given[i], part.shape, is_coalesced=True)
            else:
                args[i] = given[i].to_sparse(part.sparse_dim())
        found = func(*args)
        if any(isinstance(t, Tensor) and t.is_sparse for t in as_tuple(found)):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                "of fn for gradcheck."
            )
        return found

    dense = {i: part.values() if masked else part.to_dense() for i, part in parts.items()}
    for i, x in dense.items():
        x.requires_grad_(inputs[i].requires_grad)
    return of_dense, tuple(dense.get(i, x) for i, x in enumerate(inputs))


def _check_inputs(inputs: tuple) -> None:
    needed = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for i, x in needed:
        if x.dtype not in (dtypes.float64, dtypes.complex128):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if any(stride == 0 and n > 1 for stride, n in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not needed:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check_backward(func: Callable[..., Any], inputs: tuple, check: Check, batched: bool) -> None:
    outputs = differentiable(func(*inputs))
    differentiated = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if batched:
        for i, o in enumerate(outputs):
            _check_batched(differentiated, o, i)
    if outputs:
        _check_zero_seeds(outputs, differentiated, check.masked)
        if check.check_undefined_grad:
            _check_undefined(func, inputs, differentiated)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks the second derivatives of ``func`` against finite differences.

    Args:
        grad_outputs: the gradients with respect to the outputs; random by default.
        gen_non_contig_grad_outputs: whether the random ones are noncontiguous.
        check_fwd_over_rev, check_rev_over_rev: the modes in which gradients are differentiated.

    The other arguments, the result and the errors are those of ``gradcheck``.

    Example:
        >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x**3, x, check_fwd_over_rev=True)
        True
    """
    for holds, text in (
        (
            check_fwd_over_rev or check_rev_over_rev,
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_undefined_grad,
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_batched_grad,
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ):
        if not holds:
            raise AssertionError(text)
    given = as_tuple(inputs)
    if grad_outputs is None:
        seeds = tuple(_seed(o, gen_non_contig_grad_outputs) for o in differentiable(func(*given)))
    else:
        seeds = as_tuple(grad_outputs)
    count = len(given)
    wanted = {i for i, x in enumerate((*given, *seeds)) if isinstance(x, Tensor) and x.requires_grad}

    def gradients(*args: Any) -> tuple:
        xs = [x.requires_grad_() if i in wanted else x for i, x in enumerate(args)]
        outputs = differentiable(func(*xs[:count]))
        inputs = [x for i, x in enumerate(xs[:count]) if i in wanted]
        found = grad(outputs, inputs, xs[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*given, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


def _seed(output: Tensor, strided: bool) -> Tensor:
    """A random gradient of an output, between -1 and 1."""
    dtype = output.dtype.to_real()
    real = lambda: output.detach().new_empty(output.shape, dtype=dtype).uniform_(-1, 1)
    seed = torch_function("complex")(real(), real()) if output.is_complex() else real()
    if strided and seed.numel() > 1:
        seed = torch_function("stack")([seed, seed], -1).select(-1, 0)
    return seed.detach().requires_grad_()
