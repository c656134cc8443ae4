"""``torch.library``: operations of the user's own, with kernels, gradients and rules for ``vmap``.

Example:
    >>> import numpy as np
    >>> @torch.library.custom_op("docs::sine", mutates_args=())
    ... def sine(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(np.sin(x.numpy(force=True)))
    >>> sine.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.ops.docs.sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
"""

from compat.library._opcheck import OpCheckError, opcheck
from compat.library._custom_op import CustomOpDef, custom_op
from compat.library._infer_schema import infer_schema
from compat.library._tags import Tag
from compat.library._registration import (
    Library,
    _scoped_library,
    define,
    fallthrough_kernel,
    get_ctx,
    impl,
    impl_abstract,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "Tag",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]
