"""Rules of the 8-bit quantization specification.

Rules about scales and zero points of activations.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/*.cc, the Prepare functions named below.

Rules about weights and biases.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams and
GetQuantizedConvolutionMultipler; conv.cc, depthwise_conv.cc, fully_connected.cc Prepare.

A rule about composites: the subgraph of one must compute what its name means.

A runtime that knows the name never runs the subgraph, and one that does not runs nothing else. litert-torch 0.10
writes attention with one head of keys wrongly: a transpose became a RESHAPE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inputs.generate import GENERATORS, generate
from tflq.comparison.inspection.difference import decibels
from tflq.diagnosis.linting.rules import QUANTIZED, Breach, Level, Site, rule
from tflq.engine.interpreter import make_plan, run
from tflq.engine.kernels.facts.rules import FIXED, WITH_CHANNELS, tied_inputs
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import Model, TensorType, view
from tflq.model.surgery.tap import single_operator
from tflq.typing import Array

#: Relative tolerance of SOFTMAX's kernel for its fixed output scale.
NEAR = 1e-3

#: beta * scale of an 8-bit SOFTMAX is stored in units of its inverse. Source: PreprocessSoftmaxScaling.
SOFTMAX_UNIT = 2.0**26


@rule("equal-scale", Level.WARNING, "codes are moved, not rescaled: scales must be equal")
def equal_scale(site: Site) -> Iterator[Breach]:
    """Yield inputs whose codes become output codes, but whose scale or zero point differs from the output's."""
    output = site.activation(site.output())
    if output is None:
        return
    if site.op == "CONCATENATION" and site.type(site.output()) == TensorType.UINT8:  # its kernel rescales
        return
    for position in tied_inputs(site.op, len(site.operator.inputs)):
        here = site.activation(site.input(position))
        if here is not None and site.type(site.input(position)) == site.type(site.output()) and here != output:
            yield Breach(site.input(position), f"scale {output[0]}, zero point {output[1]} as the output", _pair(here))


@rule("fixed-output", Level.ERROR, "the kernel's output scale and zero point are fixed")
def fixed_output(site: Site) -> Iterator[Breach]:
    """Yield an output whose scale or zero point differs from the one in the kernel."""
    tensor = site.output()
    stored = site.activation(tensor)
    kind = site.type(tensor)
    if stored is None or not isinstance(kind, TensorType) or (site.op, kind) not in FIXED:
        return
    scale, zero_point = FIXED[site.op, kind]
    slack = NEAR * scale if site.op == "SOFTMAX" else 0.0
    if abs(float(stored[0]) - scale) > slack or stored[1] != zero_point:
        yield Breach(tensor, f"scale {scale}, zero point {zero_point}", _pair(stored))


@rule("softmax-range", Level.ERROR, "beta * scale is outside the kernel's fixed point")
def softmax_range(site: Site) -> Iterator[Breach]:
    """Yield a SOFTMAX of 8 bits whose beta * scale is too small for its fixed point (the kernel aborts), or is cut."""
    stored = site.activation(site.input(0))
    if site.op != "SOFTMAX" or stored is None or site.type(site.input(0)) == TensorType.INT16:
        return
    beta = float(site.operator.options["beta"]) if site.operator.options is not None else 0.0
    real = beta * float(stored[0])
    if not 1.0 < real * SOFTMAX_UNIT <= 2.0**31 - 1.0:
        yield Breach(site.input(0), "beta * scale in (2**-26, 32)", f"{real:g}")


@rule("int16-zero-point", Level.ERROR, "int16 activations must have zero point 0")
def int16_zero_point(site: Site) -> Iterator[Breach]:
    """Yield activations of 16 bits that are not symmetric."""
    for tensor in site.operands():
        stored = site.activation(tensor)
        if stored is not None and site.type(tensor) == TensorType.INT16 and stored[1] != 0:
            yield Breach(tensor, "zero point 0", f"zero point {stored[1]}")


@rule("zero-point-range", Level.ERROR, "a zero point outside its type")
def zero_point_range(site: Site) -> Iterator[Breach]:
    """Yield a zero point that is not a code of the tensor's type."""
    for tensor in site.operands():
        quantization, kind = site.quantization(tensor), site.type(tensor)
        if quantization is None or kind not in QUANTIZED or not isinstance(kind, TensorType):
            continue
        limits = np.iinfo(kind.label)
        outside = quantization.zero_point[
            (quantization.zero_point < limits.min) | (quantization.zero_point > limits.max)
        ]
        if outside.size:
            yield Breach(tensor, f"zero point in [{limits.min}, {limits.max}]", f"{int(outside[0])}")


@rule("usable-scale", Level.ERROR, "a scale that is zero, subnormal, negative or not finite")
def usable_scale(site: Site) -> Iterator[Breach]:
    """Yield scales that are not normal positive float32 numbers.

    Kernels divide by them, and hardware may read subnormals as 0.
    """
    smallest = np.finfo(np.float32).tiny
    for tensor in site.operands():
        quantization, kind = site.quantization(tensor), site.type(tensor)
        if quantization is None or kind not in QUANTIZED:
            continue
        bad = ~(np.isfinite(quantization.scale) & (quantization.scale >= smallest))
        if bad.any():
            where = int(np.argmax(bad))
            yield Breach(
                tensor, "a positive normal float32", f"{quantization.scale[where]} at {where} ({int(bad.sum())} such)"
            )


def _pair(params: tuple[np.float32, int]) -> str:
    return f"scale {params[0]}, zero point {params[1]}"


#: Relative tolerance of a bias scale to input scale * weights scale: a few float32 roundings.
WEIGHTS_NEAR = 1e-5


@rule("bias-scale", Level.WARNING, "bias scale must be input scale * weights scale")
def bias_scale(site: Site) -> Iterator[Breach]:
    """Yield a bias scale that is not the accumulator's: kernels add the bias to the accumulator directly."""
    expected, bias = _accumulator_scale(site), _bias(site)
    quantization = site.quantization(bias)
    if expected is None or quantization is None:
        return
    if quantization.scale.size not in (1, expected.size):
        yield Breach(bias, f"{expected.size} scales", f"{quantization.scale.size}", fixable=True)
        return
    away = np.abs(quantization.scale.astype(np.float64) - expected) > WEIGHTS_NEAR * expected
    if away.any():
        where = int(np.argmax(away))
        stored = np.broadcast_to(quantization.scale, away.shape)[where]
        count = int(away.sum())
        yield Breach(
            bias, f"scale {expected[where % expected.size]:.9g} at {where}", f"{stored:.9g} ({count} such)", True
        )


@rule("bias-zero-point", Level.WARNING, "a bias must have zero point 0")
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


@rule("bias-saturated", Level.WARNING, "bias values were cut at the end of int32")
def bias_saturated(site: Site) -> Iterator[Breach]:
    """Yield a bias at the end of int32, which was cut when the model was made."""
    values = site.constant(_bias(site))
    if values is None or site.type(_bias(site)) != TensorType.INT32:
        return
    at_end = int(np.count_nonzero(np.abs(values.astype(np.int64)) >= 2**31 - 1))
    if at_end:
        yield Breach(_bias(site), "values inside int32", f"{at_end} at +-2147483647")


@rule("weights-zero-point", Level.WARNING, "int8 weights must have zero point 0")
def weights_zero_point(site: Site) -> Iterator[Breach]:
    """Yield signed weights that are not symmetric: integer kernels subtract no zero point from them."""
    tensor = _weights(site)
    quantization = site.quantization(tensor)
    if quantization is not None and site.type(tensor) == TensorType.INT8 and quantization.zero_point.any():
        yield Breach(tensor, "zero point 0", f"{int(quantization.zero_point[np.argmax(quantization.zero_point != 0)])}")


@rule("channel-count", Level.ERROR, "one weight scale an output channel")
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


#: Profiles of a runtime that knows names, and of one that runs subgraphs.
_BY_NAME, _BY_SUBGRAPH = "litert-xnnpack", "litert-ref"
#: Less signal to noise than this, dB, is no difference of rounding.
_SAME = 60.0


@rule("composite", Level.WARNING, "runtimes that know a composite's name give other results")
def decomposition(site: Site) -> Iterator[Breach]:
    """Yield composites whose subgraph gives something else than the operator of their name, on drawn inputs."""
    if site.op != "STABLEHLO_COMPOSITE" or site.first is None:
        return
    try:
        alone, _ = single_operator(site.first, site.index)
        if not _is_known(alone):
            return
        inputs = generate(alone, GENERATORS["random"], 1, 0)[0]
        meant, computed = (_outputs(alone, name, inputs) for name in (_BY_NAME, _BY_SUBGRAPH))
    except TflqError:
        return  # a profile refuses it, so the two cannot be compared
    for output, a, b in zip(site.operator.outputs, meant, computed, strict=True):
        noise = decibels(a, b) if a.shape == b.shape else -np.inf
        if noise < _SAME:
            name = site.operator.options["name"] if site.operator.options else ""
            yield Breach(output, f"the results of {name}", f"a subgraph with other results ({noise:.0f} dB)")


def _is_known(model: Model) -> bool:
    """Return whether the runtime that knows names has a kernel of its own for the operator."""
    kernels = [make_plan(model, by_name(name)).steps[0].kernel for name in (_BY_NAME, _BY_SUBGRAPH)]
    return kernels[0] is not kernels[1]


def _outputs(model: Model, profile: str, inputs: Sequence[Array]) -> list[Array]:
    graph = view(model)
    trace = run(make_plan(model, by_name(profile)), dict(zip(graph.inputs, inputs, strict=True)))
    return [trace.values[tensor] for tensor in graph.outputs]
