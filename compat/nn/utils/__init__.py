"""``torch.nn.utils``: gradients and parameters taken together, sequences of different lengths."""

from compat.nn.utils import clip_grad, convert_parameters, rnn, stateless
from compat.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from compat.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
