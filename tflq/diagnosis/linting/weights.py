"""Rules about weights and biases.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams and
GetQuantizedConvolutionMultipler; conv.cc, depthwise_conv.cc, fully_connected.cc Prepare.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import QUANTIZED, Site
from tflq.engine.kernels.facts.rules import WITH_CHANNELS
from tflq.model.ir import TensorType

#: Relative tolerance of a bias scale to input scale * weights scale: a few float32 roundings.
NEAR = 1e-5


def bias_scale(site: Site) -> Iterator[Breach]:
    """Yield a bias scale that is not the accumulator's: kernels add the bias to the accumulator directly."""
    expected, bias = _accumulator_scale(site), _bias(site)
    quantization = site.quantization(bias)
    if expected is None or quantization is None:
        return
    if quantization.scale.size not in (1, expected.size):
        yield Breach(bias, f"{expected.size} scales", f"{quantization.scale.size}", fixable=True)
        return
    away = np.abs(quantization.scale.astype(np.float64) - expected) > NEAR * expected
    if away.any():
        where = int(np.argmax(away))
        stored = np.broadcast_to(quantization.scale, away.shape)[where]
        count = int(away.sum())
        yield Breach(
            bias, f"scale {expected[where % expected.size]:.9g} at {where}", f"{stored:.9g} ({count} such)", True
        )


def bias_zero_point(site: Site) -> Iterator[Breach]:
    """Yield a bias that is not symmetric."""
    quantization = site.quantization(_bias(site))
    if quantization is not None and quantization.zero_point.any():
        yield Breach(
            _bias(site),
            "zero point 0",
            f"{int(quantization.zero_point[np.argmax(quantization.zero_point != 0)])}",
            True,
        )


def bias_saturated(site: Site) -> Iterator[Breach]:
    """Yield a bias at the end of int32, which was cut when the model was made."""
    values = site.constant(_bias(site))
    if values is None or site.type(_bias(site)) != TensorType.INT32:
        return
    at_end = int(np.count_nonzero(np.abs(values.astype(np.int64)) >= 2**31 - 1))
    if at_end:
        yield Breach(_bias(site), "values inside int32", f"{at_end} at +-2147483647")


def weights_zero_point(site: Site) -> Iterator[Breach]:
    """Yield signed weights that are not symmetric: integer kernels subtract no zero point from them."""
    tensor = _weights(site)
    quantization = site.quantization(tensor)
    if quantization is not None and site.type(tensor) == TensorType.INT8 and quantization.zero_point.any():
        yield Breach(tensor, "zero point 0", f"{int(quantization.zero_point[np.argmax(quantization.zero_point != 0)])}")


def channel_count(site: Site) -> Iterator[Breach]:
    """Yield per-channel scales that are not one per output channel, along the dimension that the kernel reads."""
    tensor = _weights(site)
    quantization, spec = site.quantization(tensor), site.spec(tensor)
    if quantization is None or spec is None or quantization.scale.size == 1 or site.type(tensor) not in QUANTIZED:
        return
    dimension = WITH_CHANNELS[site.op].axis
    channels = spec.shape[dimension] if dimension < len(spec.shape) else 0
    if quantization.quantized_dimension != dimension or quantization.scale.size != channels:
        stored = f"{quantization.scale.size} along {quantization.quantized_dimension}"
        yield Breach(tensor, f"{channels} scales along dimension {dimension}", stored)


def _weights(site: Site) -> int:
    return site.input(WITH_CHANNELS[site.op].weights) if site.op in WITH_CHANNELS else -1


def _bias(site: Site) -> int:
    """Return the bias of an operator whose data are quantized, else -1."""
    if site.op not in WITH_CHANNELS or site.activation(site.input(WITH_CHANNELS[site.op].data)) is None:
        return -1
    return site.input(WITH_CHANNELS[site.op].bias)


def accumulator_scale(site: Site) -> NDArray[np.float32] | None:
    """Return input scale times weights scale as float32, one entry or one per channel; None if one is missing."""
    scale = _accumulator_scale(site)
    return None if scale is None else scale.astype(np.float32)


def _accumulator_scale(site: Site) -> NDArray[np.float64] | None:
    if site.op not in WITH_CHANNELS:
        return None
    data, weights = site.activation(site.input(WITH_CHANNELS[site.op].data)), site.quantization(_weights(site))
    if data is None or weights is None:
        return None
    return np.float64(data[0]) * weights.scale.astype(np.float64)


RULES = (
    Rule("bias-scale", Level.WARNING, "bias scale must be input scale * weights scale", bias_scale),
    Rule("bias-zero-point", Level.WARNING, "a bias must have zero point 0", bias_zero_point),
    Rule("bias-saturated", Level.WARNING, "bias values were cut at the end of int32", bias_saturated),
    Rule("weights-zero-point", Level.WARNING, "int8 weights must have zero point 0", weights_zero_point),
    Rule("channel-count", Level.ERROR, "one weight scale an output channel", channel_count),
)
