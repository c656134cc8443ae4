"""``torch.export.passes``: changes of exported programs."""

from __future__ import annotations

from typing import Any

from compat._core.pytree.trees import tree_map
from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device as Device
from compat.export._program import ExportedProgram
from compat.nn.parameter import Parameter

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep: ExportedProgram, location: Device | str | dict[str, str]) -> ExportedProgram:
    """Moves a program to a device: its weights, its example arguments, and the tensors that it creates.

    Args:
        ep: the program, which is changed.
        location: the device, or by the names of the devices that it uses the new ones; others stay.

    Example:
        >>> from compat.export.passes import move_to_device_pass
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> move_to_device_pass(program, "meta").state_dict["weight"].device
        device(type='meta')
    """

    def new(at: Any) -> str:
        return location.get(str(at), str(at)) if isinstance(location, dict) else str(location)

    def moved(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        to = x.to(new(x.device))
        return Parameter(to, x.requires_grad) if isinstance(x, Parameter) else to

    for tensors in (ep.state_dict, ep.constants):
        tensors.update({name: moved(t) for name, t in tensors.items()})
    ep.example_inputs = tree_map(moved, ep.example_inputs)
    for node in ep.graph.nodes:
        if node.kwargs.get("device") is not None:
            node.kwargs = {**node.kwargs, "device": new(node.kwargs["device"])}
    ep.graph_module.recompile()
    ep._compiled = None
    return ep
