"""Rules that explain why runtimes can give other bits on an integer operator, and which form they agree on.

They only explain: `tflq prove` decides. Ordinary models break them in nearly every operator, so they apply on request
only. docs/proof.md, lemma 4a, and tflq/quantization/portable/ derive them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from tflq.diagnosis.linting.rules import QUANTIZED, Breach, Level, Site, rule, rules_of, sites
from tflq.diagnosis.linting.specification import accumulator_scale
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts import rows as unary
from tflq.engine.kernels.facts.rules import WITH_CHANNELS
from tflq.engine.numerics.multiplier import exponent_of
from tflq.model.ir import Model, TensorType

#: A multiplier in this distance below a power of two, relative to it, needs no rounding before the last shift.
BELOW = 2.0**-20
#: Operators whose codes a table of 256 entries gives.
TABLES = frozenset(f.op for f in unary.UNARY_FACTS if f.pointwise and not f.converts and not f.rounds_once)
#: Operators with exponentials, norms or sums over several elements, for which there is no such form.
TAILS = frozenset(("BATCH_MATMUL", "L2_NORMALIZATION", "LOG_SOFTMAX", "RESIZE_BILINEAR", "SOFTMAX", "SUM"))


@rule("portable-parity", Level.NOTE, "even weights and odd biases leave no ties to round")
def weights_odd(site: Site) -> Iterator[Breach]:
    """Yield weights that are not all even, and a bias that is not odd everywhere: their accumulators can be ties."""
    if accumulator_scale(site) is None:
        return
    places = WITH_CHANNELS[site.op]
    position, bias, axis = places.weights, places.bias, places.axis
    tensor = site.input(position)
    values, spec, quantization = site.constant(tensor), site.spec(tensor), site.quantization(tensor)
    if values is None or values.dtype.kind not in "iu" or spec is None or values.size != int(np.prod(spec.shape)):
        return
    is_unsigned = quantization is not None and site.type(tensor) == TensorType.UINT8
    zero = int(quantization.zero_point[0]) if quantization is not None and is_unsigned else 0
    rows = np.moveaxis(values.reshape(spec.shape), axis, 0).reshape(spec.shape[axis], -1)
    odd = int((rows & 1 != zero & 1).any(axis=1).sum())
    if odd:
        yield Breach(tensor, "even weights", f"odd ones in {odd} of {len(rows)} channels")
    added = site.constant(site.input(bias))
    even = len(rows) if added is None else int(np.count_nonzero(added.astype(np.int64) % 2 == 0))
    if even:
        yield Breach(site.input(bias), "an odd bias", "none" if added is None else f"{even} even of {added.size}")


@rule("portable-multiplier", Level.NOTE, "only a multiplier just below a power of two rounds once")
def multiplier(site: Site) -> Iterator[Breach]:
    """Yield weights whose multiplier is not just below a power of two: runtimes round it in different ways."""
    accumulator, output = accumulator_scale(site), site.activation(site.output())
    if accumulator is None or output is None:
        return
    position = WITH_CHANNELS[site.op].weights
    data, weights = site.activation(site.input(WITH_CHANNELS[site.op].data)), site.quantization(site.input(position))
    assert data is not None  # accumulator_scale saw to both
    assert weights is not None
    real = np.float64(data[0]) * weights.scale.astype(np.float64) / np.float64(output[0])
    with np.errstate(all="ignore"):
        share = real / np.exp2(np.ceil(np.log2(real)))
    away = ~((share < 1) & (share > 1 - BELOW))
    if away.any():
        worst = int(np.argmax(away))
        required = "input scale * weights scale / output scale just below a power of two"
        yield Breach(site.input(position), required, f"{real[worst]:.6g} ({int(away.sum())} of {real.size})")


@rule("portable-dense", Level.NOTE, "releases up to 2.9 read scales of channels as 0")
def dense_channels(site: Site) -> Iterator[Breach]:
    """Yield weights of FULLY_CONNECTED with several scales, which releases up to 2.9 read as 0."""
    quantization = site.quantization(site.input(1)) if site.op == "FULLY_CONNECTED" else None
    if quantization is not None and quantization.scale.size > 1 and site.activation(site.input(0)) is not None:
        yield Breach(site.input(1), "one scale for all weights", f"{quantization.scale.size}")


@rule("portable-sum", Level.NOTE, "scales of sums a power of two apart")
def sum_scales(site: Site) -> Iterator[Breach]:
    """Yield an operand of ADD or SUB whose scale is not a power of two apart from the output's."""
    output = site.activation(site.output()) if site.op in ("ADD", "SUB") else None
    for position in (0, 1) if output is not None else ():
        here = site.activation(site.input(position))
        if here is not None and output is not None and exponent_of(float(here[0]) / float(output[0])) is None:
            required = f"scale {output[0]:.9g} as the output, or a power of two apart"
            yield Breach(site.input(position), required, f"scale {here[0]:.9g}")


@rule("portable-product", Level.NOTE, "scales of products a power of two apart")
def product_scales(site: Site) -> Iterator[Breach]:
    """Yield a MUL whose scales of operands and output do not leave a power of two."""
    scales = [site.activation(t) for t in (site.input(0), site.input(1), site.output())] if site.op == "MUL" else []
    known = [float(one[0]) for one in scales if one is not None]
    if len(known) == 3 and exponent_of(known[0] * known[1] / known[2]) is None:
        required = "product of input scales / output scale a power of two, and codes whose products are odd"
        yield Breach(site.output(), required, f"{known[0] * known[1] / known[2]:.6g}")


@rule("portable-requantize", Level.NOTE, "codes that are moved need no rounding")
def requantize(site: Site) -> Iterator[Breach]:
    """Yield a QUANTIZE between integers whose scales differ."""
    one, other = site.activation(site.input(0)), site.activation(site.output())
    if site.op == "QUANTIZE" and one is not None and other is not None and one[0] != other[0]:
        yield Breach(site.output(), f"scale {one[0]:.9g} as the input", f"scale {other[0]:.9g}")


@rule("portable-form", Level.NOTE, "runtimes compute this operator in different ways")
def other_form(site: Site) -> Iterator[Breach]:
    """Yield operators that runtimes compute in different ways, and the form on which they agree."""
    if site.activation(site.output()) is None or site.type(site.input(0)) not in QUANTIZED:
        return
    if site.op in TABLES:
        yield Breach(site.output(), "GATHER from a table of 256 codes", site.op)
    if site.op == "MEAN":
        yield Breach(site.output(), "AVERAGE_POOL_2D, or DEPTHWISE_CONV_2D with equal weights", site.op)
    if site.op in TAILS:
        yield Breach(site.output(), "an operator on which runtimes agree, or the model ends before it", site.op)


def is_integer(site: Site) -> bool:
    """Return whether an operator reads or gives codes."""
    return any(site.activation(tensor) is not None for tensor in site.operands())


def portable_counts(model: Model) -> tuple[int, int]:
    """Return the number of known integer operators that break no rule of this module, and of all integer operators."""
    integer = [site for site in sites(model) if is_integer(site)]
    rules, known = rules_of(sys.modules[__name__]), [site for site in integer if site.operator.name in OPERATORS]
    kept = [site for site in known if not any(True for one in rules for _ in one.check(site))]
    return len(kept), len(integer)
