"""``torch.func``: function transforms.

A tensor whose buffer is a funcgrad tracer replays the program of every operation into the trace. So each transform here
wraps arrays as tensors for the function, unwraps its results, and calls the transform of funcgrad.
"""

from compat._core.transforms import level_stack
from compat.func._vmap import vmap
from compat.func._debugging import debug_unwrap
from compat.func._grad_nodes import hook, record_edge, mark
from compat.func._forward import jvp, linearize
from compat.func._functionalize import functionalize
from compat.func._jacobians import hessian, jacfwd, jacrev
from compat.func._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from compat.func._recording import lift
from compat.func._reverse import grad, grad_and_value, vjp

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

level_stack.set_lift(lift)
level_stack.set_following(mark, record_edge, hook)
