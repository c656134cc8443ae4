"""How functions of ``torch.linalg``, ``special``, ``fft`` and ``nn.functional`` may be called; see
``compat._core.schema.function_signatures``."""

from __future__ import annotations

#: Functions that are called as the methods of their names are, with the tensor first.
LIKE_METHODS = """
    linalg.matrix_exp special.softmax
"""
#: The same, which can write into ``out``.
WITH_OUT = """
    linalg.matmul linalg.matrix_power special.digamma special.erf special.erfc special.erfinv special.exp2
    special.expm1 special.i0 special.log1p special.logit special.logsumexp special.sinc
"""
#: The ways to call all others.
TAKING = """\
(Tensor A, *, Tensor out = None)
    linalg.det linalg.inv
(Tensor A, *, bool check_errors = False, tuple of Tensors out = None)
    linalg.inv_ex
(Tensor A, *, bool pivot = True, bool check_errors = False, tuple of Tensors out = None)
    linalg.lu_factor_ex
(Tensor A, *, bool pivot = True, tuple of Tensors out = None)
    linalg.lu linalg.lu_factor
(Tensor A, *, int offset = 0, int dim1 = -2, int dim2 = -1)
    linalg.diagonal
(Tensor A, *, str? driver = None, Tensor out = None)
    linalg.svdvals
(Tensor A, *, tuple of Tensors out = None)
    linalg.slogdet
(Tensor A, Tensor B, *, bool left = True, Tensor out = None)
    linalg.solve
(Tensor A, Tensor B, *, bool left = True, bool check_errors = False, tuple of Tensors out = None)
    linalg.solve_ex
(Tensor A, bool full_matrices = True, *, str? driver = None, tuple of Tensors out = None)
    linalg.svd
(Tensor A, str mode = "reduced", *, tuple of Tensors out = None)
    linalg.qr
(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian = False, Tensor out = None)
    linalg.ldl_solve
(Tensor input, *, bool hermitian = False, tuple of Tensors out = None)
    linalg.ldl_factor
(Tensor input, *, bool hermitian = False, bool check_errors = False, tuple of Tensors out = None)
    linalg.ldl_factor_ex
(Tensor LU, Tensor pivots, Tensor B, *, bool left = True, bool adjoint = False, Tensor out = None)
    linalg.lu_solve
(Tensor input, *, Tensor out = None)
    linalg.eigvals special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.entr
    special.erfcx special.expit special.gammaln special.i0e special.i1 special.i1e special.log_ndtr
    special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
    special.ndtr special.ndtri special.psi
(Tensor input, *, Tensor? atol = None, Tensor? rtol = None, bool hermitian = False, Tensor out = None)
(Tensor input, *, float? atol = None, float? rtol = None, bool hermitian = False, Tensor out = None)
(Tensor input, Tensor rcond, bool hermitian = False, *, Tensor out = None)
(Tensor input, float rcond, bool hermitian = False, *, Tensor out = None)
    linalg.pinv
(Tensor input, *, Tensor? atol = None, Tensor? rtol = None, bool hermitian = False, Tensor out = None)
(Tensor input, *, float? atol = None, float? rtol = None, bool hermitian = False, Tensor out = None)
(Tensor input, Tensor tol, bool hermitian = False, *, Tensor out = None)
(Tensor input, float tol, bool hermitian = False, *, Tensor out = None)
    linalg.matrix_rank
(Tensor input, *, bool upper = False, Tensor out = None)
    linalg.cholesky
(Tensor input, *, bool upper = False, bool check_errors = False, tuple of Tensors out = None)
    linalg.cholesky_ex
(Tensor input, *, int decimals = 0, Tensor out = None)
    special.round
(Tensor input, *, str approximate = "none", Tensor out = None)
    nn.functional.gelu
(Tensor input, *, tuple of Tensors out = None)
    linalg.eig
(Tensor input, Number alpha = 1, Number scale = 1, Number input_scale = 1)
    nn.functional.elu_
(Tensor input, Number beta = 1, Number threshold = 20, *, Tensor out = None)
    nn.functional.softplus
(Tensor input, Number lambd = 0.5, *, Tensor out = None)
    nn.functional.softshrink
(Tensor input, Number min_val = -1, Number max_val = 1)
    nn.functional.hardtanh_
(Tensor input, Number negative_slope = 0.01)
    nn.functional.leaky_relu_
(Tensor input, Number ord = 2, tuple of ints[1]? dim = None, bool keepdim = False, *, torch.dtype? dtype = None, \
Tensor out = None)
    linalg.vector_norm
(Tensor input, Number ord, tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype? dtype = None, \
Tensor out = None)
(Tensor input, str ord = "fro", tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype? dtype = None, \
Tensor out = None)
    linalg.matrix_norm
(Tensor input, Number? ord = None, tuple of ints[1]? dim = None, bool keepdim = False, *, torch.dtype? dtype = None, \
Tensor out = None)
(Tensor input, str ord, tuple of ints[1]? dim = None, bool keepdim = False, *, torch.dtype? dtype = None, \
Tensor out = None)
    linalg.norm
(Tensor input, Number? p = None, *, Tensor out = None)
(Tensor input, str p, *, Tensor out = None)
    linalg.cond
(Tensor input, Tensor B, *, bool upper, bool left = True, bool unitriangular = False, Tensor out = None)
    linalg.solve_triangular
(Tensor input, Tensor b, float? rcond = None, *, str? driver = None, tuple of Tensors out = None)
    linalg.lstsq
(Tensor input, Tensor other, *, Tensor out = None)
    special.gammainc special.gammaincc
(Tensor input, Tensor other, *, Tensor out = None)
(Number self, Tensor other, *, Tensor out = None)
(Tensor input, Number other, *, Tensor out = None)
    special.xlog1py special.xlogy special.zeta
(Tensor input, Tensor other, *, int dim = -1, Tensor out = None)
    linalg.cross
(Tensor input, Tensor other, tuple of ints? dims = None, *, Tensor out = None)
    linalg.tensorsolve
(Tensor input, Tensor tau, *, Tensor out = None)
    linalg.householder_product
(Tensor input, Tensor weight, Tensor? bias = None, *, Tensor out = None)
    nn.functional.linear
(Tensor input, int dim, *, torch.dtype? dtype = None)
    special.log_softmax
(Tensor input, int ind = 2, *, Tensor out = None)
    linalg.tensorinv
(Tensor input, int num_classes = -1)
    nn.functional.one_hot
(Tensor input, int p, *, Tensor out = None)
    special.multigammaln
(Tensor input, int? n = None, int dim = -1, str? norm = None, *, Tensor out = None)
    fft.fft fft.hfft fft.ifft fft.ihfft fft.irfft fft.rfft
(Tensor input, str UPLO = "L", *, Tensor out = None)
    linalg.eigvalsh
(Tensor input, str UPLO = "L", *, tuple of Tensors out = None)
    linalg.eigh
(Tensor input, tuple of ints[1]? dim = None)
    fft.fftshift fft.ifftshift
(Tensor input, tuple of ints[1]? s = None, tuple of ints[1] dim = {-2,-1}, str? norm = None, *, Tensor out = None)
    fft.fft2 fft.hfft2 fft.ifft2 fft.ihfft2 fft.irfft2 fft.rfft2
(Tensor input, tuple of ints[1]? s = None, tuple of ints[1]? dim = None, str? norm = None, *, Tensor out = None)
    fft.fftn fft.hfftn fft.ifftn fft.ihfftn fft.irfftn fft.rfftn
(Tensor input, tuple of ints[2] kernel_size, tuple of ints[2] stride = None, tuple of ints[2] padding = 0, \
bool ceil_mode = False, bool count_include_pad = True, int? divisor_override = None, *, Tensor out = None)
    nn.functional.avg_pool2d
(Tensor input, tuple of ints[3] kernel_size, tuple of ints[3] stride = None, tuple of ints[3] padding = 0, \
bool ceil_mode = False, bool count_include_pad = True, int? divisor_override = None, *, Tensor out = None)
    nn.functional.avg_pool3d
(Tensor query, Tensor key, Tensor value, Tensor? attn_mask = None, float dropout_p = 0.0, bool is_causal = False, *, \
float? scale = None, bool enable_gqa = False)
    nn.functional.scaled_dot_product_attention
(Tensor x, *, Tensor out = None)
    special.airy_ai special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0
(Tensor x, *, int? N = None)
    linalg.vander
(Tensor x, Tensor n, *, Tensor out = None)
(Number x, Tensor n, *, Tensor out = None)
(Tensor x, Number n, *, Tensor out = None)
    special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
    special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he
    special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t
    special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
    special.shifted_chebyshev_polynomial_w
(Tensor x, Tensor y, *, int dim = -1, Tensor out = None)
    linalg.vecdot
(int n, Tensor input, *, Tensor out = None)
    special.polygamma
(int n, float d = 1.0, *, Tensor out = None, OPTIONS)
    fft.fftfreq fft.rfftfreq
(tuple of Tensors tensors, *, Tensor out = None)
    linalg.multi_dot
"""
