"""Named tensors of a module and its submodules, as packages exchange them."""

from __future__ import annotations

import pytest

import compat as torch
from compat import nn
from compat.nn.utils._named_member_accessor import NamedMemberAccessor, swap_submodule, swap_tensor


def test_tensors_and_modules_are_exchanged() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    members = NamedMemberAccessor(net)
    weight, other = net[0].weight, torch.zeros(2, 2)
    assert members.swap_tensor("0.weight", other) is weight and net[0].weight is other
    assert members.get_tensor("1.running_mean") is net[1].running_mean
    members.set_tensors_dict({"0.weight": weight})
    assert net[0].weight is weight and dict(net.named_parameters())["0.weight"] is weight
    missing, unexpected = members.check_keys(["0.weight", "x"])
    assert "0.bias" in missing and unexpected == ["x"]
    members.del_tensor("0.bias")
    with pytest.raises(AttributeError, match="Linear has no attribute `bias`"):
        members.get_tensor("0.bias")
    new = nn.Identity()
    assert isinstance(swap_submodule(net, "0", new), nn.Linear) and net[0] is new
    with pytest.raises(AttributeError, match="Sequential has no attribute `nothing`"):
        swap_tensor(net, "nothing", other)
    with pytest.raises(KeyError, match="tensor name can"):
        swap_tensor(net, "0.weight", other)
    with pytest.raises(RuntimeError, match="Missing key"):
        members.swap_tensors_dict({"absent": other})
