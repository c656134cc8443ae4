"""``torch.func``: functional transforms of functions of tensors.

A tensor whose buffer is a funcgrad tracer makes every operation replay its program in the surrounding trace. So each
transform here wraps arrays as tensors on the way in and unwraps them on the way out; the rest is funcgrad's.
"""

from compat import levels
from compat.func import core as core
from compat.func.batching import vmap
from compat.func.debugging import debug_unwrap
from compat.func.followed import hook, know, mark
from compat.func.forward import jvp, linearize
from compat.func.functionalization import functionalize
from compat.func.jacobians import hessian, jacfwd, jacrev
from compat.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from compat.func.recording import lift
from compat.func.reverse import grad, grad_and_value, vjp

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

levels.set_lift(lift)
levels.set_following(mark, know, hook)
