"""``torch._dynamo.backends.common``: backends made of compilers of forward and backward graphs."""

from __future__ import annotations

from typing import Any

__all__ = ["AotAutograd", "aot_autograd"]


class AotAutograd:
    """A backend of ``torch.compile`` made of compilers of graphs of ``aten`` operators.

    Args:
        kwargs: options of ``aot_module_simplified``.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
        from compat._functorch.aot_autograd import aot_module_simplified

        if kwargs:
            raise TypeError(f"aot_autograd-based backend ignoring extra kwargs {kwargs}")
        return aot_module_simplified(gm, example_inputs, **self.kwargs)


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """A backend of ``torch.compile`` made of compilers of the forward and of the backward graph.

    Args:
        kwargs: ``fw_compiler``, ``bw_compiler`` and the other options of ``functorch.compile.aot_module_simplified``.

    Example:
        >>> from compat.func._functorch.compile import make_boxed_func
        >>> from compat._dynamo.backends.common import aot_autograd
        >>> def count(module, inputs):
        ...     print(len([n for n in module.graph.nodes if n.op == "call_function"]), "operators")
        ...     return make_boxed_func(module.forward)
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.compile(lambda x: x.sin().cos(), backend=aot_autograd(fw_compiler=count))(x).sum().backward()
        2 operators
        5 operators
    """
    return AotAutograd(**kwargs)
