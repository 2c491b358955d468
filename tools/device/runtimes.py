"""How runtimes compute an operator, as devices: the arithmetic that their sources state, for the operators there are.

Sources: LiteRT 2.3 and tflite-runtime 2.14 kernels (reference, optimized with ruy or gemmlowp), XNNPACK's fp32
requantization, tflite-micro's reference kernels, TFLITE_SINGLE_ROUNDING.
"""

from __future__ import annotations

from dataclasses import replace

from device.description import RIGHT, Device
from device.site import Site

_DENSE = "FULLY_CONNECTED"
_CONTRACTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", _DENSE)

#: The runtimes, by the name of their profile.
RUNTIMES = (
    "litert-ref", "litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tflite-2.14-opt", "tflm",
    "litert-ref+single-rounding",
)  # fmt: skip


def as_computed_by(runtime: str, site: Site) -> Device | None:
    """The device that is that runtime; None where its arithmetic for the operator is not written down here."""
    if runtime == "tflm" and site.type == "uint8":
        return None
    if site.op in _CONTRACTIONS:
        return _contraction(runtime, site)
    eight = site.type != "int16"
    if runtime == "litert-xnnpack" and eight:
        return _xnnpack(site)
    if runtime in ("litert-opt", "tflite-2.14-opt", "litert-xnnpack"):
        vector_code = site.op in ("MEAN", "SUM", "QUANTIZE") or (site.op == "ADD" and site.type == "uint8")
        return None if vector_code else RIGHT
    if runtime == "tflm":
        return {"MUL": Device(arithmetic="float64"), "LEAKY_RELU": Device(arithmetic="float64"),
                "SUM": Device(reads_bytes=False)}.get(site.op, RIGHT)  # fmt: skip
    if runtime == "litert-ref+single-rounding":
        by_multiplier = site.op in ("ADD", "SUB", "MUL", "LEAKY_RELU", "QUANTIZE", "SUM")
        return Device(rounding="half up") if by_multiplier else None if site.op == "MEAN" else RIGHT
    return RIGHT


def _contraction(runtime: str, site: Site) -> Device | None:
    wide, eight = site.type == "int16", "uint8" if site.type == "uint8" else "int8"
    per_tensor = len(site.input(1).scales) == 1
    dense = Device(arithmetic="float32 product" if per_tensor else "float64")
    if runtime == "litert-xnnpack" and not wide:
        delegated = site.op != "DEPTHWISE_CONV_2D" or eight == "int8"  # uint8: only with scales along dimension 0
        return None if not delegated else Device(rounding="float32 half even", arithmetic="float32")
    if runtime == "litert-ref+single-rounding":
        return RIGHT if wide or site.op == _DENSE else Device(rounding="half up")
    if site.op == _DENSE:
        if wide:
            older = runtime in ("tflm", "tflite-2.14-ref", "tflite-2.14-opt")
            return replace(dense, rounding="sixteen bits") if older else RIGHT
        if runtime in ("litert-opt", "tflite-2.14-opt"):
            return replace(dense, rounding="twice" if (runtime, eight) == ("tflite-2.14-opt", "uint8") else "up twice")
        return RIGHT if runtime == "litert-ref" else replace(dense, rounding="twice")
    if wide or runtime in ("litert-ref", "tflite-2.14-ref", "tflm"):
        return RIGHT
    if site.op == "DEPTHWISE_CONV_2D":
        return Device(rounding="up twice", block=8) if (runtime, eight) == ("litert-opt", "int8") else RIGHT
    return RIGHT if (runtime, eight) == ("tflite-2.14-opt", "uint8") else Device(rounding="up twice")


def _xnnpack(site: Site) -> Device | None:
    if site.op in ("ADD", "SUB"):
        return Device(sums="xnnpack")
    if site.op == "MUL":
        return Device(rounding="float32 half even")
    return None if site.op in ("MEAN", "SUM", "LEAKY_RELU", "QUANTIZE") else RIGHT
