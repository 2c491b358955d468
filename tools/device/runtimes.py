"""Devices with the arithmetic that the sources of runtimes state for an operator.

Sources: LiteRT 2.3 and tflite-runtime 2.14 kernels (reference, optimized with ruy or gemmlowp), XNNPACK's fp32
requantizations, tflite-micro's reference kernels, TensorFlow r1.15, TFLITE_SINGLE_ROUNDING.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from device.description import RIGHT, Device
from device.site import Site

_DENSE = "FULLY_CONNECTED"
_CONTRACTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", _DENSE)

#: The runtimes, by the name of their profile.
RUNTIMES = (
    "litert-ref",
    "litert-opt",
    "litert-xnnpack",
    "tflite-2.14-ref",
    "tflite-2.14-opt",
    "tflm",
    "spec",
    "litert-ref-arm64",
    "litert-opt-arm64",
    "litert-xnnpack-arm64",
    "litert-xnnpack-arm64-a53",
    "tflite-2.14-ref-arm64",
    "tflite-2.14-opt-arm64",
    "tf-1.15-ref",
    "tf-1.15-opt",
    "litert-ref+single-rounding",
)

#: Activations that runtimes take, for runtimes that do not take all.
_KNOWN_TYPES = {"tflm": ("int8", "int16"), "tf-1.15-ref": ("uint8",), "tf-1.15-opt": ("int8", "uint8")}
#: Runtimes whose FULLY_CONNECTED multiplies in float64.
_IN_FLOAT64 = ("litert-ref", "litert-ref-arm64", "spec", "litert-ref+single-rounding")
#: Runtimes that do not round 8-bit matrix products twice: their rounding, by type; half up twice with one column.
_PRODUCTS = {
    "litert-opt": {"int8": "up twice", "uint8": "up twice"},
    "tflite-2.14-opt": {"int8": "up twice"},
    "litert-opt-arm64": {"int8": "half up", "uint8": "half up"},
}
_ONE_COLUMN = ("litert-opt-arm64", "tflite-2.14-opt-arm64", "tf-1.15-opt")
#: Runtimes that scale eight channels of an int8 DEPTHWISE_CONV_2D at a time.
_EIGHT_AT_A_TIME = ("litert-opt", "litert-opt-arm64", "tflite-2.14-opt-arm64")


def as_computed_by(runtime: str, site: Site) -> Device | None:
    """Return the device that is that runtime; None if its arithmetic for the operator is not defined here."""
    eight = site.type in ("int8", "uint8")
    if site.type not in _KNOWN_TYPES.get(runtime, (site.type,)):
        return None
    if "xnnpack" in runtime and eight:
        return _xnnpack(runtime, site)
    if site.op in _CONTRACTIONS:
        return _contraction(runtime, site) if eight else _wide(runtime, site)
    if runtime.startswith("tf-1.15"):
        return RIGHT if site.op in ("ADD", "SUB", "MUL", "AVERAGE_POOL_2D") else None
    if "-opt" in runtime or "xnnpack" in runtime:
        vector_code = site.op in ("MEAN", "SUM", "QUANTIZE") or (site.op == "ADD" and site.type == "uint8")
        return None if vector_code else RIGHT
    if runtime == "litert-ref+single-rounding":
        by_multiplier = site.op in ("ADD", "SUB", "MUL", "LEAKY_RELU", "QUANTIZE", "SUM")
        return Device(rounding="half up") if by_multiplier else None if site.op == "MEAN" else RIGHT
    if runtime in ("tflm", "spec") and site.op == "SUM":
        return Device(reads_bytes=False)
    return Device(arithmetic="float64") if runtime == "tflm" and site.op in ("MUL", "LEAKY_RELU") else RIGHT


def _contraction(runtime: str, site: Site) -> Device | None:
    """Return the device for 8-bit codes, except XNNPACK."""
    if site.op == _DENSE and runtime in _IN_FLOAT64:
        return RIGHT
    if site.op == "DEPTHWISE_CONV_2D":
        return _depthwise(runtime, site)
    rounding = "half up" if "single" in runtime else _PRODUCTS.get(runtime, {}).get(site.type, "twice")
    if runtime in _ONE_COLUMN and _has_one_column(site):
        rounding = "up twice"
    if site.op == _DENSE:
        per_tensor = len(site.input(1).scales) == 1
        if runtime.startswith("tf-1.15") and not per_tensor:
            return None
        return Device(rounding=rounding, arithmetic="float32 product" if per_tensor else "float64")
    device = RIGHT if rounding == "twice" else Device(rounding=rounding)
    return replace(device, clamp="type") if runtime.startswith("tf-1.15") and site.type == "int8" else device


def _depthwise(runtime: str, site: Site) -> Device | None:
    if site.type == "uint8":
        return None if runtime.endswith("opt-arm64") else Device(rounding="half up") if "single" in runtime else RIGHT
    if runtime.startswith("tf-1.15"):
        return Device(clamp="type")
    if runtime in _EIGHT_AT_A_TIME:
        return Device(rounding="up twice", block=8)
    return Device(rounding="half up") if "single" in runtime else RIGHT


def _has_one_column(site: Site) -> bool:
    """Return whether the result is a single output pixel, or row, of at least four channels and eight products."""
    weights, y = site.input(1).shape, site.output.shape
    return prod(y) == weights[0] >= 4 and prod(weights[1:]) >= 8


def _wide(runtime: str, site: Site) -> Device:
    """Return the device for 16-bit activations."""
    if site.op != _DENSE or not (runtime == "tflm" or runtime.startswith("tflite-2.14")):
        return RIGHT
    per_tensor = len(site.input(1).scales) == 1
    return Device(rounding="sixteen bits", arithmetic="float32 product" if per_tensor else "float64")


def _xnnpack(runtime: str, site: Site) -> Device | None:
    """Return XNNPACK's device for 8-bit codes.

    On AArch64, products and uint8 matrices are scaled exactly, half up; on Cortex-A53 in 16 bits.
    """
    on_arm = "arm64" in runtime
    if site.op in _CONTRACTIONS:
        if site.type == "uint8" and (site.op == "DEPTHWISE_CONV_2D" or runtime.endswith("a53")):
            return None  # taken only if scales lie along dimension 0; 16 bits
        exact = on_arm and site.type == "uint8"
        return Device(rounding="float32 half up" if exact else "float32 half even", arithmetic="float32")
    if site.op in ("ADD", "SUB"):
        return Device(sums="xnnpack")
    if site.op == "MUL":
        return Device(rounding="float32 half up" if on_arm else "float32 half even")
    return None if site.op in ("MEAN", "SUM", "LEAKY_RELU", "QUANTIZE") else RIGHT
