"""The tables of AArch64's own kernels, by release and resolver; they lie over those of x86-64."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue

_PACKAGE = "tflq.kernels.arm64"

#: The optimized resolver of LiteRT 2.3.
OPTIMIZED_ARM64 = Catalogue(
    _PACKAGE,
    {
        "CONV_2D": "conv_2d",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d_uint8",
        "FULLY_CONNECTED": "fully_connected",
        "HARD_SWISH": "hard_swish",
        "SOFTMAX": "softmax softmax_float",
    },
)

#: The reference resolver of releases up to 2.14.
REFERENCE_2_14_ARM64 = Catalogue(
    _PACKAGE,
    {
        "CONCATENATION": "concatenation_factored",
        "QUANTIZE": "quantize_reciprocal",
    },
)

#: The optimized resolver of releases up to 2.14, over that of LiteRT 2.3 on x86-64.
OPTIMIZED_2_14_ARM64 = Catalogue(
    _PACKAGE,
    {
        "CONCATENATION": "concatenation_factored",
        "CONV_2D": "conv_2d_gemmlowp",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d_uint8",
        "FULLY_CONNECTED": "fully_connected_gemmlowp",
        "HARD_SWISH": "hard_swish",
        "SOFTMAX": "softmax_float",
    },
)
