"""Which release changed which operator's bits: docs/versions.md is made from this table (tools/profile_docs.py).

Formulas: x is the accumulator; DR rounds twice (half up, then half away), DRU twice half up, SR once half up, M16 once
half up with a 16-bit multiplier, DBL once half away in float64, F32 once half to even in float32; S is the sum of N raw
codes, k = scale(x) / scale(y), zi and zo the zero points of input and output.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Releases that profiles stand for, oldest first. A profile's name is release, dash, resolver.
RELEASES = (
    "tf-2.3",
    "tf-2.5",
    *(f"tflite-2.{minor}" for minor in range(7, 15)),
    *(f"litert-{version}" for version in ("1.0", "1.2", "1.4", "2.0", "2.1", "2.2", "2.3")),
)
RESOLVERS = ("ref", "opt", "xnnpack")


@dataclass(frozen=True, slots=True)
class Change:
    """One change between two neighbouring releases: `last` still computes `before`, `first` already `after`.

    `build`: a flag of the released package decided (vector code), not the source.
    """

    op: str
    types: str
    resolvers: tuple[str, ...]
    last: str
    first: str
    before: str
    after: str
    source: str
    build: bool = False


_ALL, _BOTH, _REF, _OPT, _XNN = RESOLVERS, ("ref", "opt"), ("ref",), ("opt",), ("xnnpack",)
_AFTER_2_3, _PACKAGES = ("tf-2.3", "tf-2.5"), ("tf-2.5", "tflite-2.7")
_VECTORS_ON, _VECTORS_OFF = ("tflite-2.11", "tflite-2.12"), ("tflite-2.12", "tflite-2.13")
_VECTORS_AGAIN = ("tflite-2.14", "litert-1.0")


def _built(op: str, types: str, resolvers: tuple[str, ...], plain: str, vectors: str, source: str) -> list[Change]:
    """What the flag for vector code, on in TensorFlow's own packages, switched off in tflite-runtime's, on in 2.12, off
    in 2.13 and on again in LiteRT 1.0.
    """
    forms = (vectors, plain), (plain, vectors), (vectors, plain), (plain, vectors)
    steps = _PACKAGES, _VECTORS_ON, _VECTORS_OFF, _VECTORS_AGAIN
    return [Change(op, types, resolvers, *step, *form, source, True) for step, form in zip(steps, forms, strict=True)]


HISTORY: tuple[Change, ...] = (
    Change("CONV_2D", "int8", _OPT, *_AFTER_2_3, "DR; one column DRU", "SR; one column DRU", "ruy/apply_multiplier.cc"),
    Change(
        "FULLY_CONNECTED", "int8", _OPT, *_AFTER_2_3, "DR; one row DRU", "SR; one row DRU", "ruy/apply_multiplier.cc"
    ),
    Change(
        "ADD",
        "int16",
        _OPT,
        *_AFTER_2_3,
        "powers of two only: the finer input is shifted, half away",
        "DR of inputs and sum",
        "add.cc Prepare",
    ),
    Change(
        "SUB",
        "int16",
        _OPT,
        *_AFTER_2_3,
        "powers of two only: the finer input is shifted, half away",
        "DR of inputs and difference",
        "sub.cc Prepare",
    ),
    Change(
        "LOG_SOFTMAX",
        "int8",
        _OPT,
        *_AFTER_2_3,
        "gemmlowp's fixed point",
        "a float32 table of exps; codes more than 127 below their row's largest are looked up beside it",
        "activations.cc LogSoftmaxEval",
    ),
    Change(
        "LOGISTIC",
        "int16",
        _OPT,
        *_AFTER_2_3,
        "scales are cut off to whole multiples of 2**-12; beyond its end the table begins anew",
        "any scale; saturates",
        "activations.cc SigmoidPrepare; reference_integer_ops::Logistic",
    ),
    Change(
        "TANH",
        "int16",
        _OPT,
        *_AFTER_2_3,
        "scales are cut off to whole multiples of 2**-12, doubled where they are nearest to 2**-11",
        "any scale",
        "activations.cc TanhPrepare; reference_integer_ops::Tanh",
    ),
    Change(
        "MEAN",
        "uint8, int8; other axes",
        _OPT,
        *_AFTER_2_3,
        "S / N towards zero where quantizations are equal, else away(f32(f32(S/N)*k + f32(f32(-zi*k) + 0.5))) + zo",
        "the same without 0.5",
        "reference_ops.h QuantizedMeanOrSum",
    ),
    Change(
        "SUM",
        "uint8, int8",
        _OPT,
        *_AFTER_2_3,
        "raw codes where quantizations are equal, else float32 with 0.5 added, half away; wraps 8 bits",
        "raw codes where quantizations are equal, else float32, half away; wraps 8 bits",
        "reference_ops.h QuantizedMeanOrSum",
    ),
    Change(
        "RESIZE_BILINEAR",
        "uint8",
        _OPT,
        *_AFTER_2_3,
        "float32, towards zero",
        "float32, 0.5 added, towards zero",
        "optimized_ops.h ResizeBilinearGenericSmallChannel",
    ),
    Change(
        "RESIZE_BILINEAR",
        "int8",
        _OPT,
        *_AFTER_2_3,
        "(x + 2**19) / 2**20 towards zero, wraps; with half-pixel centres the border is extrapolated",
        "x / 2**20, half away; the border is repeated",
        "reference_ops.h ResizeBilinearInteger",
    ),
    Change(
        "TRANSPOSE_CONV",
        "int8; one weight scale",
        _OPT,
        *_AFTER_2_3,
        "only the first output channel has a multiplier",
        "every channel has it",
        "kernel_util.cc PopulateConvolutionQuantizationParams",
    ),
    Change(
        "LOG_SOFTMAX",
        "uint8, int8",
        _REF,
        *_PACKAGES,
        "the lowest code, whatever goes in: constants are never prepared",
        "gemmlowp's fixed point",
        "activations.cc LogSoftmaxPrepare",
    ),
    Change(
        "LOG_SOFTMAX",
        "int8",
        _OPT,
        *_PACKAGES,
        "codes more than 127 below their row's largest are looked up beside the table of exps",
        "every code has its exp",
        "activations.cc LogSoftmaxEval",
    ),
    Change(
        "SOFTMAX",
        "uint8, int8, also to int16",
        _REF,
        *_PACKAGES,
        "as the optimized resolver: a float32 table of exps",
        "gemmlowp's fixed point",
        "register_ref.cc; activations.cc SoftmaxEval",
    ),
    Change(
        "MEAN",
        "uint8, int8; axes 1 and 2 of images",
        _OPT,
        *_PACKAGES,
        "DR(S; k/N) + zo - zi*k, that product cut off towards zero",
        "int8: DR(S - N*zi; k) / N, half away, + zo; uint8: DR(S; k/N) + zo - away(zi*k)",
        "optimized/integer_ops/mean.h Mean; optimized_ops.h Mean",
    ),
    Change(
        "MEAN",
        "uint8; axes 1 and 2 of images",
        _REF,
        *_PACKAGES,
        "DR(S; k/N) + zo - zi*k, that product cut off towards zero",
        "DR(S; k/N) + zo - away(zi*k)",
        "optimized_ops.h Mean",
    ),
    Change(
        "CONV_2D",
        "int8",
        _OPT,
        *_PACKAGES,
        "one column by the vector kernel: DRU; else SR",
        "SR",
        "cpu_backend_gemm.h Gemm",
        build=True,
    ),
    Change(
        "FULLY_CONNECTED",
        "uint8, int8",
        _OPT,
        *_PACKAGES,
        "one row by the vector kernel: DRU; else int8 SR, uint8 DR",
        "int8 SR, uint8 DR",
        "cpu_backend_gemm.h Gemm",
        build=True,
    ),
    Change(
        "TRANSPOSE_CONV",
        "int16",
        _BOTH,
        "tflite-2.8",
        "tflite-2.9",
        "64-bit sums, M16",
        "32-bit sums, DR, unless the bias has 64 bits",
        "transpose_conv.cc EvalQuantizedPerChannel16x8",
    ),
    Change(
        "FULLY_CONNECTED",
        "int16",
        _BOTH,
        "tflite-2.8",
        "tflite-2.9",
        "outputs of more than two dimensions are not written",
        "written",
        "reference/integer_ops/fully_connected.h FullyConnected",
    ),
    Change(
        "FULLY_CONNECTED",
        "int8, int16; several weight scales",
        _BOTH,
        "tflite-2.9",
        "tflite-2.10",
        "zo, whatever goes in: several scales read as 0",
        "a multiplier for each channel",
        "core/subgraph.cc GetLegacyQuantization; fully_connected.cc Prepare",
    ),
    Change(
        "MEAN",
        "int8, int16; axes 1 and 2 of images",
        _REF,
        "tflite-2.9",
        "tflite-2.10",
        "DR(S - N*zi; k) / N, half away, + zo",
        "S / N towards zero where quantizations are equal, else away(f32(f32(S/N)*k + f32(-zi*k))) + zo",
        "reference/integer_ops/mean.h Mean; reference/reduce.h QuantizedMeanOrSum",
    ),
    Change(
        "MEAN",
        "int8; axes 1 and 2 of images",
        _OPT,
        "tflite-2.9",
        "tflite-2.10",
        "DR(S - N*zi; k) / N, half away, + zo",
        "DR(S; k/N) + zo - away(zi*k)",
        "optimized/integer_ops/mean.h Mean",
    ),
    Change(
        "BATCH_MATMUL",
        "int8 to int32",
        _OPT,
        "tflite-2.9",
        "tflite-2.10",
        "products of raw codes",
        "products of centred codes",
        "batch_matmul.cc EvalInt8Int32",
    ),
    Change(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "int8 with gates of 16 bits, no projection; LSTM alike",
        _BOTH,
        "tflite-2.11",
        "tflite-2.12",
        "the hidden state's zero point is subtracted",
        "it is added",
        "portable_tensor_utils.cc PortableCwiseMul",
    ),
    Change(
        "TRANSPOSE_CONV",
        "uint8, int8, int16",
        _BOTH,
        "tflite-2.11",
        "tflite-2.12",
        "the fused activation is ignored",
        "it limits codes",
        "transpose_conv.cc Eval",
    ),
    *_built("ADD", "uint8, int8, int16", _OPT, "DR of inputs and sum", "inputs with one rounding less", "add.h"),
    *_built("DEPTHWISE_CONV_2D", "int8", _OPT, "DR", "DRU in blocks of 8 channels", "depthwise_conv.h"),
    *_built("TRANSPOSE_CONV", "uint8, int8", _OPT, "DR", "DRU in blocks", "transpose_conv.h TransposeConvV2"),
    *_built("QUANTIZE", "8 bits to 8 bits", _OPT, "DR", "DRU in blocks", "optimized_ops.h Requantize"),
    *_built("MUL", "uint8, int8", _OPT, "held in 32 bits", "saturated in 16 bits, then zo added with wrap", "mul.h"),
    *_built("MEAN", "int8; axes 1 and 2 of images", _OPT, "DR", "DRU in blocks of 16", "integer_ops/mean.h Mean"),
    *_built("LSTM", "uint8, kernel type BASIC", _BOTH, "gemmlowp", "one row by the vector kernel", "lstm.cc basic"),
    Change(
        "CONV_2D",
        "int8",
        _OPT,
        "tflite-2.12",
        "tflite-2.13",
        "SR (one column in builds with vector code: DRU)",
        "DRU",
        "ruy/apply_multiplier.cc",
    ),
    Change(
        "FULLY_CONNECTED",
        "int8",
        _OPT,
        "tflite-2.12",
        "tflite-2.13",
        "SR (one row in builds with vector code: DRU)",
        "DRU",
        "ruy/apply_multiplier.cc",
    ),
    Change("BATCH_MATMUL", "int8", _OPT, "tflite-2.12", "tflite-2.13", "SR", "DRU", "ruy/apply_multiplier.cc"),
    Change(
        "MEAN",
        "uint8, int8, int16; other axes, and the reference's images",
        _BOTH,
        "tflite-2.12",
        "tflite-2.13",
        "S / N towards zero where quantizations are equal, else float32, half away",
        "DR(S - N*zi; k) with N in the multiplier, + zo",
        "reference/reduce.h QuantizedMeanOrSum",
    ),
    Change(
        "SUM",
        "uint8, int8",
        _BOTH,
        "tflite-2.12",
        "tflite-2.13",
        "raw codes where quantizations are equal, else float32, half away; wraps 8 bits",
        "raw codes where they are equal, else DR(S - N*zi; k) + zo, clamped",
        "reduce.cc EvalSum",
    ),
    Change(
        "SUM",
        "uint8, int8, int16",
        _REF,
        "tflite-2.13",
        "tflite-2.14",
        "raw codes where quantizations are equal, else DR",
        "DR, int8 read as uint8",
        "reduce.cc EvalSum, QuantizedMeanOrSum<uint8_t>",
    ),
    Change(
        "SUM",
        "uint8, int8",
        _OPT,
        "tflite-2.13",
        "tflite-2.14",
        "raw codes where quantizations are equal, else DR",
        "float32, half away, clamped",
        "optimized/reduce.h QuantizedMeanOrSum",
    ),
    Change(
        "TRANSPOSE_CONV",
        "int16",
        _BOTH,
        "tflite-2.14",
        "litert-1.0",
        "32-bit sums, DR, without a bias",
        "64-bit sums, M16, unless quantized_bias_type says 32",
        "transpose_conv.cc EvalQuantizedPerChannel16x8",
    ),
    Change("CONV_2D", "uint8", _OPT, "tflite-2.14", "litert-1.0", "gemmlowp: DR", "ruy: DRU", "cpu_backend_gemm.h"),
    Change(
        "FULLY_CONNECTED", "uint8", _OPT, "tflite-2.14", "litert-1.0", "gemmlowp: DR", "ruy: DRU", "cpu_backend_gemm.h"
    ),
    Change(
        "FULLY_CONNECTED",
        "uint8, int8, int16",
        _REF,
        "litert-1.2",
        "litert-1.4",
        "DR, M16",
        "DBL",
        "fully_connected.cc; April 2025",
    ),
    Change(
        "BATCH_MATMUL",
        "int8 to int32",
        _OPT,
        "litert-1.2",
        "litert-1.4",
        "products of centred codes",
        "products of raw codes",
        "batch_matmul.cc EvalInt8Int32",
    ),
    Change("BATCH_MATMUL", "int8", _OPT, "litert-1.4", "litert-2.0", "ruy: DRU", "DR", "batch_matmul.cc EvalInt8Int8"),
    Change(
        "LEAKY_RELU",
        "uint8, int8; in the reference resolver int16 too",
        _BOTH,
        "litert-2.0",
        "litert-2.1",
        "DR(x; -M) for a negative alpha",
        "-DR(x; M)",
        "reference/leaky_relu.h QuantizeLeakyRelu",
    ),
    Change(
        "EQUAL", "int16", _BOTH, "litert-2.0", "litert-2.1", "codes as they are", "rescaled", "comparisons.cc EqualEval"
    ),
    Change(
        "MEAN",
        "uint8, int8",
        _XNN,
        "litert-1.0",
        "litert-1.2",
        "images only: rne(f32(f32(S - N*zi) * f32(k/N))) + zo",
        "away(f32(f32(f32(S/N)*k + f32(-zi*k)) + zo))",
        "xnnpack_delegate.cc VisitMeanNode",
    ),
    Change(
        "MEAN",
        "uint8, int8",
        _XNN,
        "litert-2.0",
        "litert-2.1",
        "away(f32(f32(f32(S/N)*k + f32(-zi*k)) + zo))",
        "one float32 multiplier of S, one addition, rne",
        "xnnpack_delegate.cc VisitReduceNode",
    ),
    Change(
        "SUM",
        "uint8, int8",
        _XNN,
        "litert-1.0",
        "litert-1.2",
        "not XNNPACK's: as with the optimized kernels",
        "away(f32(f32(f32(S)*k) + f32(f32(-zi*k)*N)) + zo), clamped",
        "xnnpack_delegate.cc VisitReduceNode",
    ),
    Change(
        "SUM",
        "uint8, int8",
        _XNN,
        "litert-2.0",
        "litert-2.1",
        "away(f32(f32(f32(S)*k) + f32(f32(-zi*k)*N)) + zo), clamped",
        "one float32 multiplier of S, one addition, rne",
        "xnnpack_delegate.cc VisitReduceNode",
    ),
    Change(
        "BATCH_MATMUL",
        "int8",
        _XNN,
        "litert-1.4",
        "litert-2.0",
        "not taken: DRU",
        "F32, the second operand's zero point ignored",
        "xnnpack_delegate.cc VisitBatchMatMulNode",
    ),
    Change(
        "BATCH_MATMUL",
        "int8",
        _XNN,
        "litert-2.0",
        "litert-2.1",
        "F32, the second operand's zero point ignored",
        "F32 where that zero point is 0, else not taken",
        "xnnpack_delegate.cc VisitBatchMatMulNode",
    ),
)
