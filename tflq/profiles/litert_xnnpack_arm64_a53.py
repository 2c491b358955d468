"""`litert-xnnpack-arm64-a53`: as `litert-xnnpack-arm64`, where the system's first core is of the class of Cortex-A53,
A55 or Kryo: XNNPACK then scales uint8 matrix products in 16 bits. Depthwise convolutions and products do not change.
Float activations against int8 weights are as on x86.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.xnnpack.registry import ONLY_SEEN_ON_X86, xnnpack_over
from tflq.numerics.dynamic_range_float32 import rescale_fused
from tflq.numerics.float32_stages import ShortHalfUp
from tflq.profiles.litert_opt_arm64 import LITERT_OPT_ARM64
from tflq.profiles.litert_xnnpack_arm64 import LITERT_XNNPACK_ARM64

LITERT_XNNPACK_ARM64_A53 = LITERT_XNNPACK_ARM64.derive(
    name="litert-xnnpack-arm64-a53",
    source=replace(LITERT_XNNPACK_ARM64.source, cpu="AArch64, class of Cortex-A53"),
    arithmetic=replace(
        LITERT_XNNPACK_ARM64.arithmetic, xnnpack_uint8_gemm=ShortHalfUp.of, xnnpack_rescale=rescale_fused
    ),
    kernels=xnnpack_over(LITERT_OPT_ARM64.kernels, leaving=("elementwise",), doubtful=ONLY_SEEN_ON_X86),
).measured()
