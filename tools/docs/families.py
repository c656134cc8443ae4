"""The page of the reference for each entry, by the module that defines it and its name.

A page is a family: a title, and the modules whose functions are on it. A name without a family is an error of the
build.
"""

from __future__ import annotations

SECTIONS = {
    "ops": "torch: operators by family",
    "tensor": "torch: tensors, autograd, settings",
    "nn": "torch.nn",
    "train": "torch.optim, data, precision",
    "dist": "torch.distributions",
    "more": "torch: other namespaces",
    "fg": "funcgrad",
    "fnp": "funcgrad.numpy",
    "sci": "funcgrad: lax, random, SciPy",
}

#: Families: the page's path, its title, its section, and the modules, without ``compat.`` or ``funcgrad.``.
FAMILIES: list[tuple[str, str, str, str]] = [
    ("torch/arithmetic", "Arithmetic and products of elements", "ops",
     "_operators.pointwise.arithmetic _operators.pointwise.addcmul_lerp _operators.pointwise.division"),
    ("torch/exponentials", "Exponentials, logarithms, powers", "ops", "_operators.pointwise.exp_log_pow"),
    ("torch/trigonometry", "Trigonometric and hyperbolic functions", "ops", "_operators.pointwise.trigonometry"),
    ("torch/rounding", "Rounding and parts of numbers", "ops",
     "_operators.pointwise.rounding _operators.pointwise.float_bits"),
    ("torch/comparison", "Comparison, logic, bits", "ops", "_operators.pointwise.comparison"),
    ("torch/selection", "Selection, masks and clamping", "ops", "_operators.pointwise.where_clamp"),
    ("torch/complex", "Complex numbers", "ops", "_operators.pointwise.complex _operators.view.complex_views"),
    ("torch/special", "Special functions", "ops",
     "_operators.pointwise.special _operators.pointwise.torch_special"),
    ("torch/activations", "Activation functions", "ops",
     "_operators.activation.smooth _operators.activation.piecewise _operators.activation.rrelu"),
    ("torch/softmax", "Softmax", "ops", "_operators.activation.softmax"),
    ("torch/reductions", "Sums, means, variances, norms", "ops",
     "_operators.reduction.sum_mean_var _operators.reduction.vector_norms _operators.reduction.segment_reduce"),
    ("torch/extrema", "Minima, maxima, medians, quantiles", "ops",
     "_operators.reduction.min_max _operators.reduction.median_quantile"),
    ("torch/cumulative", "Cumulative operators and histograms", "ops",
     "_operators.reduction.cumulative _operators.reduction.histograms"),
    ("torch/indexing", "Indexing, gather and scatter", "ops",
     "_operators.indexing.getitem _operators.indexing.index _operators.indexing.gather _operators.indexing.scatter "
     "_operators.indexing.masked "
     "_operators.indexing.index_add _operators.indexing.view_scatter _operators.indexing.unravel"),
    ("torch/sorting", "Sorting, uniqueness, search", "ops",
     "_operators.indexing.sorting _operators.indexing.unique_search"),
    ("torch/embedding", "Embeddings", "ops", "_operators.indexing.embedding _operators.indexing.embedding_bag"),
    ("torch/views", "Views: shape and strides", "ops", "_operators.view.shape"),
    ("torch/slicing", "Views: slices, splits, diagonals", "ops",
     "_operators.view.slicing _operators.view.splitting _operators.view.view_copies"),
    ("torch/joining", "Joining, repeating, flipping, padding", "ops",
     "_operators.shape.cat_stack _operators.shape.flip_roll _operators.shape.padding _operators.shape.vmap_fallback "
     "_operators.shape.tril_diag _operators.shape.unfold_pixel_shuffle"),
    ("torch/matmul", "Matrix products and einsum", "ops",
     "_operators.linalg.matmul _operators.linalg.einsum _operators.linalg.tensordot _operators.linalg.products_fused "
     "_operators.linalg.gemm_epilogue _operators.linalg.grouped_mm _operators.linalg.matrix_power "
     "_operators.linalg.cdist"),
    ("torch/linalg", "Linear algebra", "ops",
     "_operators.linalg.factorizations _operators.linalg.solve _operators.linalg.inverse_det linalg "
     "_operators.linalg.householder _operators.linalg.svd_eig _operators.linalg.pinv_lstsq _operators.linalg.ldl "
     "_operators.linalg.common _operators.linalg.scaled_mm _operators.random.lowrank"),
    ("torch/convolution", "Convolution", "ops", "_operators.nn.convolution _operators.nn.convolution_tbc"),
    ("torch/pooling", "Pooling", "ops",
     "_operators.nn.pooling _operators.nn.adaptive _operators.nn.fractional_pooling _operators.nn.pooling_indices "
     "_operators.nn.unpooling"),
    ("torch/normalization", "Normalization", "ops", "_operators.nn.normalization _operators.nn.rms_norm "
     "_operators.nn.weight_norm"),
    ("torch/attention", "Attention", "ops",
     "_operators.nn.scaled_dot_product _operators.nn.multi_head _operators.nn.attention_backends"),
    ("torch/recurrent", "Recurrent layers", "ops",
     "_operators.nn.rnn _operators.nn.rnn_cells _operators.nn.packed_sequence _operators.nn.rnn_steps"),
    ("torch/interpolation", "Interpolation and grid sampling", "ops",
     "_operators.nn.interpolate _operators.nn.grid_sample"),
    ("torch/losses", "Loss functions", "ops",
     "_operators.loss.pointwise _operators.loss.nll _operators.loss.composite _operators.loss.margin "
     "_operators.loss.ctc _operators.loss.linear_cross_entropy _operators.loss.reduction_modes"),
    ("torch/fft", "Fourier transforms and signals", "ops",
     "_operators.signal.fft _operators.signal.stft _operators.signal.diff_cov _operators.signal.gradient fft"),
    ("torch/windows", "Window functions", "ops", "_operators.signal.windows signal.windows"),
    ("torch/creation", "Creation and copies", "ops",
     "_operators.create.factories _operators.create.from_buffer _operators.create.from_data "
     "_operators.create.ranges _operators.create.copy_to_fill _operators.create.legacy_constructors"),
    ("torch/random", "Random numbers and dropout", "ops",
     "_operators.random.sampling _operators.random.dropout _operators.random.inplace _operators.random.gamma "
     "_operators.random.factories _core.random.generator random quasirandom"),
    ("torch/sparse", "Sparse tensors", "ops",
     "_operators.sparse.arithmetic _operators.sparse.conversion _operators.sparse.legacy _operators.sparse.linear "
     "_operators.sparse.compressed _operators.sparse.compressed_factories _operators.sparse.compressed_shapes "
     "_operators.sparse.layouts _operators.sparse.reductions _operators.sparse.shapes _operators.sparse.tensor sparse"),
    ("torch/nested", "Nested tensors", "ops", "nested"),
    ("torch/tensor", "torch.Tensor: the class", "tensor",
     "_core.tensor.tensor _operators.tensor.conversion autograd._backward autograd._tensor_hooks "
     "_operators.tensor.properties _operators.tensor.predicates _operators.tensor.set_resize_detach "
     "_operators.tensor.attributes _operators.tensor.apply "
     "_core.tensor.torch_function _core.operators.view_op"),
    ("torch/types", "dtypes, devices, sizes", "tensor",
     "_core.types.dtype _core.types.type_promotion _operators.tensor.result_type _core.types.device _core.types.size "
     "_symint types _core.types.memory_format _operators.tensor.size_helpers"),
    ("torch/storage", "storages", "tensor", "_core.memory storage"),
    ("torch/settings", "Settings, checks and threads", "tensor",
     "_core.config.flags _threads _operators.tensor.format _operators.tensor.asserting __config__ "
     "utils.deterministic torch_version"),
    ("torch/gradients", "torch.autograd: gradients on and off", "tensor",
     "autograd.grad_mode _core.transforms.grad_mode _core.autograd.anomaly_mode autograd.anomaly_mode "
     "autograd.variable"),
    ("torch/removed", "Removed and legacy functions", "more", "_operators.tensor.removed"),
    ("torch/foreach", "Operators on lists of tensors", "more",
     "_operators.tensor.foreach _operators.tensor.foreach_nodes _operators.tensor.grad_scaler"),
    ("torch/return_types", "torch.return_types", "more", "return_types"),
    ("torch/nn.Module", "torch.nn.Module, Parameter, Buffer", "nn",
     "nn nn.modules.module nn.parameter nn.modules.utils"),
    ("torch/nn.containers", "torch.nn: containers, linear layers", "nn",
     "nn.modules.container nn.modules.linear nn.modules.flatten"),
    ("torch/nn.conv", "torch.nn: convolution, upsampling", "nn",
     "nn.modules.conv nn.modules.fold nn.modules.pixelshuffle nn.modules.channelshuffle nn.modules.upsampling"),
    ("torch/nn.pooling", "torch.nn: pooling, padding", "nn", "nn.modules.pooling nn.modules.padding"),
    ("torch/nn.activation", "torch.nn: activations", "nn", "nn.modules.activation nn.modules.adaptive"),
    ("torch/nn.normalization", "torch.nn: normalization and dropout", "nn",
     "nn.modules.batchnorm nn.modules.instancenorm nn.modules.normalization nn.modules.dropout"),
    ("torch/nn.recurrent", "torch.nn: recurrent layers, transformers, embeddings", "nn",
     "nn.modules.rnn nn.modules.transformer nn.modules.sparse"),
    ("torch/nn.loss", "torch.nn: losses and distances", "nn",
     "nn.modules.loss nn.modules.distance nn.modules.linear_cross_entropy_options"),
    ("torch/nn.lazy", "torch.nn: lazy modules", "nn", "nn.modules.lazy"),
    ("torch/nn.functional", "torch.nn.functional: other functions", "nn", "nn.functional"),
    ("torch/nn.init", "torch.nn.init", "nn", "nn.init nn.utils.init"),
    ("torch/nn.utils", "torch.nn.utils", "nn",
     "nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion nn.utils.memory_format nn.utils.rnn "
     "nn.utils.weight_norm nn.utils.spectral_norm nn.utils.stateless nn.utils nn.utils._per_sample_grad"),
    ("torch/nn.utils.parametrize", "torch.nn.utils: parametrizations and pruning", "nn",
     "nn.utils.parametrize nn.utils.parametrizations nn.utils.prune"),
    ("torch/nn.attention", "torch.nn.attention", "nn", "nn.attention"),
    ("torch/nn.parallel", "torch.nn.parallel, torch.nn.grad", "nn", "nn.parallel nn.grad"),
    ("torch/optim", "torch.optim: optimizers", "train", "optim"),
    ("torch/optim.lr_scheduler", "torch.optim: schedules and averages", "train",
     "optim.lr_scheduler optim.swa_utils"),
    ("torch/utils.data", "torch.utils.data", "train", "utils.data"),
    ("torch/amp", "torch.amp: automatic mixed precision", "train", "amp cpu.amp cuda.amp"),
    ("torch/utils.checkpoint", "torch.utils.checkpoint", "train", "utils.checkpoint"),
    ("torch/serialization", "Saving and loading", "train", "serialization _serialization hub"),
    ("torch/autograd", "torch.autograd", "tensor", "autograd"),
    ("torch/autograd.graph", "torch.autograd.graph, forward_ad", "tensor",
     "autograd.graph autograd.forward_ad _core.autograd.forward_ad"),
    ("torch/autograd.profiler", "torch.profiler", "more", "autograd.profiler autograd.profiler_util profiler"),
    ("torch/func", "torch.func: function transforms", "tensor", "func"),
    ("torch/distributions", "torch.distributions: base classes, divergences, constraints", "dist",
     "distributions.distribution distributions.exp_family distributions.kl distributions.constraints "
     "distributions.constraint_registry distributions.independent distributions.transformed_distribution "
     "distributions.mixture_same_family"),
    ("torch/distributions.transforms", "torch.distributions: transforms", "dist", "distributions.transforms"),
    ("torch/distributions.discrete", "torch.distributions: discrete", "dist",
     "distributions.bernoulli distributions.binomial distributions.categorical distributions.geometric "
     "distributions.multinomial distributions.negative_binomial distributions.one_hot_categorical "
     "distributions.poisson distributions.relaxed_bernoulli distributions.relaxed_categorical "
     "distributions.continuous_bernoulli"),
    ("torch/distributions.multivariate", "torch.distributions: multivariate", "dist",
     "distributions.multivariate_normal distributions.lowrank_multivariate_normal distributions.dirichlet "
     "distributions.wishart distributions.lkj_cholesky distributions.logistic_normal"),
    ("torch/distributions.continuous", "torch.distributions: continuous", "dist", "distributions"),
    ("torch/cuda", "torch.cuda and other accelerators", "more", "cuda mps xpu cpu accelerator"),
    ("torch/backends", "torch.backends", "more", "backends"),
    ("torch/compiler", "torch.compile, torch.compiler, torch.export, torch.onnx", "more",
     "compiler _compile export onnx"),
    ("torch/jit", "torch.jit", "more", "jit"),
    ("torch/fx", "torch.fx: graphs and their modules", "more", "fx"),
    ("torch/fx.passes", "torch.fx: passes, rewriting", "more", "fx.passes fx.subgraph_rewriter"),
    ("torch/library", "torch.library and overrides", "more", "library overrides ops"),
    ("torch/subclasses", "torch._subclasses: fake tensors", "more", "_subclasses"),
    ("torch/distributed.sharded", "torch.distributed: meshes, DTensor, fully_shard, checkpoints", "more",
     "distributed.tensor distributed.fsdp distributed.device_mesh distributed.checkpoint"),
    ("torch/multiprocessing", "torch.multiprocessing, futures", "more", "multiprocessing futures"),
    ("torch/distributed.rpc", "torch.distributed: remote calls and their gradients", "more",
     "distributed.rpc distributed.autograd distributed.optim distributed.nn.api"),
    ("torch/distributed.launching", "torch.distributed: launching and rendezvous", "more",
     "distributed.run distributed.launch distributed.elastic distributed.rendezvous"),
    ("torch/distributed.collectives", "torch.distributed: collectives and messages", "more",
     "_distributed.collectives _distributed.objects _distributed.point_to_point distributed.nn distributed.algorithms"),
    ("torch/distributed", "torch.distributed: processes, groups, stores", "more", "distributed _distributed"),
    ("torch/masked", "torch.masked", "more", "masked"),
    ("torch/testing", "torch.testing, torch.utils", "more", "testing utils"),
    ("torch/runtime", "compat.runtime, compat.install", "more", "runtime install"),
    ("funcgrad/transforms", "Derivatives: grad, vjp, jvp, Jacobians", "fg",
     "transforms.autodiff transforms.jacobians tools.differential"),
    ("funcgrad/custom", "Custom derivatives and extensions", "fg", "transforms.custom tools.extend tools.callbacks"),
    ("funcgrad/vmap", "vmap and collectives", "fg", "transforms.vmap lax.collectives"),
    ("funcgrad/jit", "jit, programs, export", "fg",
     "transforms.jit transforms.trace tools.export core.ir tools.costs tools.drawing"),
    ("funcgrad/control", "Control flow: scan, cond, while_loop", "fg", "control transforms.map lax.control"),
    ("funcgrad/checkpoint", "Gradient checkpointing", "fg",
     "transforms.checkpoint transforms.checkpoint_policies"),
    ("funcgrad/parallel", "Devices, meshes, shard_map", "fg", "parallel arguments.sharding_constraint"),
    ("funcgrad/errors", "Errors", "fg", "core.errors"),
    ("funcgrad/nn", "funcgrad.nn", "fg", "nn"),
    ("funcgrad/trees", "Pytrees, debugging, checks, JAX", "fg",
     "core.trees trees tools.flatten_util tools.debug tools.test_util interop"),
    ("funcgrad/numpy.arithmetic", "funcgrad.numpy: arithmetic, rounding, parts", "fnp",
     "numpy.elementwise numpy.bits numpy.statistics.nans"),
    ("funcgrad/numpy.functions", "funcgrad.numpy: exponentials, trigonometry, logic", "fnp",
     "numpy.elementwise.transcendental numpy.elementwise.logic numpy.elementwise.logarithms "
     "numpy.elementwise.angles"),
    ("funcgrad/numpy.reductions", "funcgrad.numpy: reductions and statistics", "fnp",
     "numpy.reductions numpy.statistics"),
    ("funcgrad/numpy.shape", "funcgrad.numpy: shapes, joining, padding", "fnp",
     "numpy.shape numpy.creation.index_tricks numpy.padding numpy.diagonals numpy.creation.matrices"),
    ("funcgrad/numpy.creation", "funcgrad.numpy: creation and dtypes", "fnp",
     "numpy.creation numpy.grids numpy.constants numpy.inspection numpy.predicates"),
    ("funcgrad/numpy.indexing", "funcgrad.numpy: indexing, sorting, sets", "fnp",
     "numpy.indexing numpy.nonzero_indices numpy.selecting numpy.sorting numpy.sets"),
    ("funcgrad/numpy.products", "funcgrad.numpy: products", "fnp", "numpy.products"),
    ("funcgrad/numpy", "funcgrad.numpy: numerics, polynomials, functional", "fnp", "numpy"),
    ("funcgrad/linalg", "funcgrad.linalg", "sci", "numpy.linalg linalg"),
    ("funcgrad/fft", "funcgrad.fft", "sci", "numpy.fourier numpy.window_functions fft"),
    ("funcgrad/random", "funcgrad.random", "sci", "random"),
    ("funcgrad/lax.elementwise", "funcgrad.lax: elementwise operators", "sci", "lax.elementwise"),
    ("funcgrad/lax.windows", "funcgrad.lax: windows, reductions, convolution", "sci",
     "lax.windows lax.reductions lax.convolution lax.contraction"),
    ("funcgrad/lax.indexing", "funcgrad.lax: slices, gather and scatter, sorting", "sci",
     "lax.slicing lax.indexing lax.sorting"),
    ("funcgrad/lax", "funcgrad.lax: shapes, creation, solvers", "sci", "lax"),
    ("funcgrad/special", "funcgrad.special", "sci", "special"),
    ("funcgrad/special.bessel", "funcgrad.special: Bessel functions, distributions, inverses", "sci",
     "special.bessel special.distributions special.inverses special.integrals special.convenience"),
    ("funcgrad/scipy.stats", "funcgrad.scipy.stats: norm, t, gamma, beta, chi2", "sci",
     "scipy.stats.norm scipy.stats.t scipy.stats.gamma scipy.stats.beta scipy.stats.chi2"),
    ("funcgrad/scipy.stats.more", "funcgrad.scipy.stats: other distributions", "sci", "scipy.stats"),
    ("funcgrad/scipy", "funcgrad.scipy: linalg, signal, integrate", "sci", "scipy"),
]  # fmt: skip

_RANK = {path: i for i, (path, *_) in enumerate(FAMILIES)}
_TITLES = {path: (title, section) for path, title, section, _ in FAMILIES}
_MODULES = {
    f"{path.partition('/')[0]} {module}": path for path, _, _, modules in FAMILIES for module in modules.split()
}
#: The families of objects that are not defined in a module of their family, by the namespace of their name.
_PLACES = {
    "torch.Tensor": "torch/tensor", "torch.special": "torch/special", "torch.fft": "torch/fft",
    "torch.linalg": "torch/linalg", "torch.return_types": "torch/return_types", "torch": "torch/types",
    "torch.nn.parameter": "torch/nn.Module",
}  # fmt: skip


def rank(path: str) -> int:
    """The position of a page among the others of its section."""
    return _RANK[path]


def place(address: str, home: str, is_class: bool) -> tuple[str, str, str, str]:
    """The page of an address defined in a module: its path, title, section, and subject."""
    library = "funcgrad" if address.startswith("funcgrad") else "torch"
    namespace = address.rpartition(".")[0]
    own = home.removeprefix("compat.").removeprefix("funcgrad.").removeprefix("torch.")
    path = _of_module(library, own) if home != "torch" else None
    path = path or _of_module(library, namespace.removeprefix(f"{library}.").removeprefix("compat."))
    if namespace in _PLACES and (path is None or home in ("torch", "compat") or is_class):
        path = path if path is not None and not home.startswith("compat._core") else _PLACES[namespace]
    if path is None:
        raise LookupError(f"{address}, of {home}, has no family: name its module in tools/docs/families.py")
    return (path, *_TITLES[path], "")


def _of_module(library: str, module: str) -> str | None:
    """The page of the family with the longest name that a module is in."""
    parts = module.split(".")
    tries = (_MODULES.get(f"{library} {'.'.join(parts[:n])}") for n in range(len(parts), 0, -1))
    return next((found for found in tries if found), None)
