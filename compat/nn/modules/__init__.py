"""Layers and containers."""

from compat.nn.modules import (
    activation,
    adaptive,
    _losses,
    distance,
    transformer,
    _multihead_attention,
    batchnorm,
    channelshuffle,
    container,
    conv,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    upsampling,
    rnn,
    sparse,
)
from compat.nn.modules.module import Module
from compat.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from compat.nn.modules.linear import *
from compat.nn.modules.conv import *
from compat.nn.modules.activation import *
from compat.nn.modules.pooling import *
from compat.nn.modules.dropout import *
from compat.nn.modules.batchnorm import *
from compat.nn.modules.normalization import *
from compat.nn.modules.sparse import *
from compat.nn.modules.flatten import *
from compat.nn.modules.padding import *
from compat.nn.modules.loss import *
from compat.nn.modules.rnn import *
from compat.nn.modules._multihead_attention import *
from compat.nn.modules.transformer import *
from compat.nn.modules.distance import *
from compat.nn.modules._losses import *
from compat.nn.modules.adaptive import *
from compat.nn.modules.fold import *
from compat.nn.modules.upsampling import *
from compat.nn.modules.lazy import *

__all__ = ["Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
__all__ += linear.__all__
__all__ += conv.__all__
__all__ += activation.__all__
__all__ += pooling.__all__
__all__ += dropout.__all__
__all__ += batchnorm.__all__
__all__ += normalization.__all__
__all__ += sparse.__all__
__all__ += flatten.__all__
__all__ += padding.__all__
__all__ += loss.__all__
__all__ += rnn.__all__
__all__ += _multihead_attention.__all__
__all__ += transformer.__all__
__all__ += distance.__all__
__all__ += _losses.__all__
__all__ += adaptive.__all__
__all__ += fold.__all__
__all__ += upsampling.__all__
__all__ += [name for name in lazy.__all__ if name != "LazyModuleMixin"]

#: Classes that PyTorch defines in other modules than this package does.
_ADDRESSES = {
    activation: ["MultiheadAttention"],
    batchnorm: ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"],
    conv: [f"LazyConv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)],
    linear: ["LazyLinear"],
    loss: _losses.__all__,
}
for _module, _names in _ADDRESSES.items():
    for _name in _names:
        setattr(_module, _name, globals()[_name])
