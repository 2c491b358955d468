"""Rules about accuracy that the file alone shows: values that a shared scale merges, and floats in disguise.

Sources: TFLite 8-bit quantization specification (CONCATENATION has one scale); LiteRT 2.3 concatenation.cc Eval, which
rescales uint8 operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tflq.comparison.inspection.layout import MOST_ELEMENTS, groups_of
from tflq.comparison.inspection.operators import overflow_bounds
from tflq.diagnosis.linting.rules import QUANTIZED, Breach, Level, Site, rule
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.profiles import by_name
from tflq.model.ir import GraphView, OperatorView, TensorType
from tflq.model.surgery.tap import single_operator

#: Operators that give several tensors of data one scale.
JOINING = frozenset({"CONCATENATION", "PACK", "MAXIMUM", "MINIMUM", "SELECT", "SELECT_V2", "DYNAMIC_UPDATE_SLICE"})
#: An operand that keeps fewer codes than this of its 256 or 65,536 has lost its fine values.
FEW = 32
#: Scores with fewer codes than this of 0 to 1 are lost.
SCORES = 64
#: Widths of the ranges that activations leave, alone and fused (by number of ActivationFunctionType).
_CLAMPS = {"RELU_0_TO_1": 1.0, "RELU_N1_TO_1": 2.0, "RELU6": 6.0}
_FUSED_CLAMPS = {2: 2.0, 3: 6.0}
#: Most float tensors between an operator and the integer ones around it.
_FAR = 64
#: Operators with 16-bit activations whose bias decides on the width of their sums, and the narrower width.
_SUMS_OF_16_BITS, _REGISTER = ("CONV_2D", "FULLY_CONNECTED"), 32


@rule("narrow-sums", Level.WARNING, "sums can overflow: runtimes differ in their width")
def narrow_sums(site: Site) -> Iterator[Breach]:
    """Yield a product of 16-bit activations and 8-bit weights whose sums can leave the 32 bits that runtimes may use.

    An int64 bias, or `quantized_bias_type`, makes them sums of 64 bits everywhere.
    Source: LiteRT 2.3, fully_connected.cc and conv.cc; tflite-micro #3597.
    """
    options, weights = site.operator.options, site.type(site.input(1))
    if site.type(site.input(0)) != TensorType.INT16 or weights not in (TensorType.INT8, TensorType.INT4):
        return
    width = None if options is None else options.get("quantized_bias_type")
    if site.type(site.input(2)) == TensorType.INT64 or width == TensorType.INT64 or site.op not in _SUMS_OF_16_BITS:
        return
    alone, _ = single_operator(site.first or site.model, site.index)
    for bound in overflow_bounds(alone, by_name("litert-ref")):
        if bound.bits > _REGISTER:
            required = "an int64 bias, or quantized_bias_type INT64"
            yield Breach(site.output(), required, f"sums of up to {bound.bits} bits without it")


@rule("coarse-operand", Level.WARNING, "operands with scales far apart: one scale for all leaves few codes")
def coarse_operand(site: Site) -> Iterator[Breach]:
    """Yield operands of an operator with one scale for all, whose own range is a few steps of that scale."""
    output = site.activation(site.output())
    if site.op not in JOINING or output is None:
        return
    for position in dict.fromkeys(site.operator.inputs):
        here = site.activation(position) if 0 <= position < len(site.graph.tensors) else None
        span = None if here is None else _span(site, position)
        if span is not None and (kept := round(span / float(output[0])) + 1) < FEW:
            found = f"{kept} codes: the values span {span:.4g}, a step is {output[0]:.4g}"
            yield Breach(position, f"{FEW} codes or more", found)


@rule(
    "lost-scores",
    Level.WARNING,
    "one scale for boxes and scores: detections are lost; tflq quantize keeps both (--float-tail auto, its "
    "default, or --split-outputs)",
)
def lost_scores(site: Site) -> Iterator[Breach]:
    """Yield outputs that join probabilities with wider values in one scale, which leaves few codes for 0 to 1."""
    graph = site.graph
    for place, tensor in enumerate(graph.outputs):
        maker = graph.maker(tensor) if 0 <= tensor < len(graph.tensors) else None
        stored = site.activation(tensor) if maker is not None and maker.index == site.index else None
        if stored is None or (kept := round(1.0 / float(stored[0])) + 1) >= SCORES:
            continue
        if math.prod(graph.tensors[tensor].shape) > MOST_ELEMENTS:
            continue
        groups = groups_of(graph, place, tensor)
        if len(groups) > 1 and any(group.is_scores for group in groups):
            found = f"{kept} codes: a step of the joint output is {stored[0]:.4g}"
            yield Breach(tensor, f"{SCORES} codes or more for scores of 0 to 1", found)


def _span(site: Site, tensor: int) -> float | None:
    """Return how far apart the real values of a tensor can be before it was rescaled; None if nothing narrows them."""
    graph, seen = site.graph, {tensor}
    while (maker := graph.maker(tensor)) is not None and _moves(maker) and maker.inputs[0] not in seen:
        tensor = maker.inputs[0]
        seen.add(tensor)
    own, origin = _levels(site, tensor), graph.maker(tensor)
    if origin is None:
        return own
    spans = [own]
    if origin.name == "QUANTIZE":
        spans.append(_levels(site, origin.inputs[0]))
    spans.append(_clamp(origin))
    known = [span for span in spans if span is not None]
    return min(known, default=None)


def _moves(op: OperatorView) -> bool:
    """Return whether the operator copies the elements of its first operand, and no others."""
    fact = OPERATORS.get(op.name)
    return fact is not None and fact.moves == (0,) and bool(op.inputs)


def _levels(site: Site, tensor: int) -> float | None:
    """Return the range of all codes of a tensor, in real values."""
    stored, kind = site.activation(tensor), site.type(tensor)
    if stored is None or not isinstance(kind, TensorType):
        return None
    limits = np.iinfo(kind.label)
    return float(stored[0]) * (int(limits.max) - int(limits.min))


def _clamp(op: OperatorView) -> float | None:
    """Return the width of the range that an activation leaves, alone or fused; None if it is open."""
    fused = 0 if op.options is None else int(op.options.get("fused_activation_function") or 0)
    return _CLAMPS.get(op.name, _FUSED_CLAMPS.get(fused))


@rule("float-between", Level.NOTE, "float32 between integer operators")
def float_between(site: Site) -> Iterator[Breach]:
    """Yield an operator or a variable in float32 between integer operators: codes become floats, then codes again."""
    graph, op = site.graph, site.operator
    if op.name in ("QUANTIZE", "DEQUANTIZE"):
        return
    given, made = ([t for t in edge if site.type(t) == TensorType.FLOAT32] for edge in (op.inputs, op.outputs))
    comes = op.name == "READ_VARIABLE" or _reaches(graph, given, "DEQUANTIZE")
    goes = op.name == "ASSIGN_VARIABLE" or _reaches(graph, made, "QUANTIZE")
    if not (comes and goes and (given or made)):
        return
    if op.name in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
        yield Breach((*given, *made)[0], "an integer state (_experimental_variable_quantization)", "a float32 variable")
    elif any(_takes_int8(row) for row in by_name("litert-ref").kernels.get(op.name, ())):
        yield Breach((*made, *given)[0], "its int8 kernel", f"{op.name} computes in float32")


@rule("float-inside", Level.WARNING, "the input is quantized, but the operators compute in float32")
def float_inside(site: Site) -> Iterator[Breach]:
    """Yield the DEQUANTIZE of a quantized input of a model that then computes in floats only."""
    graph, tensor = site.graph, site.input(0)
    if site.op != "DEQUANTIZE" or tensor not in graph.inputs or site.type(tensor) not in QUANTIZED:
        return
    weighted = [op for op in graph.ops if _is_weighted(op)]
    if weighted and all(graph.tensor(op.outputs[0]).type == TensorType.FLOAT32 for op in weighted):
        found = f"all {len(weighted)} operators with weights compute in float32" if len(weighted) > 1 else "float32"
        yield Breach(tensor, "integer operators behind an integer input", found)


def _reaches(graph: GraphView, tensors: Sequence[int], end: str) -> bool:
    """Return whether float operators lead back to a DEQUANTIZE of computed codes, or on to a QUANTIZE, at hand."""
    is_back = end == "DEQUANTIZE"
    waiting, seen = list(tensors), set(tensors)
    while waiting and len(seen) < _FAR:
        tensor = waiting.pop()
        maker = graph.maker(tensor)
        for op in ([] if maker is None else [maker]) if is_back else graph.readers(tensor):
            if op.name == end and not (is_back and graph.data(op.inputs[0]) is not None):
                return True
            for t in op.inputs if is_back else op.outputs:
                if 0 <= t < len(graph.tensors) and graph.tensors[t].type == TensorType.FLOAT32 and t not in seen:
                    seen.add(t)
                    waiting.append(t)
    return False


def _takes_int8(row: Kernel) -> bool:
    return bool(row.signature.inputs) and TensorType.INT8 in (row.signature.inputs[0].types or ())


def _is_weighted(op: OperatorView) -> bool:
    fact = OPERATORS.get(op.name)
    return fact is not None and fact.products is not None and bool(op.outputs)
