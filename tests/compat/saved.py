"""Objects that tests save and load: all kinds of contents of a checkpoint, made with either PyTorch."""

from __future__ import annotations

from typing import Any


def contents(torch: Any) -> dict[str, Any]:
    """Tensors of many dtypes and layouts, containers, state dicts."""
    torch.manual_seed(0)
    base, marked = torch.arange(8.0), torch.ones(2)
    marked.note = 3
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.5)
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 0.25)
    optimizer.step()
    pair = torch.tensor([1 + 2j, 3 - 1j])
    return {
        "base": base,
        "every second": base[2:6:2],
        "matrix": base.view(2, 4),
        "transposed": base.view(2, 4).t(),
        "expanded": torch.ones(1).expand(2, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "buffer": torch.nn.Buffer(torch.ones(1)),
        "marked": marked,
        "leaf": torch.ones(1, requires_grad=True),
        "bfloat16": torch.ones(2, dtype=torch.bfloat16),
        "float16": torch.ones(2, dtype=torch.float16),
        "bool": torch.tensor([True, False]),
        "int64": torch.tensor(-5),
        "uint16": torch.tensor([1, 65535]).to(torch.uint16),
        "conjugate": pair.conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
        "empty": torch.zeros(0, 3),
        "plain": [1, 2.5, "s", None, (True,), {3}, b"x", bytearray(b"y"), 1j],
        "kinds": [torch.float64, torch.device("cpu"), torch.Size([1, 2]), torch.strided],
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
    }


def described(torch: Any, value: Any) -> Any:
    """A loaded object as plain data: for tensors the class, dtype, size, strides, offset, attributes, values."""
    if isinstance(value, torch.Tensor):
        place = [list(value.shape), list(value.stride()), value.storage_offset(), value.untyped_storage().nbytes()]
        marks = [value.requires_grad, value.is_conj(), value.is_neg(), sorted(value.__dict__)]
        return [type(value).__name__, str(value.dtype), *place, *marks, str(value.detach().tolist())]
    if isinstance(value, dict):
        held = {str(k): described(torch, v) for k, v in value.items()}
        return [type(value).__name__, held, described(torch, getattr(value, "_metadata", None))]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [described(torch, v) for v in value]]
    return repr(value)
