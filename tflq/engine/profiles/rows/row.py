"""A row of the table of profiles. What a row does not state is its base's.

Fields of the arithmetic and their values are spelled as in profiles/values.py; `release`, `resolver`, `cpu`,
`vectors` and `library` are the coordinates by which rows of kernels are chosen (tflq/engine/kernels/validity.py).
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


OPT, XNNPACK = "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN"
#: FULLY_CONNECTED scales as every other operator does; float64 scaling came in LiteRT 1.4.
DENSE_AS_OTHERS = {
    "dense_real": "prepared",
    "requantize_dense": "double-rounding",
    "requantize_dense_wide": "wide-rounding",
}
REFERENCE = {
    "requantize": "double-rounding",
    "requantize_gemm": "double-rounding",
    "requantize_simd": "double-rounding",
    "requantize_wide": "wide-rounding",
    "dense_real": "exact",
    "requantize_dense": "float64",
    "requantize_dense_wide": "float64-wide",
}
GEMM_SINGLE = {"requantize_gemm": "single-rounding"}
#: XNNPACK's int8 products with AVX-512.
XNNPACK_512 = dict.fromkeys(("xnnpack_int8_gemm", "xnnpack_int4_gemm"), "float32-even-wrapped")
VECTORS = {"requantize_simd": "half-up-twice"}
ARM64 = {**GEMM_SINGLE, **VECTORS, "multiply_add": "fused"}


def release(name: str) -> dict[str, str]:
    """Return the coordinate of a release."""
    return {"release": name}
