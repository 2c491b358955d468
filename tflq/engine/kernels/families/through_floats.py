"""A row that dequantizes, computes the operator in floats and quantizes: runtimes without integer kernels.

`Floats` states the fields. Sources of fields: TVM (relax/transform/legalize_ops/qdq.py: float32, division, half to
even), OpenVINO's CPU plugin (FakeQuantize: `numerics/code_ranges`; bfloat16 if the processor has it), ONNX
QuantizeLinear (division, half to even).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import LIMITS, limits, without_activation
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.kernels.table import Rows, find
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.code_ranges import TO_CODES, TO_REALS, CodeRange, range_of
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import ROUNDINGS
from tflq.engine.numerics.narrow_floats import in_bfloat16, in_float16, in_float32
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER, Quantization, TensorType
from tflq.typing import Array

CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_BIASES = (TensorType.INT32, TensorType.INT64)
#: Operators that change codes but not their real values.
_SAME_REALS = ("QUANTIZE", "DEQUANTIZE")
#: Operators of one input that are the same function of reals and of steps; only their bounds differ.
COUNTED = ("QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "MEAN", "AVERAGE_POOL_2D", "MAX_POOL_2D", "RESIZE_BILINEAR")
#: Bounds of operators by themselves, as the activation that has them.
_RECTIFIERS = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
#: Rounded quotients that are not numbers or beyond all codes have this size.
_FAR = 2.0**30


@dataclass(frozen=True, slots=True)
class Precision:
    """Roundings of the float operator's operands and results. Sums are float32."""

    operands: Callable[[Array], Array]
    results: Callable[[Array], Array]


#: Precisions by name.
PRECISIONS: Mapping[str, Precision] = {
    "float32": Precision(in_float32, in_float32),
    "bfloat16": Precision(in_bfloat16, in_bfloat16),
    "bfloat16, results in float32": Precision(in_bfloat16, in_float32),
    "float16": Precision(in_float16, in_float16),
    "float16, results in float32": Precision(in_float16, in_float32),
}


@dataclass(frozen=True, slots=True)
class Quotient:
    """The conversion of reals to codes: divided, or multiplied by the reciprocal; and where the zero point is added."""

    is_product: bool
    zero_first: bool

    def codes(self, reals: Array, scale: np.float32, zero_point: int, rounding: str) -> Array:
        """Return codes before the clamp, float32."""
        zero = np.float32(zero_point)
        with np.errstate(all="ignore"):
            scaled = reals * (np.float32(1) / scale) if self.is_product else reals / scale
            scaled = scaled + zero if self.zero_first else scaled
            rounded = np.nan_to_num(ROUNDINGS[rounding](scaled), nan=0.0, posinf=_FAR, neginf=-_FAR)
        return np.asarray(rounded if self.zero_first else rounded + zero)


#: The conversions by scale and zero point, by name.
QUOTIENTS: Mapping[str, Quotient] = {
    "divided": Quotient(False, False),
    "times reciprocal": Quotient(True, False),
    "divided, zero point before rounding": Quotient(False, True),
    "times reciprocal, zero point before rounding": Quotient(True, True),
}
#: Numbers that the operator takes: scaled codes; the codes themselves if input and output have the same scale; or steps
#: of the input's range, in which the ends of the output's range are counted, too.
SCALED, AS_CODES, *IN_STEPS = REALS = (
    "scaled",
    "codes",
    "steps of the input's range",
    "steps of the input's range, two bounds cut off",
)
_CUT_OFF = REALS[-1]
#: How codes that are no constants become reals: scale * (code - zero point), or by the ends of their range.
FROM_ZERO_POINT = "from the zero point"
DEQUANTIZED = (FROM_ZERO_POINT, *TO_REALS)


@dataclass(frozen=True, slots=True)
class Floats:
    """One point of the grammar of float forms. Fields are spelled as files of profiles spell them."""

    precision: str = "float32"
    quotient: str = "divided"
    rounding: str = "half to even"
    reals: str = SCALED
    dequantized: str = FROM_ZERO_POINT


#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "precision": tuple(PRECISIONS),
    "quotient": (*QUOTIENTS, *TO_CODES),
    "rounding": tuple(ROUNDINGS),
    "reals": REALS,
    "dequantized": DEQUANTIZED,
}


#: The reader of what a file states.
floats_of = reader(Floats, FIELDS, "a float form")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: the float operator, and how codes become floats and floats codes."""

    floats: Prepared | None  # None if the operator changes no real value
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    point: Floats
    bounds: tuple[np.float32 | None, np.float32 | None] = (None, None)  # of results, in steps


def through_floats(row: Kernel, rows: Rows, point: Floats) -> Kernel:
    """Return the row that computes in floats by those of `rows` that take floats."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        for operand in (*node.inputs, *node.outputs):
            _check(node, operand)
        if point.reals == AS_CODES:
            x, y = node.input(0), node.outputs[0]
            node.check((x.scale, x.zero_point) == (y.scale, y.zero_point), "computes on codes: scales differ", y)
        data = OpData(None, node.inputs, node.outputs, point)
        if point.reals in IN_STEPS:
            is_meant = node.op in COUNTED and point.quotient in TO_CODES
            node.check(is_meant, "only some operators of one input count in steps of a range", node.outputs[0])
            data = replace(data, bounds=_bounds(node, point))
        if node.op in _SAME_REALS or (node.op in _RECTIFIERS and point.reals in IN_STEPS):
            return Prepared((node.input(0).shape,), data, eval_through_floats)
        inputs = tuple(None if o is None else _in_floats(o, point) for o in node.inputs)
        outputs = tuple(replace(o, type=_float(o.type), quantization=None) for o in node.outputs)
        types = [None if o is None else o.type for o in inputs]
        chosen = find({node.op: rows}, node.op, node.version, types, [o.type for o in outputs])
        if chosen is None or chosen.session:
            node.refuse("has no form in floats")
        prepare_floats = without_activation(chosen.prepare) if point.reals in IN_STEPS else chosen.prepare
        prepared = prepare_floats(replace(node, inputs=inputs, outputs=outputs), arithmetic)
        if prepared.updates:
            node.refuse("has no form in floats")
        return Prepared(prepared.shapes, replace(data, floats=prepared), eval_through_floats, scratch=prepared.scratch)

    return replace(row, prepare=prepare, takes=None)


def _bounds(node: Node, point: Floats) -> tuple[np.float32 | None, np.float32 | None]:
    """Return the bounds of results in steps of the input's range: real / step + zero."""
    f32, of = np.float32, _range(node.input(0))
    reals = LIMITS[_RECTIFIERS[node.op]] if node.op in _RECTIFIERS else limits(node)
    with np.errstate(all="ignore"):
        low, high = (None if real is None else f32(f32(f32(real) / of.step) + of.zero) for real in reals)
    if low is not None and high is not None and point.reals == _CUT_OFF:
        return np.floor(low), np.floor(high)
    return low, high


def _check(node: Node, operand: Operand | None) -> None:
    """Refuse codes without scales, and results with several."""
    if operand is None or operand.type not in CODES:
        return
    q = operand.quantization
    has_scales = q is not None and q.scale.size >= 1 and q.zero_point.size in (1, q.scale.size)
    node.check(has_scales and not operand.is_variable, "has no scales to compute in floats with", operand)
    if operand in node.outputs:
        node.check(q is not None and q.scale.size == 1, "has several scales", operand)


def _is_scaled(operand: Operand) -> bool:
    is_bias = operand.type in _BIASES and operand.is_quantized
    return operand.type in CODES or is_bias


def _float(type_: TensorType) -> TensorType:
    return TensorType.FLOAT32 if type_ in CODES else type_


def _in_floats(operand: Operand, point: Floats) -> Operand:
    """Return the operand of the float operator; constants are dequantized."""
    if not _is_scaled(operand):
        return operand
    value = None if operand.value is None else _reals(operand, operand.value, point)
    return replace(operand, type=TensorType.FLOAT32, quantization=None, value=value)


def _reals(operand: Operand, codes: Array, point: Floats) -> Array:
    if point.reals == AS_CODES and operand.type in CODES:
        return np.asarray(codes, np.float32)
    if point.reals in IN_STEPS and operand.type in CODES:
        return _range(operand).counted(codes)
    assert operand.quantization is not None  # guaranteed by _check and _is_scaled
    if _is_by_range(operand, point):
        reals = TO_REALS[point.dequantized](codes, _range(operand))
    else:
        reals = dequantized(operand.quantization, codes)
    return reals if operand.type in _BIASES else PRECISIONS[point.precision].operands(reals)


def _is_by_range(operand: Operand, point: Floats) -> bool:
    """Return whether codes become reals by the ends of their range: codes with one scale that are no constants."""
    is_fed = operand.type in CODES and operand.value is None
    return (
        point.dequantized in TO_REALS
        and is_fed
        and operand.quantization is not None
        and operand.quantization.scale.size == 1
    )


def _limits(operand: Operand) -> Clamp:
    return Clamp(-8, 7) if operand.type == TensorType.INT4 else type_range(CARRIER[operand.type])


def _range(operand: Operand) -> CodeRange:
    return range_of(operand.scale, int(operand.zero_point), _limits(operand))


def dequantized(q: Quantization, codes: Array) -> Array:
    """Return scale * (code - zero point) in float32."""
    shape = [1] * codes.ndim
    if codes.ndim and q.scale.size > 1:
        shape[q.quantized_dimension] = q.scale.size
    scale = q.scale.reshape(shape) if q.scale.size > 1 else q.scale[0]
    zeros = q.zero_point.reshape(shape) if q.zero_point.size > 1 else q.zero_point[0]
    return np.asarray(scale * (codes.astype(np.int64) - zeros).astype(np.float32), np.float32)


def eval_through_floats(data: OpData, *inputs: Array | None) -> Array | tuple[Array, ...]:
    """Dequantize, compute and quantize. Rounding: float32 in each step, then by the point."""
    point = data.point
    given = [
        x if x is None or o is None or not _is_scaled(o) else _reals(o, x, point)
        for o, x in zip(data.inputs, inputs, strict=False)
    ]
    made: Any = given[0] if data.floats is None else data.floats.eval(data.floats.data, *given)
    low, high = data.bounds
    made = made if low is None else np.maximum(made, low)
    made = made if high is None else np.minimum(made, high)
    results: Sequence[Array] = made if isinstance(made, tuple) else (made,)
    coded = [
        _codes(data, o, PRECISIONS[point.precision].results(np.asarray(y))) if o.type in CODES else y
        for o, y in zip(data.outputs, results, strict=True)
    ]
    return coded[0] if len(coded) == 1 else tuple(coded)


def _codes(data: OpData, operand: Operand, reals: Array) -> Array:
    point, rounding = data.point, ROUNDINGS[data.point.rounding]
    if point.reals == AS_CODES:
        codes = rounding(np.asarray(reals, np.float32))
    elif point.quotient in TO_CODES:
        of, x = _range(operand), data.inputs[0]
        of = of.in_steps_of(_range(x)) if point.reals in IN_STEPS and x is not None else of
        with np.errstate(all="ignore"):
            codes = TO_CODES[point.quotient].codes(reals, of, rounding)
        codes = np.nan_to_num(codes, nan=0.0, posinf=_FAR, neginf=-_FAR)
    else:
        codes = QUOTIENTS[point.quotient].codes(reals, operand.scale, int(operand.zero_point), point.rounding)
    return np.asarray(np.clip(codes, *_limits(operand)).astype(CARRIER[operand.type]))
