"""Layers and containers."""

from compat.nn.modules import (
    activation,
    adaptive,
    _rrelu,
    _embedding_bag,
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
    _linear_cross_entropy,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    upsampling,
    _unpooling,
    rnn,
    sparse,
)
from compat.nn.modules.module import Module
from compat.nn.modules.container import ModuleDict, ModuleList, Sequential
from compat.nn.modules._parameters import ParameterDict, ParameterList
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
from compat.nn.modules._linear_cross_entropy import *
from compat.nn.modules._embedding_bag import *
from compat.nn.modules._rrelu import *
from compat.nn.modules.adaptive import *
from compat.nn.modules.fold import *
from compat.nn.modules.upsampling import *
from compat.nn.modules._unpooling import *
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
__all__ += _linear_cross_entropy.__all__
__all__ += _embedding_bag.__all__
__all__ += _rrelu.__all__
__all__ += adaptive.__all__
__all__ += fold.__all__
__all__ += upsampling.__all__
__all__ += _unpooling.__all__
__all__ += [name for name in lazy.__all__ if name != "LazyModuleMixin"]

#: Classes that PyTorch defines in other modules than this package does.
_ADDRESSES = {
    activation: "MultiheadAttention RReLU",
    batchnorm: "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
    container: "ParameterDict ParameterList",
    conv: "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    linear: "Bilinear LazyLinear",
    loss: " ".join([*_losses.__all__, "LinearCrossEntropyLoss"]),
    pooling: "LPPool1d LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    sparse: "EmbeddingBag",
}
for _module, _names in _ADDRESSES.items():
    for _name in _names.split():
        setattr(_module, _name, globals()[_name])
