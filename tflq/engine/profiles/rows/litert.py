"""Profiles of LiteRT, by release and resolver."""

from __future__ import annotations

from tflq.engine.profiles.rows.row import (
    ARM64,
    DENSE_AS_OTHERS,
    OPT,
    REFERENCE,
    VECTORS,
    XNNPACK,
    XNNPACK_512,
    Row,
    release,
)

ROWS = (
    Row(
        "litert-ref",
        "LiteRT 2.3 (and TensorFlow 2.21), BUILTIN_REF, x86-64.",
        source={"package": "ai-edge-litert", "version": "2.3.0", "resolver": "BUILTIN_REF", "cpu": "x86-64"},
        arithmetic=REFERENCE,
    ),
    Row(
        "litert-opt",
        f"LiteRT 2.3 (and TensorFlow 2.21), {OPT}, x86-64 with AVX2, one thread.",
        "litert-ref",
        {"resolver": OPT, "cpu": "x86-64 with AVX2"},
        {"resolver": "opt"},
        {"requantize_gemm": "half-up-twice", **VECTORS},
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
        "`litert-opt` with the multipliers of `litert-2.4-ref`; four-bit weights of float "
        "activations can be -8, which 2.3 reads as 8.",
        "litert-opt",
        {"package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"},
        arithmetic={"scale_type": "float64", "int4_offset": "eight"},
    ),
    Row(
        "litert-2.4-xnnpack",
        "`litert-xnnpack` with the multipliers of `litert-2.4-ref`.",
        "litert-xnnpack",
        {"package": "ai-edge-litert-nightly", "version": "2.4.0.dev20261026"},
        arithmetic={"scale_type": "float64", "int4_offset": "eight"},
    ),
    Row(
        "litert-xnnpack",
        "LiteRT 2.3 (and TensorFlow 2.21), BUILTIN, x86-64 with AVX-512 VNNI, one thread: what Python users get. 8-bit "
        "results round a float32 product half to even. What depends on the vector extension: int8 products beyond "
        "int32, which wrap, and some floats: sums of SOFTMAX, of MEAN and SUM along the last dimension, and of "
        "FULLY_CONNECTED with scales of blocks. Leaky rectifiers copy negative zeros.",
        "litert-opt",
        {"resolver": XNNPACK, "cpu": "x86-64 with AVX-512 VNNI", "vectors": "AVX-512 VNNI"},
        {"resolver": "xnnpack"},
        {
            "xnnpack_blocks": "by-block",
            "xnnpack_functions": "avx-512",
            "xnnpack_negative": "below-zero",
            "xnnpack_lanes": "sixteen",
            **XNNPACK_512,
        },
        "litert-xnnpack",
    ),
    Row(
        "litert-xnnpack-avx2",
        "LiteRT 2.3, BUILTIN, x86-64 with AVX2, one thread. Integers and hybrid operators are as `litert-xnnpack`, "
        "except for sums of FULLY_CONNECTED with scales of blocks; leaky rectifiers multiply negative zeros.",
        "litert-xnnpack",
        {"cpu": "x86-64 with AVX2", "vectors": "AVX2"},
        arithmetic={
            "xnnpack_blocks": "four-lanes",
            "xnnpack_functions": "avx2",
            "xnnpack_negative": "sign-bit",
            "xnnpack_lanes": "eight",
            "xnnpack_int8_gemm": "float32-even",
        },
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
        {"resolver": XNNPACK, "cpu": "AArch64, Cortex-A76"},
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
        "litert-2.2-ref",
        "LiteRT 2.2.0, BUILTIN_REF, x86-64.",
        "litert-ref",
        {"version": "2.2.0"},
        release("litert-2.2"),
    ),
    Row(
        "litert-2.2-opt",
        f"LiteRT 2.2.0, {OPT}, x86-64 with AVX2, one thread.",
        "litert-opt",
        {"version": "2.2.0"},
        release("litert-2.2"),
    ),
    Row(
        "litert-2.2-xnnpack",
        "LiteRT 2.2.0, BUILTIN, x86-64 with AVX-512 VNNI, one thread.",
        "litert-xnnpack",
        {"version": "2.2.0"},
        release("litert-2.2"),
    ),
    Row(
        "litert-2.1-ref",
        "LiteRT 2.1.6, BUILTIN_REF, x86-64. Versions of operators that 2.2 added are refused.",
        "litert-ref",
        {"version": "2.1.6"},
        release("litert-2.1"),
    ),
    Row(
        "litert-2.1-opt",
        f"LiteRT 2.1.6, {OPT}, x86-64 with AVX2, one thread. Versions of operators that 2.2 added are refused.",
        "litert-opt",
        {"version": "2.1.6"},
        release("litert-2.1"),
    ),
    Row(
        "litert-2.1-xnnpack",
        "LiteRT 2.1.6, BUILTIN, x86-64 with AVX-512 VNNI, one thread. Convolutions with SAME padding whose windows do "
        "not reach over the image add up nothing.",
        "litert-xnnpack",
        {"version": "2.1.6"},
        release("litert-2.1"),
    ),
    Row(
        "litert-2.0-ref",
        "LiteRT 2.0.3, BUILTIN_REF, x86-64; 1.4.0 gives the same bits. Some adjoint BATCH_MATMULs are refused, which "
        "these releases fold wrongly.",
        "litert-ref",
        {"version": "2.0.3"},
        release("litert-2.0"),
    ),
    Row(
        "litert-2.0-opt",
        f"LiteRT 2.0.3, {OPT}, x86-64 with AVX2, one thread. Some adjoint BATCH_MATMULs and REDUCE_PRODs are refused, "
        "whose results these releases leave undefined.",
        "litert-opt",
        {"version": "2.0.3"},
        release("litert-2.0"),
        figures="none",
    ),
    Row(
        "litert-2.0-xnnpack",
        "LiteRT 2.0.3, BUILTIN, x86-64 with AVX2, one thread. MEAN and SUM round half away; BATCH_MATMUL int8 ignores "
        "the zero point of its second operand. Int8 products beyond int32 wrap, as with AVX-512.",
        "litert-2.0-opt",
        {"resolver": XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
        XNNPACK_512,
    ),
    Row(
        "litert-1.4-opt",
        f"LiteRT 1.4.0, {OPT}, x86-64 with AVX2, one thread. ruy multiplies the matrices of BATCH_MATMUL int8.",
        "litert-2.0-opt",
        {"version": "1.4.0"},
        release("litert-1.4"),
    ),
    Row(
        "litert-1.4-xnnpack",
        "LiteRT 1.4.0, BUILTIN, x86-64 with AVX2, one thread; 1.2.0 gives the same bits. MEAN and SUM round half away; "
        "BATCH_MATMUL int8 is left to the optimized kernels. Int8 products beyond int32 wrap, as with AVX-512.",
        "litert-1.4-opt",
        {"resolver": XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
        XNNPACK_512,
    ),
    Row(
        "litert-1.0-ref",
        "LiteRT 1.0.1, BUILTIN_REF, x86-64; 1.2.0 gives the same bits. FULLY_CONNECTED scales as every other operator "
        "does; from 1.4 on as in 2.3.",
        "litert-2.0-ref",
        {"version": "1.0.1"},
        release("litert-1.0"),
        DENSE_AS_OTHERS,
    ),
    Row(
        "litert-1.0-opt",
        f"LiteRT 1.0.1, {OPT}, x86-64 with AVX2, one thread; 1.2.0 gives the same bits. BATCH_MATMUL of int8 to int32 "
        "subtracts zero points; FULLY_CONNECTED of 16-bit activations scales as every other operator does. 4-bit "
        "weights of activations other than int8 are refused, which this release reads packed.",
        "litert-1.4-opt",
        {"version": "1.0.1"},
        release("litert-1.0"),
        DENSE_AS_OTHERS,
    ),
    Row(
        "litert-1.0-xnnpack",
        "LiteRT 1.0.1, BUILTIN, x86-64 with AVX2, one thread. MEAN over images is average pooling. Int8 products "
        "beyond int32 wrap, as with AVX-512.",
        "litert-1.0-opt",
        {"resolver": XNNPACK, "vectors": "AVX2"},
        {"resolver": "xnnpack"},
        XNNPACK_512,
    ),
    Row(
        "litert-ref-arm64",
        "LiteRT 2.3, BUILTIN_REF, AArch64. The compiler fuses a * b + c of one expression: in tables of 513 samples "
        "and in CONCATENATION of rescaled uint8. Some float operators are fused and others not, so their bits are not "
        "claimed. LSTM of kernel type BASIC multiplies with ruy in any resolver.",
        "litert-ref",
        {"cpu": "AArch64"},
        {"cpu": "arm64"},
        ARM64,
        "litert-ref-arm64",
    ),
    Row(
        "litert-opt-arm64",
        f"LiteRT 2.3, {OPT}, AArch64, one thread. Integer results do not depend on the core: Cortex-A53, A72, A76 and "
        "one with i8mm agree; SVE and SME were not tried.",
        "litert-ref-arm64",
        {"resolver": OPT, "cpu": "AArch64 without SVE"},
        {"resolver": "opt"},
        figures="litert-opt-arm64",
    ),
)
