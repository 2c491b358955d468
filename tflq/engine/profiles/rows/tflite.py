"""Profiles of TensorFlow Lite: packages of TensorFlow and of tflite-runtime."""

from __future__ import annotations

from tflq.engine.profiles.rows.row import DENSE_AS_OTHERS, GEMM_SINGLE, OPT, VECTORS, XNNPACK, Row, release

ROWS = (
    Row(
        "tflite-2.14-ref",
        "tflite-runtime 2.14.0, BUILTIN_REF, x86-64. FULLY_CONNECTED scales as every other operator does; the float64 "
        "scaling came in April 2025.",
        "litert-ref",
        {"package": "tflite-runtime", "version": "2.14.0"},
        {"release": "tflite-2.14", "vectors": False},
        DENSE_AS_OTHERS,
        "tflite-2.14-ref",
    ),
    Row(
        "tflite-2.14-opt",
        f"tflite-runtime 2.14.0, {OPT}, x86-64 with AVX or later, one thread.",
        "tflite-2.14-ref",
        {"resolver": OPT, "cpu": "x86-64 with AVX"},
        {"resolver": "opt"},
        {"requantize_gemm": "half-up-twice"},
        "tflite-2.14-opt",
    ),
    Row(
        "tflite-2.13-ref",
        "tflite-runtime 2.13.0, BUILTIN_REF, x86-64. SUM is not that of 2.14.",
        "tflite-2.14-ref",
        {"version": "2.13.0"},
        release("tflite-2.13"),
        figures="none",
    ),
    Row(
        "tflite-2.13-opt",
        f"tflite-runtime 2.13.0, {OPT}, x86-64 with AVX or later, one thread.",
        "tflite-2.14-opt",
        {"version": "2.13.0"},
        release("tflite-2.13"),
        figures="none",
    ),
    Row(
        "tflite-2.12-ref",
        "tflite-runtime 2.12.0, BUILTIN_REF, x86-64, a package built with vector code. MEAN and SUM are not those of "
        "2.13. The basic LSTM multiplies one row by the matrix-vector kernel.",
        "tflite-2.13-ref",
        {"version": "2.12.0", "cpu": "x86-64, SSE4.1"},
        {"release": "tflite-2.12", "vectors": True},
        VECTORS,
    ),
    Row(
        "tflite-2.12-opt",
        f"tflite-runtime 2.12.0, {OPT}, x86-64, one thread, a package built with vector code: NEON code by way of "
        "SSE. ruy scales int8 matrix products once, half up. MEAN and SUM are not those of 2.13.",
        "tflite-2.13-opt",
        {"version": "2.12.0", "cpu": "x86-64, SSE4.1"},
        {"release": "tflite-2.12", "vectors": True},
        {**GEMM_SINGLE, **VECTORS},
    ),
    Row(
        "tflite-2.12-xnnpack",
        "tflite-runtime 2.12.0, BUILTIN, x86-64, one thread: XNNPACK takes int8, and no uint8.",
        "tflite-2.12-opt",
        {"resolver": XNNPACK},
        {"resolver": "xnnpack"},
    ),
    Row(
        "tflite-2.11-ref",
        "tflite-runtime 2.11.0, BUILTIN_REF, x86-64; 2.10.0 gives the same bits. TRANSPOSE_CONV has no fused "
        "activation; there is no vector code.",
        "tflite-2.13-ref",
        {"version": "2.11.0"},
        release("tflite-2.11"),
    ),
    Row(
        "tflite-2.11-opt",
        f"tflite-runtime 2.11.0, {OPT}, x86-64, one thread; 2.10.0 gives the same bits. TRANSPOSE_CONV has no fused "
        "activation; there is no vector code.",
        "tflite-2.13-opt",
        {"version": "2.11.0", "cpu": "x86-64"},
        release("tflite-2.11"),
        GEMM_SINGLE,
    ),
    Row(
        "tflite-2.9-ref",
        "tflite-runtime 2.9.1, BUILTIN_REF, x86-64. MEAN over images is not that of 2.11; FULLY_CONNECTED reads one "
        "weight scale only.",
        "tflite-2.11-ref",
        {"version": "2.9.1"},
        release("tflite-2.9"),
    ),
    Row(
        "tflite-2.9-opt",
        f"tflite-runtime 2.9.1, {OPT}, x86-64, one thread. MEAN is the reference's; FULLY_CONNECTED reads one weight "
        "scale only.",
        "tflite-2.11-opt",
        {"version": "2.9.1"},
        release("tflite-2.9"),
    ),
    Row(
        "tflite-2.7-ref",
        "tflite-runtime 2.7.0, BUILTIN_REF, x86-64; 2.8.0 gives the same bits. TRANSPOSE_CONV of 16-bit activations is "
        "not that of 2.9.",
        "tflite-2.9-ref",
        {"version": "2.7.0"},
        release("tflite-2.7"),
    ),
    Row(
        "tflite-2.7-opt",
        f"tflite-runtime 2.7.0, {OPT}, x86-64, one thread; 2.8.0 gives the same bits. TRANSPOSE_CONV of 16-bit "
        "activations is not that of 2.9.",
        "tflite-2.9-opt",
        {"version": "2.7.0"},
        release("tflite-2.7"),
    ),
    Row(
        "tf-2.5-ref",
        "TensorFlow 2.5.3, the package for x86-64, BUILTIN_REF. It is built with vector code. SOFTMAX is the optimized "
        "resolver's; LOG_SOFTMAX of 8 bits gives the lowest code.",
        "tflite-2.7-ref",
        {"package": "tensorflow-cpu", "version": "2.5.3", "cpu": "x86-64 with AVX"},
        {"release": "tf-2.5", "vectors": True},
        VECTORS,
    ),
    Row(
        "tf-2.5-opt",
        f"TensorFlow 2.5.3, the package for x86-64, {OPT}, one thread. It is built with vector code: NEON code by way "
        "of SSE.",
        "tflite-2.7-opt",
        {"package": "tensorflow-cpu", "version": "2.5.3", "cpu": "x86-64 with AVX"},
        {"release": "tf-2.5", "vectors": True},
        VECTORS,
    ),
    Row(
        "tf-2.3-opt",
        "TensorFlow 2.3.4, the package for x86-64, whose only resolver is the optimized one; one thread. It is built "
        "with vector code. ruy's int8 products round twice.",
        "tf-2.5-opt",
        {"version": "2.3.4", "resolver": "BuiltinOpResolver"},
        release("tf-2.3"),
        {"requantize_gemm": "double-rounding"},
    ),
    Row(
        "tf-1.15-ref",
        "TensorFlow 1.15, the reference resolver, x86-64 with SSE4.1: what its C++ library has.",
        "litert-ref",
        {"package": "tensorflow", "version": "1.15.0", "resolver": "BuiltinRefOpResolver", "cpu": "x86-64, SSE4.1"},
        release("tf-1.15"),
        {**VECTORS, "dense_real": "prepared", "requantize_dense": "double-rounding"},
    ),
    Row(
        "tf-1.15-opt",
        "TensorFlow 1.15, the optimized resolver, x86-64 with AVX: what the Python package runs.",
        "tf-1.15-ref",
        {"version": "1.15.5", "resolver": "BuiltinOpResolver", "cpu": "x86-64, AVX"},
        {"resolver": "opt"},
    ),
    Row(
        "tflite-2.14-ref-arm64",
        "tflite-runtime 2.14.0, BUILTIN_REF, AArch64. The package behaves as built with float arithmetic that may be "
        "reordered: quotients by a constant are products.",
        "tflite-2.14-ref",
        {"cpu": "AArch64"},
        {"cpu": "arm64", "vectors": True},
        {**VECTORS, "multiply_add": "fused"},
        "tflite-2.14-ref-arm64",
    ),
    Row(
        "tflite-2.14-opt-arm64",
        f"tflite-runtime 2.14.0, {OPT}, AArch64, one thread. Vector code is that of LiteRT 2.3, and matrices are "
        "multiplied by gemmlowp, or by ruy where storage orders ask for it.",
        "tflite-2.14-ref-arm64",
        {"resolver": OPT, "cpu": "AArch64 without SVE"},
        {"resolver": "opt"},
        GEMM_SINGLE,
        "tflite-2.14-opt-arm64",
    ),
)
