"""How PyTorch calls the nodes of gradients that are themselves differentiated.

Here a derived backward is one operation, and its node is called after that of the forward: ``GeluBackwardBackward0``.
Where PyTorch has no such operation it computes the gradient by several, and the node that the gradient has is the last
one's. The table has these, by what is outermost; read off PyTorch 2.13.
"""

from __future__ import annotations

_OUTERMOST = {
    "MulBackward0": (
        "Abs0 Acos0 Acosh0 Addcdiv0 Addcmul0 Amax0 Amin0 Aminmax0 Asin0 Asinh0 Atan20 Copysign0 Copysign1 "
        "Cos0 Cosh0 Digamma0 Dist0 Dot0 Erf0 Erfc0 Erfinv0 Exp0 Expm10 Fmod1 I00 Ldexp0 Lerp1 Lgamma0 "
        "LinalgVectorNorm0 Logsumexp0 Mish0 Mul0 Mv0 Mvlgamma0 Nansum0 NanToNum0 Polygamma0 Pow0 Prod0 Prod1 "
        "Reciprocal0 Remainder1 Rsqrt0 Silu0 Sin0 Sinh0 SpecialEntr0 SpecialErfcx0 SpecialI0E0 SpecialI10 "
        "SpecialI1E0 SpecialLogNdtr0 SpecialNdtri0 Std0 StdMean0 Tan0 Var0 VarMean0 Vdot0"
    ),
    "DivBackward0": "Atan0 Atanh0 Cumprod0 Div0 Hypot0 Log0 Log100 Log1P0 Log20 Logaddexp0 Logaddexp20 Sqrt0",
    "WhereBackward0": "Clamp0 Clamp1 ClampMax0 ClampMin0 IndexReduce0 Logit0 Pow1 Renorm0 ScatterReduce0 Sinc0 Where0",
    "MaskedFillBackward0": "Fmax0 Fmin0 MaskedFill0 MaskedScatter0 Maximum0 Minimum0 SpecialXlog1Py0 Xlogy0",
    "MmBackward0": "Addmm0 LinalgEigh0 LinalgLstsq0 LinalgLu0 LinalgLuFactorEx0 LinalgSvd0 Mm0",
    "ScatterBackward0": "Kthvalue0 Max0 Median1 Min0 Mode0 Sort0 Topk0",
    "NegBackward0": "CholeskyInverse0 LinalgInvEx0 LinalgSolveEx0 Neg0 Rsub0 Rsub1",
    "MaskedFillBackward1": "Max1 Median0 Min1 Nanmedian0",
    "MulBackward1": "Deg2Rad0 Exp20 Lerp0 SparseSampledAddmm0",
    "BmmBackward0": "Addbmm0 Baddbmm0 Bmm0",
    "DivBackward1": "BinaryCrossEntropyWithLogits0 Mean0 Mean1",
    "LinalgSolveTriangularBackward0": "Cholesky0 LinalgCholeskyEx0 LinalgQr0",
    "ScatterAddBackward0": "Cummax0 Cummin0 Gather0",
    "SelectBackward0": "Complex0 FftR2C0 Polar0",
    "TrilBackward0": "LinalgHouseholderProduct0 Ormqr0 Tril0",
    "AddBackward0": "LinalgLuSolve0 LinalgPinv0",
    "ExpandBackward0": "Sum0 Sum1",
    "FlipBackward0": "Cumsum0 Flip0",
    "IndexFillBackward0": "IndexCopy0 IndexFill0",
    "MvBackward0": "Addmv0 Addr0",
    "PutBackward0": "Put0 Take0",
    "ScatterBackward1": "Scatter0 Scatter1",
    "SoftmaxBackwardDataBackward0": "SafeSoftmax0 Softmax0",
    "TriuBackward0": "LinalgSolveTriangular0 Triu0",
    "ViewBackward0": "NativeGroupNorm0 Trace0",
    "BatchNormBackwardBackward0": "BatchNormWithUpdate0",
    "CatBackward0": "Split0",
    "CholeskySolveBackward0": "CholeskySolve0",
    "ConstantPadNdBackward0": "ConstantPadNd0",
    "EluBackwardBackward0": "Celu0",
    "EmbeddingDenseBackwardBackward0": "Embedding0",
    "IndexAddBackward0": "IndexSelect0",
    "IndexPutBackward0": "IndexPut0",
    "IndexPutImplBackward0": "Index0",
    "LinalgCrossBackward0": "LinalgCross0",
    "LinalgSolveExBackward0": "LinalgDet0",
    "LogSoftmaxBackwardDataBackward0": "LogSoftmax0",
    "MaskedScatterBackward0": "MaskedSelect0",
    "NativeBatchNormBackwardBackward0": "NativeBatchNormLegit0",
    "RollBackward0": "Roll0",
    "Rot90Backward0": "Rot900",
    "SliceBackward0": "LinalgMatrixExp0",
    "StackBackward0": "Unbind0",
    "SubBackward0": "Logcumsumexp0",
    "SumBackward1": "Repeat0",
    "ThresholdBackwardBackward0": "Relu0",
    "ToCopyBackward0": "ToCopy0",
    "TriangularSolveBackward0": "TriangularSolve0",
}
#: The node of the gradient by the node that computes it.
OUTERMOST = {f"{name[:-1]}Backward{name[-1]}": node for node, names in _OUTERMOST.items() for name in names.split()}

_OF_ITS_OWN = (
    "AdaptiveAvgPool2D0 AdaptiveAvgPool3D0 AdaptiveMaxPool2D0 AdaptiveMaxPool3D0 AvgPool2D0 AvgPool3D0 Convolution0 "
    "FractionalMaxPool2D0 FractionalMaxPool3D0 GridSampler2D0 GridSampler3D0 Hardshrink0 Hardsigmoid0 Hardtanh0 "
    "Hardtanh1 LeakyRelu0 LeakyRelu1 MaxPool2DWithIndices0 MaxPool3DWithIndices0 MultiMarginLoss0 "
    "MultilabelMarginLoss0 NativeBatchNorm0 NativeLayerNorm0 NllLoss0 NllLoss2D0 PreluKernel0 ReflectionPad1D0 "
    "ReflectionPad2D0 ReflectionPad3D0 Relu0 ReplicationPad1D0 ReplicationPad2D0 ReplicationPad3D0 RreluWithNoise0 "
    "Softshrink0 Threshold0 Threshold1"
)

#: The nodes whose gradient PyTorch computes by one operation that has a derivative of its own: it requires grad where
#: what is saved does, though that decides only which elements get a gradient.
OF_ITS_OWN = frozenset(f"{name[:-1]}Backward{name[-1]}" for name in _OF_ITS_OWN.split())
