"""Names that PyTorch has and compat has not, as far as packages mention them, by reason and module.

``tests/ecosystem/names.py`` finds the names: those that packages import or ask for while they are imported get
a stub, so that the package can be imported; it raises with its name when it is used. Names that are only read later are
absent, with an ``AttributeError`` that gives the reason.

A line is a module and its names. A name that begins with a capital letter is a class, any other one a function; after
``-`` come those that stay away. A module without names is there and empty.
"""

from __future__ import annotations

SHARDING = "compat has DTensor, fully_shard and tensor parallelism, and not this part of torch.distributed"
QUANTIZED = "compat has no quantized tensors"
COMPILER = "compat compiles by XLA, and has none of PyTorch's own compiler"
SCRIPT = "compat runs TorchScript's Python as Python"
KERNELS = "it is a kernel for GPUs that compat does not have"
DEVICES = "there is no such device"

#: By reason, lines of names.
TABLE: dict[str, str] = {
    SHARDING: """
distributed.fsdp: FullyShardedDataParallel ShardingStrategy CPUOffload BackwardPrefetch MixedPrecision StateDictType
    FullStateDictConfig ShardedStateDictConfig LocalStateDictConfig FullOptimStateDictConfig
    ShardedOptimStateDictConfig StateDictConfig OptimStateDictConfig FSDPModule FlatParameter fully_shard
    MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy UnshardHandle register_fsdp_forward_method
    share_comm_ctx
distributed.fsdp._common_utils: FSDPState
distributed.fsdp._fully_shard: FSDPModule fully_shard
distributed.fsdp._fully_shard._fsdp_init:
distributed.fsdp._fully_shard._fsdp_param_group:
distributed.fsdp.fully_sharded_data_parallel: FullyShardedDataParallel CPUOffload ShardingStrategy MixedPrecision
    BackwardPrefetch StateDictType FullStateDictConfig ShardedStateDictConfig FullOptimStateDictConfig
    ShardedOptimStateDictConfig OptimStateDictConfig StateDictConfig
distributed.fsdp.sharded_grad_scaler: ShardedGradScaler
distributed.fsdp.wrap: ModuleWrapPolicy CustomPolicy size_based_auto_wrap_policy transformer_auto_wrap_policy
    always_wrap_policy lambda_auto_wrap_policy enable_wrap wrap _or_policy _Policy
distributed.fsdp.api: ShardingStrategy StateDictType
distributed.tensor: DTensor Placement Replicate Shard Partial DeviceMesh distribute_tensor distribute_module
    init_device_mesh
distributed.tensor._dtensor_spec: DTensorSpec TensorMeta
distributed.tensor._utils: compute_local_shape_and_global_offset
distributed.tensor.placement_types: Placement Replicate Shard Partial _StridedShard
distributed.tensor.experimental: implicit_replication local_map context_parallel
distributed.tensor.experimental._attention: context_parallel
distributed.tensor.device_mesh: DeviceMesh init_device_mesh
distributed.tensor.parallel: ColwiseParallel RowwiseParallel SequenceParallel ParallelStyle PrepareModuleInput
    PrepareModuleOutput PrepareModuleInputOutput parallelize_module loss_parallel
distributed.tensor.parallel.style: ParallelStyle
distributed._tensor: DTensor Placement Replicate Shard Partial DeviceMesh distribute_tensor distribute_module
    init_device_mesh
distributed._tensor.experimental: implicit_replication
distributed._tensor.placement_types: Placement Replicate Shard Partial DTensorSpec TensorMeta
distributed._tensor.api: DTensor
distributed.device_mesh: DeviceMesh init_device_mesh _get_device_handle
distributed._composable: fully_shard replicate checkpoint contract
distributed._composable.fsdp: fully_shard FSDPModule MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy
distributed._composable.fsdp.fully_shard: FSDPModule fully_shard
distributed._composable.replicate: replicate DDP
distributed._functional_collectives: AsyncCollectiveTensor all_reduce all_gather_tensor all_to_all_single
    reduce_scatter_tensor wait_tensor permute_tensor all_gather_tensor_autograd all_to_all_single_autograd
distributed._shard:
distributed._shard.sharded_tensor: ShardedTensor Shard
distributed._symmetric_memory: enable_symm_mem_for_group
distributed._tools.mem_tracker: MemTracker
distributed.algorithms:
distributed.algorithms.ddp_comm_hooks: default_hooks powerSGD_hook
distributed.algorithms.ddp_comm_hooks.default_hooks: allreduce_hook bf16_compress_hook fp16_compress_hook
    bf16_compress_wrapper fp16_compress_wrapper
distributed.algorithms.ddp_comm_hooks.powerSGD_hook: PowerSGDState powerSGD_hook batched_powerSGD_hook
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: PostLocalSGDState
distributed.algorithms.ddp_comm_hooks.debugging_hooks: noop_hook
distributed.algorithms._checkpoint.checkpoint_wrapper: CheckpointImpl CheckpointWrapper apply_activation_checkpointing
    checkpoint_wrapper
distributed.algorithms._comm_hooks: default_hooks
distributed.algorithms.join: Join Joinable JoinHook
distributed.algorithms.model_averaging.averagers: ModelAverager PeriodicModelAverager
distributed.checkpoint: FileSystemReader FileSystemWriter DefaultSavePlanner DefaultLoadPlanner load save async_save
    load_state_dict save_state_dict state_dict_saver
distributed.checkpoint.default_planner: DefaultLoadPlanner DefaultSavePlanner
distributed.checkpoint.filesystem: FileSystemReader FileSystemWriter
distributed.checkpoint.format_utils: dcp_to_torch_save torch_save_to_dcp
distributed.checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint.metadata: Metadata
distributed.checkpoint.optimizer: load_sharded_optimizer_state_dict
distributed.checkpoint.state_dict: StateDictOptions get_model_state_dict get_optimizer_state_dict
    get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict
distributed.checkpoint.state_dict_saver: AsyncCheckpointerType AsyncSaveResponse
distributed.checkpoint.stateful: Stateful
distributed.optim: ZeroRedundancyOptimizer PostLocalSGDOptimizer
distributed.pipelining: PipelineStage ScheduleGPipe Schedule1F1B pipeline pipe_split
distributed.run: get_args_parser run
distributed.launcher.api: elastic_launch LaunchConfig
distributed.utils:
_C._distributed_c10d: ProcessGroup Store
_C._distributed_rpc: _TensorPipeRpcBackendOptionsBase
""",
    QUANTIZED: """
ao:
ao.nn:
ao.nn.quantized: FloatFunctional Linear Conv2d
ao.nn.quantized.modules.utils: _quantize_weight
ao.nn.intrinsic: ConvReLU2d
ao.nn.qat: Linear Conv2d
ao.ns.fx.utils: compute_sqnr
ao.pruning: WeightNormSparsifier
ao.quantization: QuantStub DeQuantStub QuantWrapper QConfig MinMaxObserver PlaceholderObserver FakeQuantize
    FakeQuantizeBase
    ObserverBase HistogramObserver MovingAverageMinMaxObserver PerChannelMinMaxObserver UniformQuantizationObserverBase
    QConfigMapping prepare prepare_qat convert fuse_modules fuse_modules_qat quantize quantize_dynamic
    get_default_qconfig get_default_qat_qconfig get_default_qconfig_mapping float_qparams_weight_only_qconfig
    default_dynamic_qconfig
ao.quantization.fx: prepare_fx
ao.quantization.fx._decomposed: quantized_decomposed_lib
ao.quantization.fx.utils: create_getattr_from_value
ao.quantization.quantize_fx: prepare_fx prepare_qat_fx convert_fx convert_to_reference_fx fuse_fx
ao.quantization.observer: AffineQuantizedObserverBase ObserverBase UniformQuantizationObserverBase PartialWrapper
    HistogramObserver MinMaxObserver MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver
    PerChannelMinMaxObserver PlaceholderObserver _PartialWrapper _with_args
ao.quantization.quantizer: Quantizer QuantizationAnnotation QuantizationSpec QuantizationSpecBase SharedQuantizationSpec
    DerivedQuantizationSpec FixedQParamsQuantizationSpec EdgeOrNode
ao.quantization.quantizer.quantizer: Q_ANNOTATION_KEY
ao.quantization.utils: check_min_max_valid calculate_qmin_qmax is_per_channel is_per_tensor validate_qmin_qmax
quantization: QuantStub DeQuantStub QuantWrapper fuse_modules quantize_dynamic prepare convert CalibrationDataReader
backends.quantized:
nn.quantized: FloatFunctional
: - quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic fake_quantize_per_tensor_affine
    fake_quantize_per_channel_affine fused_moving_avg_obs_fake_quant _make_per_tensor_quantized_tensor
    _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
""",
    COMPILER: """
_inductor: compile aot_compile list_options
_inductor.utils: do_bench_using_profiling is_big_gpu
_inductor.cudagraph_trees: cudagraph_mark_step_begin
_inductor.fx_passes:
_inductor.fx_passes.post_grad: view_to_reshape
_inductor.pattern_matcher: PatternMatcherPass
_inductor.constant_folding: constant_fold
_inductor.codecache: - PyCodeCache
_inductor.lowering: - lowerings
_inductor.runtime.benchmarking: - benchmarker
_functorch:
_functorch._aot_autograd.functional_utils:
_export: capture_pre_autograd_graph
_export.utils: _detect_fake_mode_from_gm
_library: capture_triton
_library.fake_class_registry: register_fake_class
_prims_common: is_float_dtype make_contiguous_strides_for
_prims_common.wrappers: out_wrapper
_subclasses.functional_tensor: FunctionalTensor
_subclasses.meta_utils: is_sparse_any
fx.traceback: get_current_meta preserve_node_meta
fx.passes.utils.matcher_with_name_node_map_utils: SubgraphMatcherWithNameNodeMap
fx.passes.utils.source_matcher_utils: get_source_partitions
utils._sympy:
utils._sympy.functions: FloorDiv
utils._triton: has_triton has_triton_package
utils._ordered_set: OrderedSet
utils.cpp_extension: BuildExtension CppExtension CUDAExtension load load_inline include_paths library_paths
    - CUDA_HOME
library: triton_op wrap_triton
compiler: - load_compiled_function
""",
    SCRIPT: """
: AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType IntType InterfaceType
    ListType NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType
    TensorType TupleType UnionType
jit._recursive:
_C: AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType IntType InterfaceType
    ListType NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType
    TensorType TupleType UnionType Block ScriptMethod ScriptObject - _dispatch_dump
_C._onnx: OperatorExportTypes TrainingMode TensorProtoDataType
classes:
onnx.symbolic_opset9: unsqueeze squeeze select add expand reshape
onnx.symbolic_opset11: unsqueeze squeeze select add
onnx.symbolic_opset12: unsqueeze squeeze
onnx.operators: shape_as_tensor reshape_from_tensor_shape
""",
    KERNELS: """
nn.functional: ScalingType SwizzleType scaled_mm scaled_grouped_mm
nn.attention: activate_flash_attention_impl restore_flash_attention_impl
nn.attention.experimental:
nn.attention.experimental._scaled_dot_product_attention_quantized:
sparse: SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS
    to_sparse_semi_structured
sparse._triton_ops: bsr_dense_addmm
sparse._triton_ops_meta: optimize_bsr_dense_addmm
: - _scaled_grouped_mm _cslt_compress _cslt_sparse_mm _sparse_semi_structured_apply
    _sparse_semi_structured_apply_dense _sparse_semi_structured_tile
""",
    DEVICES: """
mtia: is_available
cuda.profiler:
cuda.sparse:
cuda: - cudart
xpu: Event Stream - device set_device get_rng_state get_rng_state_all set_rng_state set_rng_state_all
    mem_get_info memory_allocated memory_reserved max_memory_allocated reset_peak_memory_stats
mps: event - get_rng_state set_rng_state driver_allocated_memory recommended_max_memory
numa:
""",
}
