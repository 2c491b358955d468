"""`litert-js`: LiteRT.js 2.5, accelerator "wasm", WebAssembly with SIMD: XNNPACK as `litert-xnnpack`.

Only 8-bit integers are claimed: hybrid operators and floats have other kernels there, which depend on relaxed SIMD.
"""

from __future__ import annotations

from tflq.kernels.xnnpack.registry import HYBRID, xnnpack_over
from tflq.profiles.litert_opt import LITERT_OPT
from tflq.profiles.profile import Source

LITERT_JS = LITERT_OPT.derive(
    name="litert-js",
    source=Source(package="@litertjs/core", version="2.5.3", resolver="wasm", cpu="WebAssembly"),
    kernels=xnnpack_over(LITERT_OPT.kernels, leaving=("elementwise",), doubtful=HYBRID),
)
