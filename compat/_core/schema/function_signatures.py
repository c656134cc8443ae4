"""How functions of ``torch`` may be called: what is looked at when a call has failed."""

from __future__ import annotations

from functools import cache

from compat._core.schema.method_signatures import known as methods
from compat._core.schema.method_signatures import listed
from compat._core.schema.namespace_signatures import LIKE_METHODS as OTHERS_LIKE_METHODS
from compat._core.schema.namespace_signatures import TAKING as OTHERS_TAKING
from compat._core.schema.namespace_signatures import WITH_OUT as OTHERS_WITH_OUT

#: Functions that are called as the methods of their names are, with the tensor first.
_LIKE_METHODS = """
    abs_ acos_ acosh_ adjoint allclose arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ argwhere as_strided
    as_strided_scatter asin_ asinh_ atan_ atanh_ bincount broadcast_to ceil_ chunk clamp_ clamp_max_ clamp_min_
    clip_ clone conj conj_physical_ corrcoef cos_ cosh_ count_nonzero cov deg2rad_ det detach detach_ diag_embed
    diagflat diagonal diagonal_scatter dist dsplit equal erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ flatten flip fliplr
    flipud floor_ frac_ gcd_ hsplit i0_ index_fill index_put index_put_ is_complex is_conj is_floating_point
    is_inference is_neg is_nonzero is_same_size is_signed isclose isfinite isinf isnan isreal lcm_ ldexp_ log10_
    log1p_ log2_ log_ logdet logit_ masked_fill masked_scatter matrix_exp moveaxis movedim nan_to_num_ narrow neg_
    negative_ numel permute pinverse positive prelu put rad2deg_ ravel reciprocal_ relu relu_ reshape resize_as_
    resolve_conj resolve_neg roll rot90 round_ rsqrt_ select select_scatter sigmoid_ sin_ sinc_ sinh_
    split_with_sizes sqrt_ square_ squeeze swapaxes swapdims t tan_ tanh_ tensor_split tile trace transpose trunc_
    unbind unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze vsplit xlogy_ zero_
"""
#: The same, which can write into ``out``.
_WITH_OUT = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmv addr all amax amin angle any arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax argmin asin asinh atan atan2 atanh bitwise_not ceil cholesky
    cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip conj_physical copysign cos cosh cross cumprod
    cumsum deg2rad diag diff digamma dot eq erf erfc erfinv exp exp2 expm1 fix floor fmax fmin fmod frac gather gcd
    ge ger greater greater_equal gt hardshrink heaviside histc hypot i0 igamma igammac index_add index_copy
    index_reduce index_select inner inverse isneginf isposinf kron lcm ldexp le lerp less less_equal lgamma log
    log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor
    logit logsumexp lt lu_solve masked_select matmul matrix_power maximum mean minimum msort mul multinomial mv
    mvlgamma nan_to_num nanmean nanquantile nansum narrow_copy ne neg negative nextafter nonzero_static not_equal
    orgqr ormqr outer quantile rad2deg reciprocal renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid
    sign signbit sin sinc sinh slice_scatter softmax sqrt square sub take take_along_dim tan tanh tril triu trunc
    vdot
"""
#: What those that make tensors take at the end.
_OPTIONS = (
    "torch.dtype? dtype = None, torch.layout? layout = None, torch.device? device = None, "
    "bool? pin_memory = False, bool? requires_grad = False"
)
#: The ways to call all others, as those of methods are written (``compat._core.schema.method_signatures``).
_TAKING = """\
(Number end, *, Tensor out = None, OPTIONS)
(Number start, Number end, *, OPTIONS)
(Number start, Number end, Number step = 1, *, Tensor out = None, OPTIONS)
    arange
(Number s, *, OPTIONS)
    scalar_tensor
(Tensor LU_data, Tensor LU_pivots, bool unpack_data = True, bool unpack_pivots = True, *, tuple of Tensors out = None)
    lu_unpack
(Tensor abs, Tensor angle, *, Tensor out = None)
    polar
(Tensor anchor, Tensor positive, Tensor negative, float margin = 1.0, float p = 2, float eps = 1e-06, \
bool swap = False, int reduction = at::Reduction::Mean)
    triplet_margin_loss
(Tensor condition)
(Tensor condition, Tensor input, Tensor other, *, Tensor out = None)
(Tensor condition, Number self, Tensor other)
(Tensor condition, Tensor input, Number other)
(Tensor condition, Number self, Number other)
    where
(Tensor count, Tensor prob, torch.Generator? generator = None)
    binomial
(Tensor data, Tensor batch_sizes, Tensor hx, tuple of Tensors params, bool has_biases, int num_layers, \
float dropout, bool train, bool bidirectional)
(Tensor input, Tensor hx, tuple of Tensors params, bool has_biases, int num_layers, float dropout, bool train, \
bool bidirectional, bool batch_first)
    gru rnn_relu rnn_tanh
(Tensor data, Tensor batch_sizes, tuple of Tensors hx, tuple of Tensors params, bool has_biases, int num_layers, \
float dropout, bool train, bool bidirectional)
(Tensor input, tuple of Tensors hx, tuple of Tensors params, bool has_biases, int num_layers, float dropout, \
bool train, bool bidirectional, bool batch_first)
    lstm
(Tensor data, str reduce, *, Tensor? lengths = None, Tensor? indices = None, Tensor? offsets = None, int axis = 0, \
bool unsafe = False, Number? initial = None)
    segment_reduce
(Tensor elements, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
(Number element, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
(Tensor elements, Number test_element, *, bool assume_unique = False, bool invert = False, Tensor out = None)
    isin
(Tensor input)
    imag real selu selu_ view_as_complex view_as_real
(Tensor input)
(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
    median nanmedian
(Tensor input, *, Tensor out = None)
    alias_copy detach_copy t_copy view_as_complex_copy view_as_real_copy
(Tensor input, *, Tensor out = None)
(Tensor input, Tensor other, *, Tensor out = None)
(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
    max min
(Tensor input, *, Tensor out = None)
(Tensor input, int dim, *, Tensor out = None)
(Tensor input, tuple of ints dim, *, Tensor out = None)
    squeeze_copy
(Tensor input, *, bool as_tuple = False, Tensor out = None)
    nonzero
(Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = None)
(Tensor input, int dim = -1, bool descending = False)
    argsort
(Tensor input, *, bool? stable, int dim = -1, bool descending = False, tuple of Tensors out = None)
(Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None)
    sort
(Tensor input, *, int? dim = None, bool keepdim = False, tuple of Tensors out = None)
    aminmax
(Tensor input, *, torch.Generator? generator = None, Tensor out = None)
(Tensor input, float p, *, torch.Generator? generator = None)
    bernoulli
(Tensor input, *, torch.Generator? generator, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, *, torch.memory_format? memory_format = None, OPTIONS)
    rand_like randn_like
(Tensor input, *, torch.dtype? dtype = None)
(Tensor input, int dim, bool keepdim = False, *, torch.dtype? dtype = None, Tensor out = None)
    prod
(Tensor input, *, torch.dtype? dtype = None)
(Tensor input, tuple of ints[1]? dim, bool keepdim = False, *, torch.dtype? dtype = None, Tensor out = None)
    sum
(Tensor input, *, torch.memory_format? memory_format = None, OPTIONS)
    empty_like ones_like zeros_like
(Tensor input, *, tuple of Tensors out = None)
    frexp geqrf slogdet
(Tensor input, *, tuple of ints dim, int edge_order = 1)
(Tensor input, *, Number spacing, tuple of ints dim, int edge_order = 1)
(Tensor input, *, Number? spacing = None, int? dim = None, int edge_order = 1)
(Tensor input, *, tuple of Scalars spacing, int? dim = None, int edge_order = 1)
(Tensor input, *, tuple of Scalars spacing, tuple of ints dim, int edge_order = 1)
(Tensor input, *, tuple of Tensors spacing, int? dim = None, int edge_order = 1)
(Tensor input, *, tuple of Tensors spacing, tuple of ints dim, int edge_order = 1)
    gradient
(Tensor input, Number alpha = 1.0)
    celu celu_
(Tensor input, Number fill_value, *, torch.memory_format? memory_format = None, OPTIONS)
    full_like
(Tensor input, Number lower = 0.125, Number upper = 0.3333333333333333, bool training = False, \
torch.Generator? generator = None)
    rrelu rrelu_
(Tensor input, Number threshold, Number value)
    threshold_
(Tensor input, Number threshold, Number value, *, Tensor out = None)
    threshold
(Tensor input, Tensor A, bool upper = True, bool transpose = False, bool unitriangular = False, *, \
tuple of Tensors out = None)
    triangular_solve
(Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
(Tensor input, Tensor batch1, Tensor batch2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, \
Tensor out = None)
    baddbmm
(Tensor input, Tensor bins, *, Tensor? weight = None, bool density = False, tuple of Tensors out = None)
(Tensor input, int bins = 100, *, tuple of floats? range = None, Tensor? weight = None, bool density = False, \
tuple of Tensors out = None)
    histogram
(Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, Tensor out = None)
(Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False)
    bucketize
(Tensor input, Tensor exponent, *, Tensor out = None)
(Number self, Tensor exponent, *, Tensor out = None)
(Tensor input, Number exponent, *, Tensor out = None)
    float_power pow
(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)
    grid_sampler grid_sampler_2d grid_sampler_3d
(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih = None, Tensor? b_hh = None)
    gru_cell rnn_relu_cell rnn_tanh_cell
(Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
(Tensor input, Tensor mat1, Tensor mat2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, \
Tensor out = None)
    addmm
(Tensor input, Tensor mat2, *, Tensor out = None)
(Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)
    bmm mm
(Tensor input, Tensor other, *, Number alpha = 1)
(Tensor input, Number other, Number alpha = 1)
    rsub
(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
(Tensor input, Number other, Number alpha = 1)
    subtract
(Tensor input, Tensor other, *, Tensor out = None)
(Number self, Tensor other)
(Tensor input, Number other, *, Tensor out = None)
    bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder
(Tensor input, Tensor other, *, Tensor out = None)
(Number self, Tensor other, *, Tensor out = None)
(Tensor input, Number other, *, Tensor out = None)
    xlogy
(Tensor input, Tensor other, *, Tensor out = None)
(Tensor input, Number other)
    floor_divide multiply true_divide
(Tensor input, Tensor other, *, Tensor out = None)
(Tensor input, Tensor other, *, str? rounding_mode, Tensor out = None)
(Tensor input, Number other)
(Tensor input, Number other, *, str? rounding_mode)
    divide
(Tensor input, Tensor other, *, Tensor out = None)
(Tensor input, Tensor other, *, str? rounding_mode, Tensor out = None)
(Tensor input, Number other, *, str? rounding_mode)
    div
(Tensor input, Tensor repeats, int? dim = None, *, int? output_size = None)
(Tensor repeats, *, int? output_size = None)
(Tensor input, int repeats, int? dim = None, *, int? output_size = None)
    repeat_interleave
(Tensor input, Tensor target, Tensor? weight = None, Tensor? pos_weight = None, int reduction = at::Reduction::Mean)
    binary_cross_entropy_with_logits
(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)
    poisson_nll_loss
(Tensor input, Tensor target, float margin = 1.0, int reduction = at::Reduction::Mean)
    hinge_embedding_loss
(Tensor input, Tensor target, int reduction = at::Reduction::Mean, *, bool log_target = False)
    kl_div
(Tensor input, Tensor value)
(Tensor input, Number value)
    fill
(Tensor input, Tensor weight, Tensor bias, int pad = 0)
    conv_tbc
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[1] stride = 1, tuple of ints[1] padding = 0, \
tuple of ints[1] dilation = 1, int groups = 1)
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[1] stride = 1, str padding = "valid", \
tuple of ints[1] dilation = 1, int groups = 1)
    conv1d
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[1] stride = 1, tuple of ints[1] padding = 0, \
tuple of ints[1] output_padding = 0, int groups = 1, tuple of ints[1] dilation = 1)
    conv_transpose1d
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[2] stride = 1, tuple of ints[2] padding = 0, \
tuple of ints[2] dilation = 1, int groups = 1)
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[2] stride = 1, str padding = "valid", \
tuple of ints[2] dilation = 1, int groups = 1)
    conv2d
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[2] stride = 1, tuple of ints[2] padding = 0, \
tuple of ints[2] output_padding = 0, int groups = 1, tuple of ints[2] dilation = 1)
    conv_transpose2d
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[3] stride = 1, tuple of ints[3] padding = 0, \
tuple of ints[3] dilation = 1, int groups = 1)
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[3] stride = 1, str padding = "valid", \
tuple of ints[3] dilation = 1, int groups = 1)
    conv3d
(Tensor input, Tensor weight, Tensor? bias = None, tuple of ints[3] stride = 1, tuple of ints[3] padding = 0, \
tuple of ints[3] output_padding = 0, int groups = 1, tuple of ints[3] dilation = 1)
    conv_transpose3d
(Tensor input, Tensor weight, Tensor? bias, tuple of ints stride, tuple of ints padding, tuple of ints dilation, \
bool transposed, tuple of ints output_padding, int groups)
    convolution
(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, \
float momentum, float eps, *, tuple of Tensors out = None)
    native_batch_norm
(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, \
float momentum, float eps, bool cudnn_enabled)
    batch_norm
(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps)
    native_group_norm
(Tensor input, bool some = True, *, tuple of Tensors out = None)
    qr
(Tensor input, bool some = True, bool compute_uv = True, *, tuple of Tensors out = None)
    svd
(Tensor input, float p = 2)
    pdist
(Tensor input, float p, bool train)
    alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout
    feature_dropout_
(Tensor input, int bins, tuple of floats? range = None, Tensor? weight = None, bool density = False)
(Tensor input, tuple of ints bins, tuple of floats? range = None, Tensor? weight = None, bool density = False)
(Tensor input, tuple of Tensors bins, tuple of floats? range = None, Tensor? weight = None, bool density = False)
    histogramdd
(Tensor input, int dim = -1, bool keepdim = False, *, tuple of Tensors out = None)
    mode
(Tensor input, int dim = 0, *, tuple of Tensors out = None)
    unbind_copy
(Tensor input, int dim = 0, int? start = None, int? end = None, int step = 1, *, Tensor out = None)
    slice_copy
(Tensor input, int dim, *, Tensor out = None)
    unsqueeze_copy
(Tensor input, int dim, *, tuple of Tensors out = None)
    cummax cummin
(Tensor input, int dim, int index, *, Tensor out = None)
    select_copy
(Tensor input, int dim, tuple of ints sizes)
    unflatten
(Tensor input, int dim0, int dim1, *, Tensor out = None)
    transpose_copy
(Tensor input, int dimension, int size, int step, *, Tensor out = None)
    unfold_copy
(Tensor input, int downscale_factor)
    pixel_unshuffle
(Tensor input, int groups)
    channel_shuffle
(Tensor input, int k, int dim = -1, bool keepdim = False, *, tuple of Tensors out = None)
    kthvalue
(Tensor input, int k, int dim = -1, bool largest = True, bool sorted = True, *, tuple of Tensors out = None)
    topk
(Tensor input, int low, int high, *, torch.Generator? generator, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, int low, int high, *, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, Tensor high, *, torch.Generator? generator, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, Tensor high, *, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, int high, *, torch.Generator? generator, torch.memory_format? memory_format = None, OPTIONS)
(Tensor input, int high, *, torch.memory_format? memory_format = None, OPTIONS)
    randint_like
(Tensor input, int n_fft, int? hop_length = None, int? win_length = None, Tensor? window = None, bool center = True, \
bool normalized = False, bool? onesided = None, int? length = None, bool return_complex = False)
    istft
(Tensor input, int num_groups, Tensor? weight = None, Tensor? bias = None, float eps = 1e-05, \
bool cudnn_enabled = True)
    group_norm
(Tensor input, int offset = 0, int dim1 = 0, int dim2 = 1, *, Tensor out = None)
    diagonal_copy
(Tensor input, int r = 2, bool with_replacement = False)
    combinations
(Tensor input, int split_size, int dim = 0, *, tuple of Tensors out = None)
    split_copy
(Tensor input, int upscale_factor)
    pixel_shuffle
(Tensor input, torch.Generator? generator = None)
    poisson
(Tensor input, torch.dtype dtype, *, Tensor out = None)
(Tensor input, tuple of ints size, *, Tensor out = None)
    view_copy
(Tensor input, tuple of Tensors hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih = None, Tensor? b_hh = None)
    lstm_cell
(Tensor input, tuple of ints dims, *, Tensor out = None)
    permute_copy
(Tensor input, tuple of ints normalized_shape, Tensor? weight = None, Tensor? bias = None, float eps = 1e-05, \
bool cudnn_enable = True)
    layer_norm
(Tensor input, tuple of ints normalized_shape, Tensor? weight = None, float? eps = None)
    rms_norm
(Tensor input, tuple of ints normalized_shape, Tensor? weight, Tensor? bias, float eps)
    native_layer_norm
(Tensor input, tuple of ints pad, Number value = 0)
    constant_pad_nd
(Tensor input, tuple of ints size, *, bool implicit = False, Tensor out = None)
    expand_copy
(Tensor input, tuple of ints size, tuple of ints stride, int? storage_offset = None, *, Tensor out = None)
    as_strided_copy
(Tensor input, tuple of ints split_sizes, int dim = 0, *, tuple of Tensors out = None)
    split_with_sizes_copy
(Tensor input, tuple of ints[1] kernel_size, tuple of ints[1] stride = None, tuple of ints[1] padding = 0, \
bool ceil_mode = False, bool count_include_pad = True)
    avg_pool1d
(Tensor input, tuple of ints[1] kernel_size, tuple of ints[1] stride = None, tuple of ints[1] padding = 0, \
tuple of ints[1] dilation = 1, bool ceil_mode = False)
    max_pool1d max_pool1d_with_indices
(Tensor input, tuple of ints[1] output_size)
    adaptive_avg_pool1d adaptive_max_pool1d
(Tensor input, tuple of ints[1]? dim, bool unbiased = True, bool keepdim = False)
(Tensor input, tuple of ints[1]? dim = None, *, Number? correction = None, bool keepdim = False)
(Tensor input, bool unbiased = True)
    std_mean var_mean
(Tensor input, tuple of ints[1]? dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None)
(Tensor input, tuple of ints[1]? dim = None, *, Number? correction = None, bool keepdim = False, Tensor out = None)
(Tensor input, bool unbiased = True)
    std var
(Tensor input, tuple of ints[2] kernel_size, tuple of ints[2] stride = None, tuple of ints[2] padding = 0, \
tuple of ints[2] dilation = 1, bool ceil_mode = False)
    max_pool2d
(Tensor input, tuple of ints[3] kernel_size, tuple of ints[3] stride = None, tuple of ints[3] padding = 0, \
tuple of ints[3] dilation = 1, bool ceil_mode = False)
    max_pool3d
(Tensor input1, Tensor input2, Tensor target, float margin = 0.0, int reduction = at::Reduction::Mean)
    cosine_embedding_loss margin_ranking_loss
(Tensor input1, Tensor input2, Tensor weight, Tensor? bias = None)
    bilinear
(Tensor log_probs, Tensor targets, tuple of ints input_lengths, tuple of ints target_lengths, int blank = 0, \
int reduction = at::Reduction::Mean, bool zero_infinity = False)
(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank = 0, \
int reduction = at::Reduction::Mean, bool zero_infinity = False)
    ctc_loss
(Tensor mean, Tensor std, *, torch.Generator? generator = None, Tensor out = None)
(Tensor mean, float std = 1, *, torch.Generator? generator = None, Tensor out = None)
(float mean, Tensor std, *, torch.Generator? generator = None, Tensor out = None)
(float mean, float std, tuple of ints size, *, torch.Generator? generator = None, Tensor out = None, OPTIONS)
    normal
(Tensor real, Tensor imag, *, Tensor out = None)
    complex
(Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = False, str? side = None, \
Tensor? sorter = None, Tensor out = None)
(Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = False, str? side = None, \
Tensor? sorter = None, Tensor out = None)
    searchsorted
(Tensor start, Tensor end, int steps, *, Tensor out = None, OPTIONS)
(Number start, Tensor end, int steps, *, Tensor out = None, OPTIONS)
(Tensor start, Number end, int steps, *, Tensor out = None, OPTIONS)
(Number start, Number end, int steps, *, Tensor out = None, OPTIONS)
    linspace
(Tensor start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, OPTIONS)
(Number start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, OPTIONS)
(Tensor start, Number end, int steps, float base = 10.0, *, Tensor out = None, OPTIONS)
(Number start, Number end, int steps, float base = 10.0, *, Tensor out = None, OPTIONS)
    logspace
(Tensor tensor, Tensor other)
(Number scalar, Tensor tensor)
(Tensor tensor, Number other)
(Number scalar1, Number scalar2)
    result_type
(Tensor theta, tuple of ints size, bool align_corners)
    affine_grid_generator
(Tensor v, int pow = 2, int dim = 0)
    norm_except_dim
(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, \
Tensor? per_sample_weights, bool include_last_offset, int? padding_idx)
(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq = False, int mode = 0, bool sparse = False, \
Tensor? per_sample_weights = None, bool include_last_offset = False)
    embedding_bag
(Tensor weight, Tensor indices, int padding_idx = -1, bool scale_grad_by_freq = False, bool sparse = False)
    embedding
(Tensor x, int? N = None, bool increasing = False)
    vander
(Tensor x1, Tensor x2, float p = 2, float eps = 1e-06, bool keepdim = False)
    pairwise_distance
(Tensor x1, Tensor x2, int dim = 1, float eps = 1e-08)
    cosine_similarity
(Tensor y, *, float dx = 1, int dim = -1)
(Tensor y, Tensor x, *, int dim = -1)
    trapz
(Tensor y, Tensor x, *, int dim = -1)
(Tensor y, *, Number dx = 1, int dim = -1)
    cumulative_trapezoid trapezoid
(int high, tuple of ints size, *, torch.Generator? generator, Tensor out = None, OPTIONS)
(int high, tuple of ints size, *, Tensor out = None, OPTIONS)
(int low, int high, tuple of ints size, *, torch.Generator? generator, Tensor out = None, OPTIONS)
(int low, int high, tuple of ints size, *, Tensor out = None, OPTIONS)
    randint
(int n, *, Tensor out = None, OPTIONS)
(int n, int m, *, Tensor out = None, OPTIONS)
    eye
(int n, *, torch.Generator? generator, Tensor out = None, OPTIONS)
(int n, *, Tensor out = None, OPTIONS)
    randperm
(int n, Tensor input, *, Tensor out = None)
    polygamma
(int row, int col, int offset = 0, *, OPTIONS)
    tril_indices triu_indices
(int window_length, *, OPTIONS)
(int window_length, bool periodic, *, OPTIONS)
    bartlett_window blackman_window hann_window
(int window_length, *, OPTIONS)
(int window_length, bool periodic, *, OPTIONS)
(int window_length, bool periodic, float alpha, *, OPTIONS)
(int window_length, bool periodic, float alpha, float beta, *, OPTIONS)
    hamming_window
(int window_length, *, OPTIONS)
(int window_length, bool periodic, *, OPTIONS)
(int window_length, bool periodic, float beta, *, OPTIONS)
    kaiser_window
(str filename, bool? shared = None, int? size = 0, *, OPTIONS)
    from_file
(torch.dtype from_, torch.dtype to)
    can_cast
(torch.dtype type1, torch.dtype type2)
    promote_types
(tuple of Tensors tensors, *, Tensor out = None)
    column_stack dstack hstack row_stack vstack
(tuple of Tensors tensors, int dim = 0, *, Tensor out = None)
    cat concat concatenate stack
(tuple of ints size, *, Tensor out = None, OPTIONS)
    ones zeros
(tuple of ints size, *, torch.Generator? generator, Tensor out = None, OPTIONS)
(tuple of ints size, *, Tensor out = None, OPTIONS)
    rand randn
(tuple of ints size, *, torch.memory_format? memory_format = None, Tensor out = None, OPTIONS)
    empty
(tuple of ints size, Number fill_value, *, Tensor out = None, OPTIONS)
    full
(tuple of ints size, tuple of ints physical_layout, *, OPTIONS)
    empty_permuted
(tuple of ints size, tuple of ints stride, *, OPTIONS)
    empty_strided
"""


def _after_tensor(taken: str, out: bool) -> str:
    """A method's signature as its function's."""
    whole = f"Tensor input, {taken}" if taken else "Tensor input"
    if not out:
        return whole
    return f"{whole}, {'' if '*' in whole.split(', ') else '*, '}Tensor out = None"


@cache
def known() -> dict[str, tuple[str, ...]]:
    """The signatures of each function, by where it is: ``torch.sum``, ``linalg.norm``, ``nn.functional.gelu``."""
    found = {}
    for names, out in (
        (_LIKE_METHODS, False), (OTHERS_LIKE_METHODS, False), (_WITH_OUT, True), (OTHERS_WITH_OUT, True),
    ):  # fmt: skip
        for name in names.split():
            taken = methods()[name.rpartition(".")[2]] or ("",)
            found[name] = tuple(_after_tensor(text, out) for text in taken)
    for text in (_TAKING, OTHERS_TAKING):
        found |= listed(text.replace("OPTIONS", _OPTIONS))
    return {name if "." in name else f"torch.{name}": texts for name, texts in found.items()}
