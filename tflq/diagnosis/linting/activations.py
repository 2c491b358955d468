"""Rules about scales and zero points of activations.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/*.cc, the Prepare functions named below.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import QUANTIZED, Site
from tflq.engine.kernels.facts.rules import FIXED, tied_inputs
from tflq.model.ir import TensorType

#: Relative tolerance of SOFTMAX's kernel for its fixed output scale.
NEAR = 1e-3

#: beta * scale of an 8-bit SOFTMAX is stored in units of its inverse. Source: PreprocessSoftmaxScaling.
SOFTMAX_UNIT = 2.0**26


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


def softmax_range(site: Site) -> Iterator[Breach]:
    """Yield a SOFTMAX of 8 bits whose beta * scale is too small for its fixed point (the kernel aborts), or is cut."""
    stored = site.activation(site.input(0))
    if site.op != "SOFTMAX" or stored is None or site.type(site.input(0)) == TensorType.INT16:
        return
    beta = float(site.operator.options["beta"]) if site.operator.options is not None else 0.0
    real = beta * float(stored[0])
    if not 1.0 < real * SOFTMAX_UNIT <= 2.0**31 - 1.0:
        yield Breach(site.input(0), "beta * scale in (2**-26, 32)", f"{real:g}")


def int16_zero_point(site: Site) -> Iterator[Breach]:
    """Yield activations of 16 bits that are not symmetric."""
    for tensor in site.operands():
        stored = site.activation(tensor)
        if stored is not None and site.type(tensor) == TensorType.INT16 and stored[1] != 0:
            yield Breach(tensor, "zero point 0", f"zero point {stored[1]}")


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


RULES = (
    Rule("equal-scale", Level.WARNING, "codes are moved, not rescaled: scales must be equal", equal_scale),
    Rule("fixed-output", Level.ERROR, "the kernel's output scale and zero point are fixed", fixed_output),
    Rule("softmax-range", Level.ERROR, "beta * scale is outside the kernel's fixed point", softmax_range),
    Rule("int16-zero-point", Level.ERROR, "int16 activations must have zero point 0", int16_zero_point),
    Rule("zero-point-range", Level.ERROR, "a zero point outside its type", zero_point_range),
    Rule("usable-scale", Level.ERROR, "a scale that is zero, subnormal, negative or not finite", usable_scale),
)
