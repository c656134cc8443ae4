"""``torch.nn.utils``: gradient clipping, parametrizations, pruning, packed sequences."""

from compat.nn.utils import clip_grad, convert_parameters, parametrizations, parametrize, rnn, stateless
from compat.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from compat.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from compat.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from compat.nn.utils.init import skip_init
from compat.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from compat.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from compat.nn.utils.weight_norm import remove_weight_norm, weight_norm
