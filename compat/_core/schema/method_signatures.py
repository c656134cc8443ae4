"""How tensors' methods may be called: what is looked at when a call has failed."""

from __future__ import annotations

from functools import cache

#: Methods that also take what messages do not list, since it is written otherwise today.
OLDER = frozenset(
    [
        "add", "add_", "addbmm", "addbmm_", "addcdiv", "addcdiv_", "addcmul", "addcmul_", "addmm", "addmm_",
        "addmv", "addmv_", "addr", "addr_", "baddbmm", "baddbmm_", "copy_", "sub", "sub_", "type",
    ]
)  # fmt: skip
#: Methods that take nothing.
_NOTHING = """
    abs abs_ absolute absolute_ acos acos_ acosh acosh_ adjoint angle arccos arccos_ arccosh arccosh_ arcsin
    arcsin_ arcsinh arcsinh_ arctan arctan_ arctanh arctanh_ argwhere asin asin_ asinh asinh_ atan atan_ atanh
    atanh_ bitwise_not bitwise_not_ ceil ceil_ coalesce conj conj_physical conj_physical_ const_data_ptr corrcoef
    cos cos_ cosh cosh_ data_ptr deg2rad deg2rad_ dense_dim dequantize det detach detach_ digamma digamma_ dim
    element_size erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expm1 expm1_ fix fix_ fliplr flipud floor
    floor_ frac frac_ frexp geqrf get_device i0 i0_ indices inverse is_coalesced is_complex is_conj is_distributed
    is_floating_point is_inference is_neg is_nonzero is_signed isfinite isinf isnan isneginf isposinf isreal item
    lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_ log_ logdet logical_not logical_not_ matrix_exp msort
    ndimension neg neg_ negative negative_ nelement numel positive rad2deg rad2deg_ ravel reciprocal reciprocal_
    relu relu_ resolve_conj resolve_neg retain_grad rsqrt rsqrt_ sgn sgn_ sigmoid sigmoid_ sign sign_ signbit sin
    sin_ sinc sinc_ sinh sinh_ slogdet sparse_dim sqrt sqrt_ square square_ storage_offset t t_ tan tan_ tanh
    tanh_ tolist trace trunc trunc_ values zero_
"""
#: The ways to call methods, in the order in which messages list them, and below them the methods. Types are written as
#: messages write them, and more: ``?`` for what may be None, ``[1]`` for a sequence that one number may stand for.
_TAKING = """\
()
(*, bool as_tuple)
    nonzero
()
(*, int decimals)
    round round_
()
(Tensor other)
(int dim, bool keepdim = False)
    max min
()
(int dim)
(tuple of ints dim)
    squeeze squeeze_
()
(int dim, bool keepdim = False)
    median nanmedian
()
(tuple of ints? dim = None, bool keepdim = False)
(int dim, bool keepdim = False)
    all any
(*, bool force = False)
    numpy
(*, bool stable, int dim = -1, bool descending = False)
(int dim = -1, bool descending = False)
    argsort
(*, bool? stable, int dim = -1, bool descending = False)
(int dim = -1, bool descending = False)
    sort
(*, int correction = 1, Tensor? fweights = None, Tensor? aweights = None)
    cov
(*, int size, int fill_value = -1)
    nonzero_static
(*, int? dim = None, bool keepdim = False)
    aminmax
(*, torch.Generator? generator = None)
(float p, *, torch.Generator? generator = None)
    bernoulli
(*, torch.Generator? generator = None)
(int from, int? to, *, torch.Generator? generator = None)
(int to, *, torch.Generator? generator = None)
    random_
(*, torch.dtype? dtype = None)
(int dim, bool keepdim = False, *, torch.dtype? dtype = None)
    prod
(*, torch.dtype? dtype = None)
(tuple of ints[1]? dim, bool keepdim = False, *, torch.dtype? dtype = None)
    mean sum
(*, torch.memory_format memory_format = c10::MemoryFormat::Contiguous)
    contiguous
(*, torch.memory_format memory_format = torch.contiguous_format)
    is_contiguous
(*, torch.memory_format? memory_format = None)
    bfloat16 bool byte cdouble cfloat char clone cpu double float half int long short
(Number fill_value, bool wrap = False)
    fill_diagonal_
(Number lambd = 0.5)
    hardshrink
(Number p, int dim, Number maxnorm)
    renorm renorm_
(Tensor A, bool upper = True, bool transpose = False, bool unitriangular = False)
    triangular_solve
(Tensor LU_data, Tensor LU_pivots)
    lu_solve
(Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1)
    addbmm addbmm_ baddbmm baddbmm_
(Tensor bins, *, Tensor? weight = None, bool density = False)
(int bins = 100, *, tuple of floats? range = None, Tensor? weight = None, bool density = False)
    histogram
(Tensor condition, Tensor other)
(Tensor condition, Number other)
    where
(Tensor end, Tensor weight)
(Tensor end, Number weight)
    lerp lerp_
(Tensor exponent)
(Number exponent)
    float_power float_power_ pow pow_
(Tensor index)
    take
(Tensor index, Tensor source, bool accumulate = False)
    put put_
(Tensor indices, int? dim = None)
    take_along_dim
(Tensor input2)
    orgqr
(Tensor input2, Tensor input3, bool left = True, bool transpose = False)
    ormqr
(Tensor input2, bool upper = False)
    cholesky_solve
(Tensor mask)
    masked_select
(Tensor mask, Tensor source)
    masked_scatter masked_scatter_
(Tensor mask, Tensor value)
(Tensor mask, Number value)
    masked_fill masked_fill_
(Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1)
    addmv addmv_
(Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1)
    addmm addmm_
(Tensor mat2)
    bmm mm
(Tensor max)
(Number max)
    clamp_max clamp_max_
(Tensor min)
(Number min)
    clamp_min clamp_min_
(Tensor other)
    arctan2 arctan2_ atan2 atan2_ equal expand_as fmax fmin gcd gcd_ hypot hypot_ igamma igamma_ igammac igammac_
    inner is_same_size kron lcm lcm_ ldexp ldexp_ logaddexp logaddexp2 logical_and logical_and_ logical_or
    logical_or_ logical_xor logical_xor_ matmul maximum minimum mul mul_ nextafter nextafter_ reshape_as type_as
    vdot view_as
(Tensor other)
(Number other)
    bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_or bitwise_or_ bitwise_right_shift
    bitwise_right_shift_ bitwise_xor bitwise_xor_ copysign copysign_ eq eq_ floor_divide floor_divide_ fmod fmod_
    ge ge_ greater greater_ greater_equal greater_equal_ gt gt_ le le_ less less_ less_equal less_equal_ lt lt_
    multiply multiply_ ne ne_ not_equal not_equal_ remainder remainder_ true_divide true_divide_ xlogy xlogy_
(Tensor other)
(Tensor other, *, str? rounding_mode)
(Number other)
(Number other, *, str? rounding_mode)
    divide divide_
(Tensor other)
(Tensor other, *, str? rounding_mode)
(Number other, *, str? rounding_mode)
    div div_
(Tensor other, *, Number alpha = 1)
    add add_ sub sub_
(Tensor other, *, Number alpha = 1)
(Number other, Number alpha = 1)
    subtract subtract_
(Tensor other, Number p = 2)
    dist
(Tensor other, bool non_blocking = False)
    copy_
(Tensor other, float rtol = 1e-05, float atol = 1e-08, bool equal_nan = False)
    allclose isclose
(Tensor other, int? dim = None)
    cross
(Tensor p, *, torch.Generator? generator = None)
(float p = 0.5, *, torch.Generator? generator = None)
    bernoulli_
(Tensor q, int? dim = None, bool keepdim = False, *, str interpolation = "linear")
(float q, int? dim = None, bool keepdim = False, *, str interpolation = "linear")
    nanquantile quantile
(Tensor repeats, int? dim = None, *, int? output_size = None)
(int repeats, int? dim = None, *, int? output_size = None)
    repeat_interleave
(Tensor src, int dim = 0, int? start = None, int? end = None, int step = 1)
    slice_scatter
(Tensor src, int dim, int index)
    select_scatter
(Tensor src, int offset = 0, int dim1 = 0, int dim2 = 1)
    diagonal_scatter
(Tensor src, tuple of ints size, tuple of ints stride, int? storage_offset = None)
    as_strided_scatter
(Tensor tensor)
    dot is_set_to
(Tensor tensor1, Tensor tensor2, *, Number value = 1)
    addcdiv addcdiv_ addcmul addcmul_
(Tensor the_template, *, torch.memory_format? memory_format = None)
    resize_as_
(Tensor value)
(Number value)
    fill_
(Tensor values)
    heaviside heaviside_
(Tensor vec)
    mv
(Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1)
    addr addr_
(Tensor vec2)
    ger outer
(Tensor weight)
    prelu
(Tensor? min = None, Tensor? max = None)
(Number? min = None, Number? max = None)
    clamp clamp_ clip clip_
(Tensor? weights = None, int minlength = 0)
    bincount
(bool requires_grad = True)
    requires_grad_
(bool some = True)
    qr
(bool some = True, bool compute_uv = True)
    svd
(bool upper = False)
    cholesky cholesky_inverse
(float from = 0, float to = 1, *, torch.Generator? generator = None)
    uniform_
(float lambd = 1, *, torch.Generator? generator = None)
    exponential_
(float mean = 0, float std = 1, *, torch.Generator? generator = None)
    normal_
(float mean = 1, float std = 2, *, torch.Generator? generator = None)
    log_normal_
(float median = 0, float sigma = 1, *, torch.Generator? generator = None)
    cauchy_
(float p, *, torch.Generator? generator = None)
    geometric_
(float rcond = 1e-15)
    pinverse
(float? eps = None)
    logit logit_
(float? nan = None, float? posinf = None, float? neginf = None)
    nan_to_num nan_to_num_
(int axis0, int axis1)
    swapaxes swapaxes_
(int bins = 100, Number min = 0, Number max = 0)
    histc
(int chunks, int dim = 0)
    chunk unsafe_chunk
(int diagonal = 0)
    diag tril tril_ triu triu_
(int dim)
    cummax cummin logcumsumexp unsqueeze unsqueeze_
(int dim = -1, bool keepdim = False)
    mode
(int dim = 0)
    unbind
(int dim, *, torch.dtype? dtype = None)
    cumprod cumprod_ cumsum cumsum_
(int dim, Tensor index)
    index_select
(int dim, Tensor index, *, bool sparse_grad = False)
    gather
(int dim, Tensor index, Tensor source)
    index_copy index_copy_
(int dim, Tensor index, Tensor source, *, Number alpha = 1)
    index_add index_add_
(int dim, Tensor index, Tensor source, str reduce, *, bool include_self = True)
    index_reduce index_reduce_
(int dim, Tensor index, Tensor src)
    scatter_add scatter_add_
(int dim, Tensor index, Tensor src)
(int dim, Tensor index, Tensor src, *, str reduce)
(int dim, Tensor index, Number value)
(int dim, Tensor index, Number value, *, str reduce)
    scatter scatter_
(int dim, Tensor index, Tensor src, str reduce, *, bool include_self = True)
    scatter_reduce scatter_reduce_
(int dim, Tensor index, Tensor value)
(int dim, Tensor index, Number value)
    index_fill index_fill_
(int dim, Tensor start, int length)
(int dim, int start, int length)
    narrow
(int dim, int index)
    select
(int dim, int start, int length)
    narrow_copy
(int dim, torch.dtype? dtype = None)
    log_softmax softmax
(int dim0, int dim1)
    swapdims swapdims_ transpose transpose_
(int dimension, int size, int step)
    unfold
(int k = 1, tuple of ints dims = {0,1})
    rot90
(int k, int dim = -1, bool keepdim = False)
    kthvalue
(int k, int dim = -1, bool largest = True, bool sorted = True)
    topk
(int n)
    matrix_power polygamma polygamma_
(int n = 1, int dim = -1, Tensor? prepend = None, Tensor? append = None)
    diff
(int num_samples, bool replacement = False, *, torch.Generator? generator = None)
    multinomial
(int offset = 0)
    diagflat
(int offset = 0, int dim1 = -2, int dim2 = -1)
    diag_embed
(int offset = 0, int dim1 = 0, int dim2 = 1)
    diagonal
(int p)
    mvlgamma mvlgamma_
(int sections)
(tuple of ints indices)
    dsplit hsplit vsplit
(int source, int destination)
(tuple of ints source, tuple of ints destination)
    moveaxis movedim
(int split_size, int dim = 0)
    unsafe_split
(int start_dim = 0, int end_dim = -1)
    flatten
(int? dim = None)
    size stride
(int? dim = None)
(tuple of ints dim)
    count_nonzero
(int? dim = None, bool keepdim = False)
    argmax argmin
(object data, *, torch.dtype? dtype = None, torch.device? device = None, bool requires_grad = False, bool pin_memory \
= False)
    new_tensor
(object dtype = None, bool non_blocking = False, *, torch.memory_format memory_format = None)
    type
(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
    to
(torch.device? device = None)
    is_pinned pin_memory
(torch.dtype dtype)
(tuple of ints size)
    view
(torch.dtype? dtype = None, *, bool? masked_grad = None)
    to_dense
(tuple of Tensors indices, Tensor values, bool accumulate = False)
    index_put index_put_
(tuple of ints dims)
    flip permute tile
(tuple of ints indices, int dim = 0)
(Tensor tensor_indices_or_sections, int dim = 0)
(int sections, int dim = 0)
    tensor_split
(tuple of ints repeats)
    repeat
(tuple of ints shape)
    reshape
(tuple of ints size)
    broadcast_to sum_to_size
(tuple of ints size, *, bool implicit = False)
    expand
(tuple of ints size, *, torch.dtype? dtype = None, torch.layout? layout = None, torch.device? device = None, bool? \
pin_memory = False, bool? requires_grad = False)
    new_empty new_ones new_zeros
(tuple of ints size, *, torch.memory_format? memory_format = None)
    resize_
(tuple of ints size, Number fill_value, *, torch.dtype? dtype = None, torch.layout? layout = None, torch.device? \
device = None, bool? pin_memory = False, bool? requires_grad = False)
    new_full
(tuple of ints size, tuple of ints stride, *, torch.dtype? dtype = None, torch.layout? layout = None, torch.device? \
device = None, bool? pin_memory = False, bool? requires_grad = False)
    new_empty_strided
(tuple of ints size, tuple of ints stride, int? storage_offset = None)
    as_strided as_strided_
(tuple of ints split_sizes, int dim = 0)
    split_with_sizes unsafe_split_with_sizes
(tuple of ints[1] dim = None, bool keepdim = False)
    amax amin
(tuple of ints[1] dim, bool keepdim = False)
    logsumexp
(tuple of ints[1] shifts, tuple of ints[1] dims = None)
    roll
(tuple of ints[1]? dim = None, bool keepdim = False, *, torch.dtype? dtype = None)
    nanmean nansum
(tuple of ints[1]? dim, bool unbiased = True, bool keepdim = False)
(tuple of ints[1]? dim = None, *, Number? correction = None, bool keepdim = False)
(bool unbiased = True)
    std var
()
(torch.Storage source)
(torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)
(Tensor source)
(Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)
    set_
"""


def listed(text: str) -> dict[str, tuple[str, ...]]:
    """The signatures of each name of a list: they come first, one a line, and below them the names that have them."""
    found: dict[str, tuple[str, ...]] = {}
    signatures: list[str] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("("):
            signatures = [*([] if before.startswith(" ") else signatures), line[1:-1]]
        else:
            found |= dict.fromkeys(line.split(), tuple(signatures))
        before = line
    return found


@cache
def known() -> dict[str, tuple[str, ...]]:
    """The signatures of each method."""
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys(_NOTHING.split(), ())
    return nothing | listed(_TAKING)
