"""The profiles: one row each. What a row does not state is its base's.

Fields of the arithmetic and their values are spelled as in tflq/profiles/values.py; `release`, `resolver`, `cpu`,
`vectors` and `library` are the coordinates by which rows of kernels are chosen (tflq/kernels/validity.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Row:
    """One profile. `source` holds the fields of `Source` that differ from the base's.

    `figures` names the profile with whose measured figures close results are described; empty if none were measured.
    """

    name: str
    about: str
    base: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    runtime: Mapping[str, str | bool] = field(default_factory=dict)
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    figures: str = ""


_OPT, _XNNPACK = "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN"
#: FULLY_CONNECTED scales as every other operator does; float64 scaling came in LiteRT 1.4.
_DENSE_AS_OTHERS = {
    "dense_real": "prepared",
    "requantize_dense": "double-rounding",
    "requantize_dense_wide": "wide-rounding",
}
_REFERENCE = {
    "requantize": "double-rounding",
    "requantize_gemm": "double-rounding",
    "requantize_simd": "double-rounding",
    "requantize_wide": "wide-rounding",
    "dense_real": "exact",
    "requantize_dense": "float64",
    "requantize_dense_wide": "float64-wide",
}
_GEMM_SINGLE = {"requantize_gemm": "single-rounding"}
_VECTORS = {"requantize_simd": "half-up-twice"}
_ARM64 = {**_GEMM_SINGLE, **_VECTORS, "multiply_add": "fused"}


def _release(name: str) -> dict[str, str]:
    return {"release": name}


_ROWS = (
    Row(
        "litert-ref",
        "LiteRT 2.3 (and TensorFlow 2.21), BUILTIN_REF, x86-64.",
        source={"package": "ai-edge-litert", "version": "2.3.0", "resolver": "BUILTIN_REF", "cpu": "x86-64"},
        arithmetic=_REFERENCE,
    ),
    Row(
        "litert-opt",
        f"LiteRT 2.3 (and TensorFlow 2.21), {_OPT}, x86-64 with AVX2, one thread.",
        "litert-ref",
        {"resolver": _OPT, "cpu": "x86-64 with AVX2"},
        {"resolver": "opt"},
        {"requantize_gemm": "half-up-twice", **_VECTORS},
        "litert-opt",
    ),
    Row(
        "litert-2.4-ref",
        "LiteRT 2.4 (nightly of October 2026), BUILTIN_REF, x86-64: multipliers are computed in float64. Seen in RELU, "
        "RELU6, ABS, LEAKY_RELU, PRELU, MUL, BATCH_MATMUL, and in convolutions of uint8.",
        "litert-ref",
        {"package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"},
        arithmetic={"scale_type": "float64"},
    ),
    Row(
        "litert-2.4-opt",
        "`litert-opt` with the multipliers of `litert-2.4-ref`.",
        "litert-opt",
        {"package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"},
        arithmetic={"scale_type": "float64"},
    ),
    Row(
        "litert-2.4-xnnpack",
        "`litert-xnnpack` with the multipliers of `litert-2.4-ref`.",
        "litert-xnnpack",
        {"package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"},
        arithmetic={"scale_type": "float64"},
    ),
    Row(
        "litert-xnnpack",
        "LiteRT 2.3 (and TensorFlow 2.21), BUILTIN, x86-64 with AVX2, one thread: what Python users get. 8-bit results "
        "do not depend on the vector extension: every one rounds a float32 product half to even. Float results of "
        "FULLY_CONNECTED with scales of blocks do: they are those of AVX2.",
        "litert-opt",
        {"resolver": _XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
        {"xnnpack_blocks": "four-lanes"},
        "litert-xnnpack",
    ),
    Row(
        "litert-xnnpack-avx512",
        "LiteRT 2.3, BUILTIN, x86-64 with AVX-512 VNNI, one thread. Integers and hybrid operators are as "
        "`litert-xnnpack`, except for sums of FULLY_CONNECTED with scales of blocks; leaky rectifiers copy negative "
        "zeros.",
        "litert-xnnpack",
        {"cpu": "x86-64 with AVX-512 VNNI", "vectors": "AVX-512 VNNI"},
        arithmetic={"xnnpack_blocks": "by-block", "xnnpack_negative": "below-zero"},
    ),
    Row(
        "litert-js",
        'LiteRT.js 2.5, accelerator "wasm", WebAssembly with SIMD: XNNPACK as `litert-xnnpack`. Only 8-bit integers '
        "are claimed: hybrid operators and floats have other kernels there, which depend on relaxed SIMD.",
        "litert-opt",
        {"package": "@litertjs/core", "version": "2.5.3", "resolver": "wasm", "cpu": "WebAssembly"},
        {"resolver": "xnnpack", "cpu": "wasm"},
        figures="none",
    ),
    Row(
        "litert-xnnpack-arm64",
        "LiteRT 2.3, BUILTIN, AArch64 Linux, one thread, on cores with dot products (Cortex-A76): what most phones and "
        "boards run. Unlike x86-64, uint8 results and products are scaled exactly, half up; int8 convolutions are not. "
        "Float activations meet int8 weights in FULLY_CONNECTED only, and are scaled back without a fused "
        "multiply-add. Cores without dot products are as `litert-xnnpack-arm64-a53` there; cores of another class than "
        "Cortex-A53 are as this profile everywhere else.",
        "litert-opt-arm64",
        {"resolver": _XNNPACK, "cpu": "AArch64, Cortex-A76"},
        {"resolver": "xnnpack"},
        {"xnnpack_uint8_gemm": "exact-half-up", "xnnpack_product": "exact-half-up", "xnnpack_rescale": "apart"},
        "litert-xnnpack-arm64",
    ),
    Row(
        "litert-xnnpack-arm64-a53",
        "As `litert-xnnpack-arm64`, where the system's first core is of the class of Cortex-A53, A55 or Kryo: XNNPACK "
        "then scales uint8 matrix products in 16 bits. Depthwise convolutions and products do not change. Float "
        "activations with int8 weights are as on x86-64.",
        "litert-xnnpack-arm64",
        {"cpu": "AArch64, class of Cortex-A53"},
        {"cpu": "arm64-a53"},
        {"xnnpack_uint8_gemm": "short-half-up", "xnnpack_rescale": "fused"},
        "litert-xnnpack-arm64-a53",
    ),
    Row(
        "tflite-2.14-ref",
        "tflite-runtime 2.14.0, BUILTIN_REF, x86-64. FULLY_CONNECTED scales as every other operator does; the float64 "
        "scaling came in April 2025.",
        "litert-ref",
        {"package": "tflite-runtime", "version": "2.14.0"},
        {"release": "tflite-2.14", "vectors": False},
        _DENSE_AS_OTHERS,
        "tflite-2.14-ref",
    ),
    Row(
        "tflite-2.14-opt",
        f"tflite-runtime 2.14.0, {_OPT}, x86-64 with AVX or later, one thread.",
        "tflite-2.14-ref",
        {"resolver": _OPT, "cpu": "x86-64 with AVX"},
        {"resolver": "opt"},
        {"requantize_gemm": "half-up-twice"},
        "tflite-2.14-opt",
    ),
    Row(
        "litert-2.0-ref",
        "LiteRT 2.0.3, BUILTIN_REF, x86-64; 1.4.0 gives the same bits. Some adjoint BATCH_MATMULs are refused, which "
        "these releases fold wrongly.",
        "litert-ref",
        {"version": "2.0.3"},
        _release("litert-2.0"),
    ),
    Row(
        "litert-2.0-opt",
        f"LiteRT 2.0.3, {_OPT}, x86-64 with AVX2, one thread. Some adjoint BATCH_MATMULs and REDUCE_PRODs are refused, "
        "whose results these releases leave undefined.",
        "litert-opt",
        {"version": "2.0.3"},
        _release("litert-2.0"),
        figures="none",
    ),
    Row(
        "litert-2.0-xnnpack",
        "LiteRT 2.0.3, BUILTIN, x86-64 with AVX2, one thread. MEAN and SUM round half away; BATCH_MATMUL int8 ignores "
        "the zero point of its second operand.",
        "litert-2.0-opt",
        {"resolver": _XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
    ),
    Row(
        "litert-1.4-opt",
        f"LiteRT 1.4.0, {_OPT}, x86-64 with AVX2, one thread. ruy multiplies the matrices of BATCH_MATMUL int8.",
        "litert-2.0-opt",
        {"version": "1.4.0"},
        _release("litert-1.4"),
    ),
    Row(
        "litert-1.4-xnnpack",
        "LiteRT 1.4.0, BUILTIN, x86-64 with AVX2, one thread; 1.2.0 gives the same bits. MEAN and SUM round half away; "
        "BATCH_MATMUL int8 is left to the optimized kernels.",
        "litert-1.4-opt",
        {"resolver": _XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
    ),
    Row(
        "litert-1.0-ref",
        "LiteRT 1.0.1, BUILTIN_REF, x86-64; 1.2.0 gives the same bits. FULLY_CONNECTED scales as every other operator "
        "does; from 1.4 on as in 2.3.",
        "litert-2.0-ref",
        {"version": "1.0.1"},
        _release("litert-1.0"),
        _DENSE_AS_OTHERS,
    ),
    Row(
        "litert-1.0-opt",
        f"LiteRT 1.0.1, {_OPT}, x86-64 with AVX2, one thread; 1.2.0 gives the same bits. BATCH_MATMUL of int8 to int32 "
        "subtracts zero points; FULLY_CONNECTED of 16-bit activations scales as every other operator does. 4-bit "
        "weights of activations other than int8 are refused, which this release reads packed.",
        "litert-1.4-opt",
        {"version": "1.0.1"},
        _release("litert-1.0"),
        _DENSE_AS_OTHERS,
    ),
    Row(
        "litert-1.0-xnnpack",
        "LiteRT 1.0.1, BUILTIN, x86-64 with AVX2, one thread. MEAN over images is average pooling.",
        "litert-1.0-opt",
        {"resolver": _XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
    ),
    Row(
        "tflite-2.13-ref",
        "tflite-runtime 2.13.0, BUILTIN_REF, x86-64. SUM is not that of 2.14.",
        "tflite-2.14-ref",
        {"version": "2.13.0"},
        _release("tflite-2.13"),
        figures="none",
    ),
    Row(
        "tflite-2.13-opt",
        f"tflite-runtime 2.13.0, {_OPT}, x86-64 with AVX or later, one thread.",
        "tflite-2.14-opt",
        {"version": "2.13.0"},
        _release("tflite-2.13"),
        figures="none",
    ),
    Row(
        "tflite-2.12-ref",
        "tflite-runtime 2.12.0, BUILTIN_REF, x86-64, a package built with vector code. MEAN and SUM are not those of "
        "2.13. The basic LSTM multiplies one row by the matrix-vector kernel.",
        "tflite-2.13-ref",
        {"version": "2.12.0", "cpu": "x86-64, SSE4.1"},
        {"release": "tflite-2.12", "vectors": True},
        _VECTORS,
    ),
    Row(
        "tflite-2.12-opt",
        f"tflite-runtime 2.12.0, {_OPT}, x86-64, one thread, a package built with vector code: NEON code by way of "
        "SSE. ruy scales int8 matrix products once, half up. MEAN and SUM are not those of 2.13.",
        "tflite-2.13-opt",
        {"version": "2.12.0", "cpu": "x86-64, SSE4.1"},
        {"release": "tflite-2.12", "vectors": True},
        {**_GEMM_SINGLE, **_VECTORS},
    ),
    Row(
        "tflite-2.12-xnnpack",
        "tflite-runtime 2.12.0, BUILTIN, x86-64, one thread: XNNPACK takes int8, and no uint8.",
        "tflite-2.12-opt",
        {"resolver": _XNNPACK},
        {"resolver": "xnnpack"},
    ),
    Row(
        "tflite-2.11-ref",
        "tflite-runtime 2.11.0, BUILTIN_REF, x86-64; 2.10.0 gives the same bits. TRANSPOSE_CONV has no fused "
        "activation; there is no vector code.",
        "tflite-2.13-ref",
        {"version": "2.11.0"},
        _release("tflite-2.11"),
    ),
    Row(
        "tflite-2.11-opt",
        f"tflite-runtime 2.11.0, {_OPT}, x86-64, one thread; 2.10.0 gives the same bits. TRANSPOSE_CONV has no fused "
        "activation; there is no vector code.",
        "tflite-2.13-opt",
        {"version": "2.11.0", "cpu": "x86-64"},
        _release("tflite-2.11"),
        _GEMM_SINGLE,
    ),
    Row(
        "tflite-2.9-ref",
        "tflite-runtime 2.9.1, BUILTIN_REF, x86-64. MEAN over images is not that of 2.11; FULLY_CONNECTED reads one "
        "weight scale only.",
        "tflite-2.11-ref",
        {"version": "2.9.1"},
        _release("tflite-2.9"),
    ),
    Row(
        "tflite-2.9-opt",
        f"tflite-runtime 2.9.1, {_OPT}, x86-64, one thread. MEAN is the reference's; FULLY_CONNECTED reads one weight "
        "scale only.",
        "tflite-2.11-opt",
        {"version": "2.9.1"},
        _release("tflite-2.9"),
    ),
    Row(
        "tflite-2.7-ref",
        "tflite-runtime 2.7.0, BUILTIN_REF, x86-64; 2.8.0 gives the same bits. TRANSPOSE_CONV of 16-bit activations is "
        "not that of 2.9.",
        "tflite-2.9-ref",
        {"version": "2.7.0"},
        _release("tflite-2.7"),
    ),
    Row(
        "tflite-2.7-opt",
        f"tflite-runtime 2.7.0, {_OPT}, x86-64, one thread; 2.8.0 gives the same bits. TRANSPOSE_CONV of 16-bit "
        "activations is not that of 2.9.",
        "tflite-2.9-opt",
        {"version": "2.7.0"},
        _release("tflite-2.7"),
    ),
    Row(
        "tf-2.5-ref",
        "TensorFlow 2.5.3, the package for x86-64, BUILTIN_REF. It is built with vector code. SOFTMAX is the optimized "
        "resolver's; LOG_SOFTMAX of 8 bits gives the lowest code.",
        "tflite-2.7-ref",
        {"package": "tensorflow-cpu", "version": "2.5.3", "cpu": "x86-64 with AVX"},
        {"release": "tf-2.5", "vectors": True},
        _VECTORS,
    ),
    Row(
        "tf-2.5-opt",
        f"TensorFlow 2.5.3, the package for x86-64, {_OPT}, one thread. It is built with vector code: NEON code by way "
        "of SSE.",
        "tflite-2.7-opt",
        {"package": "tensorflow-cpu", "version": "2.5.3", "cpu": "x86-64 with AVX"},
        {"release": "tf-2.5", "vectors": True},
        _VECTORS,
    ),
    Row(
        "tf-2.3-opt",
        "TensorFlow 2.3.4, the package for x86-64, whose only resolver is the optimized one; one thread. It is built "
        "with vector code. ruy's int8 products round twice.",
        "tf-2.5-opt",
        {"version": "2.3.4", "resolver": "BuiltinOpResolver"},
        _release("tf-2.3"),
        {"requantize_gemm": "double-rounding"},
    ),
    Row(
        "tf-1.15-ref",
        "TensorFlow 1.15, the reference resolver, x86-64 with SSE4.1: what its C++ library has.",
        "litert-ref",
        {"package": "tensorflow", "version": "1.15.0", "resolver": "BuiltinRefOpResolver", "cpu": "x86-64, SSE4.1"},
        _release("tf-1.15"),
        {**_VECTORS, "dense_real": "prepared", "requantize_dense": "double-rounding"},
    ),
    Row(
        "tf-1.15-opt",
        "TensorFlow 1.15, the optimized resolver, x86-64 with AVX: what the Python package runs.",
        "tf-1.15-ref",
        {"version": "1.15.5", "resolver": "BuiltinOpResolver", "cpu": "x86-64, AVX"},
        {"resolver": "opt"},
    ),
    Row(
        "tflm",
        "TensorFlow Lite Micro with its reference kernels.",
        "litert-ref",
        {"package": "tflite-micro", "version": "0.dev20261023", "resolver": "reference kernels", "cpu": "any"},
        {"library": "micro", "cpu": "any"},
        {"requantize_dense": "double-rounding", "requantize_dense_wide": "wide-rounding", "scale_type": "float64"},
    ),
    Row(
        "tflm-cmsis-nn",
        "TensorFlow Lite Micro with CMSIS-NN's kernels as they are built by default. Plain C, the DSP extension "
        "(Cortex-M4) and MVE (Cortex-M55) give the same bits: those of the reference kernels except in CONV_2D, "
        "FULLY_CONNECTED and UNIDIRECTIONAL_SEQUENCE_LSTM.",
        "tflm",
        {"resolver": "CMSIS-NN 99f736a kernels", "cpu": "Cortex-M"},
        {"library": "cmsis-nn"},
    ),
    Row(
        "tflm-cmsis-nn-single",
        "As `tflm-cmsis-nn`, the library built with CMSIS_NN_USE_SINGLE_ROUNDING. Its own kernels round once; those "
        "that TensorFlow Lite Micro falls back to still round twice.",
        "tflm-cmsis-nn",
        {"resolver": "CMSIS-NN 99f736a kernels, single rounding"},
        {"library": "cmsis-nn-single"},
    ),
    Row(
        "tflm-esp-nn",
        "TensorFlow Lite Micro with ESP-NN's kernels, in C: the bits of the reference kernels. Portable and optimized "
        "C agree. Vector code of the ESP32-S3 and ESP32-P4 is not claimed. TensorFlow Lite Micro does not pass dilated "
        "convolutions on. Source: ESP-NN d45b843, esp_nn_multiply_by_quantized_mult.",
        "tflm",
        {"resolver": "ESP-NN d45b843 kernels", "cpu": "any, in C"},
        {"library": "esp-nn"},
    ),
    Row(
        "spec",
        "The arithmetic that is meant: `litert-ref` with its known faults fixed (tflq/profiles/faults.py). No runtime "
        "computes it. It is for those who build one: where it differs from `litert-ref`, the runtime is at fault.",
        "litert-ref",
        {"package": "none", "version": "as LiteRT 2.3.0", "resolver": "none", "cpu": "any"},
        {"library": "spec", "cpu": "any"},
    ),
    Row(
        "litert-ref-arm64",
        "LiteRT 2.3, BUILTIN_REF, AArch64. The compiler fuses a * b + c of one expression: in tables of 513 samples "
        "and in CONCATENATION of rescaled uint8. Some float operators are fused and others not, so their bits are not "
        "claimed. LSTM of kernel type BASIC multiplies with ruy in any resolver.",
        "litert-ref",
        {"cpu": "AArch64"},
        {"cpu": "arm64"},
        _ARM64,
        "litert-ref-arm64",
    ),
    Row(
        "litert-opt-arm64",
        f"LiteRT 2.3, {_OPT}, AArch64, one thread. Integer results do not depend on the core: Cortex-A53, A72, A76 and "
        "one with i8mm agree; SVE and SME were not tried.",
        "litert-ref-arm64",
        {"resolver": _OPT, "cpu": "AArch64 without SVE"},
        {"resolver": "opt"},
        figures="litert-opt-arm64",
    ),
    Row(
        "tflite-2.14-ref-arm64",
        "tflite-runtime 2.14.0, BUILTIN_REF, AArch64. The package behaves as built with float arithmetic that may be "
        "reordered: quotients by a constant are products.",
        "tflite-2.14-ref",
        {"cpu": "AArch64"},
        {"cpu": "arm64", "vectors": True},
        {**_VECTORS, "multiply_add": "fused"},
        "tflite-2.14-ref-arm64",
    ),
    Row(
        "tflite-2.14-opt-arm64",
        f"tflite-runtime 2.14.0, {_OPT}, AArch64, one thread. Vector code is that of LiteRT 2.3, and matrices are "
        "multiplied by gemmlowp, or by ruy where storage orders ask for it.",
        "tflite-2.14-ref-arm64",
        {"resolver": _OPT, "cpu": "AArch64 without SVE"},
        {"resolver": "opt"},
        _GEMM_SINGLE,
        "tflite-2.14-opt-arm64",
    ),
)

#: Every row by the name of its profile.
ROWS: Mapping[str, Row] = {row.name: row for row in _ROWS}

#: Other names: releases that give the same bits as the one that a profile is named for, and short ones.
ALIASES: Mapping[str, str] = {
    "litert-xnn": "litert-xnnpack",
    "litert-xnn-arm64": "litert-xnnpack-arm64",
    "litert-xnn-arm64-a53": "litert-xnnpack-arm64-a53",
    "litert-1.4-xnn": "litert-1.4-xnnpack",
    **{f"litert-{v}-{r}": f"litert-{r}" for v in ("2.1", "2.2", "2.3") for r in ("ref", "opt", "xnnpack")},
    "litert-1.4-ref": "litert-2.0-ref",
    "litert-1.2-xnnpack": "litert-1.4-xnnpack",
    "litert-1.2-ref": "litert-1.0-ref",
    "litert-1.2-opt": "litert-1.0-opt",
    "tflite-2.10-ref": "tflite-2.11-ref",
    "tflite-2.10-opt": "tflite-2.11-opt",
    "tflite-2.8-ref": "tflite-2.7-ref",
    "tflite-2.8-opt": "tflite-2.7-opt",
}
