"""The contents of files of whole modules and schedulers, in addition to the tests of their classes.

``tests/ecosystem/whole_objects.py`` saves 66 of them under PyTorch and compat and loads them under the other.
"""

from __future__ import annotations

import io
import pickle
import pickletools

import compat as torch
from compat import nn


def _strings(file: io.BytesIO) -> set[str]:
    import zipfile

    with zipfile.ZipFile(file) as archive:
        data = next(archive.read(n) for n in archive.namelist() if n.endswith("data.pkl"))
    return {arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)}


def test_transformer_layers_have_the_attributes_of_the_fast_path() -> None:
    file = io.BytesIO()
    torch.save(nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"), file)
    assert "activation_relu_or_gelu" in _strings(file)
    file.seek(0)
    assert torch.load(file, weights_only=False).activation_relu_or_gelu == 2


def test_a_cyclic_schedule_names_its_function_as_pytorch_does() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2, mode="exp_range", gamma=0.9)
    file = io.BytesIO()
    torch.save(schedule, file)
    strings = _strings(file)
    # A function of a class is an attribute of it, not a name with a dot, which old protocols do not have.
    assert "_exp_range_scale_fn" in strings and not any("CyclicLR._" in s for s in strings)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert again.scale_fn(2) == schedule.scale_fn(2) == 0.9**2
    assert pickle.loads(pickle.dumps(schedule)).scale_fn(3) == schedule.scale_fn(3)
    assert "_scale_fn_ref" not in schedule.state_dict()
