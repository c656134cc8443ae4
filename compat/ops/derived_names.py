"""How PyTorch calls the nodes of gradients that are themselves differentiated.

Here a derived backward is one operation, and its node is called after that of the forward: ``GeluBackwardBackward0``.
Where PyTorch has no such operation it computes the gradient by several, and the node that the gradient has is the last
one's. The table has these, by what is outermost; read off PyTorch 2.13.
"""

from __future__ import annotations

_OUTERMOST = {
    "MulBackward0": (
        "Abs0 Acos0 Acosh0 Addcdiv0 Addcmul0 Asin0 Asinh0 Atan20 Copysign0 Cos0 Cosh0 Digamma0 Dist0 Dot0 "
        "Erf0 Erfc0 Erfinv0 Exp0 Expm10 Fmod1 I00 Ldexp0 Lerp1 Lgamma0 LinalgVectorNorm0 Logsumexp0 Mish0 "
        "Mul0 Mv0 Mvlgamma0 Polygamma0 Pow0 Prod0 Prod1 Reciprocal0 Remainder1 Rsqrt0 Silu0 Sin0 Sinh0 "
        "SpecialEntr0 SpecialErfcx0 SpecialI0E0 SpecialI10 SpecialI1E0 SpecialLogNdtr0 SpecialNdtri0 Std0 "
        "StdMean0 Tan0 Var0 VarMean0 Vdot0"
    ),
    "DivBackward0": "Atan0 Atanh0 Cumprod0 Div0 Hypot0 Log100 Log1P0 Log20 Log0 Logaddexp20 Logaddexp0 Sqrt0",
    "MmBackward0": "LinalgEigh0 LinalgLstsq0 LinalgLu0 LinalgLuFactorEx0 LinalgSvd0 Mm0 Addmm0",
    "WhereBackward0": "IndexReduce0 Logit0 Pow1 Renorm0 ScatterReduce0 Sinc0",
    "MulBackward1": "Exp20 SparseSampledAddmm0",
    "BmmBackward0": "Addbmm0 Baddbmm0 Bmm0",
    "LinalgSolveTriangularBackward0": "Cholesky0 LinalgCholeskyEx0 LinalgQr0",
    "NegBackward0": "CholeskyInverse0 LinalgInvEx0 LinalgSolveEx0",
    "AddBackward0": "LinalgLuSolve0 LinalgPinv0",
    "MaskedFillBackward0": "SpecialXlog1Py0 Xlogy0",
    "SoftmaxBackwardDataBackward0": "SafeSoftmax0 Softmax0",
    "TrilBackward0": "LinalgHouseholderProduct0 Ormqr0",
    "BatchNormBackwardBackward0": "BatchNormWithUpdate0",
    "CholeskySolveBackward0": "CholeskySolve0",
    "DivBackward1": "BinaryCrossEntropyWithLogits0",
    "EluBackwardBackward0": "Celu0",
    "IndexPutImplBackward0": "Index0",
    "LinalgCrossBackward0": "LinalgCross0",
    "LinalgSolveExBackward0": "LinalgDet0",
    "LogSoftmaxBackwardDataBackward0": "LogSoftmax0",
    "MvBackward0": "Addr0 Addmv0",
    "NativeBatchNormBackwardBackward0": "NativeBatchNormLegit0",
    "SliceBackward0": "LinalgMatrixExp0",
    "SubBackward0": "Logcumsumexp0",
    "ThresholdBackwardBackward0": "Relu0",
    "TriangularSolveBackward0": "TriangularSolve0",
    "TriuBackward0": "LinalgSolveTriangular0",
    "ViewBackward0": "NativeGroupNorm0",
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
