"""The layers, and what holds them."""

from compat.nn.modules import (
    activation,
    adaptive_softmax,
    rrelu,
    embedding_bag,
    losses,
    distance,
    transformer,
    attention,
    batchnorm,
    container,
    conv,
    dropout,
    flatten,
    folding,
    lazy,
    linear,
    linear_cross_entropy,
    loss,
    normalization,
    padding,
    pooling,
    resampling,
    unpooling,
    rnn,
    sparse,
)
from compat.nn.modules.module import Module
from compat.nn.modules.container import ModuleDict, ModuleList, Sequential
from compat.nn.modules.parameters import ParameterDict, ParameterList
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
from compat.nn.modules.attention import *
from compat.nn.modules.transformer import *
from compat.nn.modules.distance import *
from compat.nn.modules.losses import *
from compat.nn.modules.linear_cross_entropy import *
from compat.nn.modules.embedding_bag import *
from compat.nn.modules.rrelu import *
from compat.nn.modules.adaptive_softmax import *
from compat.nn.modules.folding import *
from compat.nn.modules.resampling import *
from compat.nn.modules.unpooling import *
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
__all__ += attention.__all__
__all__ += transformer.__all__
__all__ += distance.__all__
__all__ += losses.__all__
__all__ += linear_cross_entropy.__all__
__all__ += embedding_bag.__all__
__all__ += rrelu.__all__
__all__ += adaptive_softmax.__all__
__all__ += folding.__all__
__all__ += resampling.__all__
__all__ += unpooling.__all__
__all__ += [name for name in lazy.__all__ if name != "LazyModuleMixin"]

#: What PyTorch has in other modules than those where it is here.
_ADDRESSES = {
    activation: "MultiheadAttention RReLU",
    batchnorm: "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
    container: "ParameterDict ParameterList",
    conv: "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    linear: "Bilinear LazyLinear",
    loss: " ".join([*losses.__all__, "LinearCrossEntropyLoss"]),
    pooling: "LPPool1d LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    sparse: "EmbeddingBag",
}
for _module, _names in _ADDRESSES.items():
    for _name in _names.split():
        setattr(_module, _name, globals()[_name])
