"""Known faults of runtimes: where they compute other than what they mean to, or than what their own other forms do.

The fault section of docs/profiles.md is made from this table (tools/profile_docs.py). A row whose `profiles` name
`litert-ref` and not `spec` is mended in `spec`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `types` are rows of kernel tables; `profiles` reproduce it, or refuse what it leaves undefined."""

    op: str
    types: tuple[str, ...]
    versions: str
    symptom: str
    source: str
    profiles: tuple[str, ...]


_REFERENCE = ("litert-ref", "tflite-2.14-ref", "litert-ref-arm64", "tflite-2.14-ref-arm64")
_OPTIMIZED = (
    "litert-opt",
    "litert-xnnpack",
    "tflite-2.14-opt",
    "litert-opt-arm64",
    "litert-xnnpack-arm64",
    "litert-xnnpack-arm64-a53",
    "tflite-2.14-opt-arm64",
)
_LITERT = (*_REFERENCE, *_OPTIMIZED)
_2_14 = ("tflite-2.14-ref", "tflite-2.14-opt", "tflite-2.14-ref-arm64", "tflite-2.14-opt-arm64")
_CMSIS_NN = ("tflm-cmsis-nn", "tflm-cmsis-nn-single")
_MICRO = ("tflm", *_CMSIS_NN, "tflm-esp-nn")
_TF1 = ("tf-1.15-ref", "tf-1.15-opt")
_UP_TO_2_5 = ("tf-2.3-opt", "tf-2.5-ref", "tf-2.5-opt")
_UP_TO_2_9 = (*_UP_TO_2_5, "tflite-2.7-ref", "tflite-2.7-opt", "tflite-2.9-ref", "tflite-2.9-opt")
_UP_TO_2_11 = (*_UP_TO_2_9, "tflite-2.11-ref", "tflite-2.11-opt")
_UP_TO_2_12 = (*_UP_TO_2_11, "tflite-2.12-ref", "tflite-2.12-opt", "tflite-2.12-xnnpack")
_13_TO_2_0 = tuple(f"{name}-{resolver}" for name in ("tflite-2.13", "litert-2.0") for resolver in ("ref", "opt"))

FAULTS: tuple[Fault, ...] = (
    Fault(
        "SUM",
        ("int8 int32 -> int8",),
        "2.14 to 2.3, reference kernels",
        "int8 codes are read as uint8 (code & 255), the result is clamped to 0..255 and its low byte stored",
        "LiteRT issue 4079; reduce.cc EvalSum, QuantizedMeanOrSum<uint8_t>",
        _REFERENCE,
    ),
    Fault(
        "SUM",
        ("int16 int32 -> int16",),
        "2.14 to 2.3, reference kernels",
        "int16 is read and written as uint8, half of the output stays unwritten: refused",
        "reduce.cc EvalSum",
        _REFERENCE,
    ),
    Fault(
        "SVDF",
        ("int8 int8 int8 int32? int8 -> int8",),
        "2.14 to 2.3",
        "a state of 8 bits is accepted, then read and written as 16 bits, beyond its end: refused",
        "svdf.cc Prepare, EvalIntegerSVDF; tflite-micro svdf_common.cc has both widths",
        _LITERT,
    ),
    Fault(
        "CONV_2D",
        ("int16 int8 int32 -> int16",),
        "2.14 to 2.3",
        "an int32 bias without the option quantized_bias_type is read as int64: refused",
        "conv.cc EvalQuantizedPerChannel16x8; tflite-micro conv.cc looks at the bias's type",
        _LITERT,
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int16 int8 int32 -> int16",),
        "2.14 to 2.3",
        "an int32 bias without the option quantized_bias_type is read as int64: refused",
        "fully_connected.cc EvalQuantized; tflite-micro fully_connected.cc looks at the bias's type",
        _LITERT,
    ),
    Fault(
        "SOFTMAX",
        ("int8 -> int8",),
        "2.3, reference kernels; 2.14 gives the highest code instead",
        "a row whose exponentials sum to 512 or more aborts the process: refused when it is run",
        "reference/softmax.h Softmax, GetReciprocal",
        (*_REFERENCE, *_MICRO, "spec"),
    ),
    Fault(
        "SOFTMAX",
        ("uint8 -> uint8",),
        "2.3, reference kernels; 2.14 gives the highest code instead",
        "a row whose exponentials sum to 512 or more aborts the process: refused when it is run",
        "reference/softmax.h Softmax, GetReciprocal",
        (*_REFERENCE, "spec"),
    ),
    Fault(
        "MUL",
        ("int16 int16 -> uint8",),
        "tflite-micro, October 2026",
        "constants are never computed: every code is 0, and twice as many bytes are written as the output has",
        "mul_common.cc CalculateOpDataMul, EvalMulQuantizedReference",
        _MICRO,
    ),
    Fault(
        "RELU6",
        ("int8 -> int8", "int16 -> int16"),
        "tflite-micro, October 2026",
        "codes are clamped in the input's quantization and never rescaled to the output's",
        "activations_common.cc Relu6Prepare; activations.h Relu6Quantized",
        _MICRO,
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8",),
        "tflite-micro, October 2026",
        "the shape operand is not looked at: the output has the shape that the file declares, the rest is dropped",
        "transpose_conv.cc TransposeConvPrepare",
        _MICRO,
    ),
    Fault(
        "LEAKY_RELU",
        ("uint8 -> uint8",),
        "TensorFlow 1.15",
        "codes from the zero point on are copied, whatever the output's quantization is",
        "reference_ops.h QuantizeLeakyRelu",
        _TF1,
    ),
    Fault(
        "PRELU",
        ("uint8 uint8 -> uint8",),
        "TensorFlow 1.15",
        "codes from the zero point on are copied, whatever the output's quantization is",
        "activations.cc PreluEval",
        _TF1,
    ),
    Fault(
        "CONV_2D",
        ("int8 int8 int32 -> int8",),
        "TensorFlow 1.15",
        "the fused activation is ignored: codes are clamped to -128..127 only",
        "conv.cc EvalQuantizedPerChannel",
        ("tf-1.15-opt",),
    ),
    Fault(
        "DEPTHWISE_CONV_2D",
        ("int8 int8 int32 -> int8",),
        "TensorFlow 1.15",
        "the fused activation is ignored: codes are clamped to -128..127 only",
        "depthwise_conv.cc EvalQuantizedPerChannel",
        ("tf-1.15-opt",),
    ),
    Fault(
        "REVERSE_V2",
        ("float32 int32 -> float32", "uint8 int32 -> uint8", "int8 int32 -> int8", "int16 int32 -> int16"),
        "2.14",
        "of several axes only the first is turned around",
        "reverse.cc Eval",
        _2_14,
    ),
    Fault(
        "BATCH_MATMUL",
        ("int8 int8 -> int8", "int8 int8 -> int32"),
        "2.14",
        "an adjoint x whose matrices share one y is folded into rows as if it were not adjoint: refused",
        "reference/batch_matmul.h BatchMatMul",
        _2_14,
    ),
    Fault(
        "REDUCE_PROD",
        ("int8 int32 -> int8", "int16 int32 -> int16"),
        "2.14, optimized kernels",
        "over axes of size 1 alone, temporary memory is read that was never written, stray addresses among it: refused",
        "optimized/reduce.h QuantizedReduceProd; ReduceIsCopy in later releases",
        ("tflite-2.14-opt", "tflite-2.14-opt-arm64"),
    ),
    Fault(
        "DEPTHWISE_CONV_2D",
        ("float32 float32 float32? -> float32",),
        "2.14 to 2.3, optimized kernels",
        "an absent bias is copied from a null pointer: refused",
        "optimized/depthwiseconv_float.h DepthwiseConvInitAccBuffer",
        ("litert-opt", "tflite-2.14-opt", "litert-opt-arm64", "tflite-2.14-opt-arm64"),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int8 int8 int32? -> int8",),
        "tflite-micro with CMSIS-NN 99f736a",
        "weights' zero point is ignored where the output has three dimensions or more and the depth is a multiple of 4",
        "tflite-micro cmsis_nn/fully_connected.cc EvalQuantizedInt8, arm_convolve_1x1_s8_fast",
        _CMSIS_NN,
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int16 int8 int32? -> int16",),
        "tflite-micro with CMSIS-NN 99f736a",
        "a bias of 32 bits is read as 64 bits, beyond its end: refused",
        "tflite-micro cmsis_nn/fully_connected.cc EvalQuantizedInt16",
        _CMSIS_NN,
    ),
    Fault(
        "CONV_2D",
        ("int16 int8 int32 -> int16",),
        "tflite-micro with CMSIS-NN 99f736a",
        "with a bias of 32 bits no scratch buffer is asked for, and nothing is written: refused",
        "tflite-micro cmsis_nn/conv.cc Prepare; CMSIS-NN arm_convolve_s16",
        _CMSIS_NN,
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int8 int8 int32? -> int8",),
        "2.3 to 2.9",
        "a scale for each channel reads as 0: the output is its zero point, whatever goes in, without an error",
        "core/subgraph.cc GetLegacyQuantization; fully_connected.cc PrepareImpl",
        _UP_TO_2_9,
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8", "int32 uint8 uint8 int32? -> uint8"),
        "2.3 to 2.11",
        "the fused activation is ignored",
        "transpose_conv.cc Eval",
        _UP_TO_2_11,
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8",),
        "2.3",
        "of several output channels that share a weight scale only the first has its multiplier: refused",
        "kernel_util.cc PopulateConvolutionQuantizationParams",
        ("tf-2.3-opt",),
    ),
    Fault(
        "LOGISTIC",
        ("int16 -> int16",),
        "2.3",
        "scales that are no power of two are cut off to whole multiples of 2**-12; inputs beyond the table are refused",
        "activations.cc SigmoidPrepare; reference_integer_ops::Logistic",
        ("tf-2.3-opt",),
    ),
    Fault(
        "TANH",
        ("int16 -> int16",),
        "2.3",
        "scales that are no power of two are cut off to whole multiples of 2**-12, and doubled near 2**-11",
        "activations.cc TanhPrepare; reference_integer_ops::Tanh",
        ("tf-2.3-opt",),
    ),
    Fault(
        "RESIZE_BILINEAR",
        ("int8 int32 -> int8",),
        "2.3",
        "with half-pixel centres borders are extrapolated, and wrap in 8 bits",
        "reference_ops.h ResizeBilinearInteger",
        ("tf-2.3-opt",),
    ),
    Fault(
        "LOG_SOFTMAX",
        ("uint8 -> uint8", "int8 -> int8"),
        "2.5, reference kernels",
        "constants are never prepared: every result is the lowest code",
        "activations.cc LogSoftmaxPrepare",
        ("tf-2.5-ref",),
    ),
    Fault(
        "LOG_SOFTMAX",
        ("int8 -> int8",),
        "2.5, optimized kernels",
        "codes more than 127 below their row's largest are looked up beside the table of exps: refused",
        "optimized_ops.h LogSoftmax",
        ("tf-2.5-opt",),
    ),
    Fault(
        "SUM",
        ("int8 int32 -> int8", "uint8 int32 -> uint8"),
        "2.3 to 2.12",
        "sums are not clamped: they wrap in 8 bits",
        "reduce.cc EvalSum; reference/reduce.h QuantizedMeanOrSum",
        _UP_TO_2_12,
    ),
    Fault(
        "EQUAL",
        ("int16 int16 -> bool",),
        "2.13 to LiteRT 2.0",
        "codes are compared as they are, whatever their scales",
        "comparisons.cc EqualEval",
        _13_TO_2_0,
    ),
    Fault(
        "MUL",
        ("int8 int8 -> int8", "uint8 uint8 -> uint8"),
        "2.12 to 2.3, vector code",
        "a scaled product beyond 16 bits less the zero point wraps, from the highest code to the lowest",
        "optimized/integer_ops/mul.h MulElementwise; optimized_ops.h MulElementwise, MulSimpleBroadcast",
        ("litert-opt", "litert-opt-arm64", "litert-2.0-opt", "litert-1.0-opt", "tflite-2.12-opt"),
    ),
    Fault(
        "BATCH_MATMUL",
        ("int8 int8 -> int8",),
        "LiteRT 2.0, XNNPACK",
        "the zero point of the second operand is ignored",
        "xnnpack_delegate.cc VisitBatchMatMulNode",
        ("litert-2.0-xnnpack",),
    ),
    *(
        Fault(
            op,
            ("float32 float32 -> float32",),
            "2.14, AArch64",
            symptom,
            "ActivationFunctionWithMinMax, compiled to fmaxnm and fminnm",
            ("tflite-2.14-ref-arm64", "tflite-2.14-opt-arm64"),
        )
        for op, symptom in (
            ("ADD", "NaN becomes the activation's lower limit in some elements: broadcast ones, or the last of a run"),
            ("SUB", "NaN becomes the activation's lower limit where an operand is broadcast"),
            ("DIV", "NaN becomes the activation's lower limit where an operand is broadcast"),
        )
    ),
)
