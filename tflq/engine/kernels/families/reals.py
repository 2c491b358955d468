"""Learned forms: through floats, by one requantizer, only where.

A row that dequantizes, computes the operator in floats and quantizes: runtimes without integer kernels.

`Floats` states the fields. Sources of fields: TVM (relax/transform/legalize_ops/qdq.py: float32, division, half to
even), OpenVINO's CPU plugin (FakeQuantize: `numerics/code_ranges`; bfloat16 if the processor has it), ONNX
QuantizeLinear (division, half to even).

A row whose output stages are replaced by one point of the grammar of requantizers.

A kernel hands real multipliers to its arithmetic. Where such a multiplier is the quotient of the operator's own scales,
a * b / y or a / y, the point computes it from the scales again; all others stay as the kernel made them.

A row whose device does not look at an option, a scale or a zero point: it computes as if that had its default.

Source of fields: tosa-converter-for-tflite 2026.2.0 (drops the fused activation of pools), OpenVINO 2026.4
(half_pixel_centers of RESIZE_NEAREST_NEIGHBOR), ESP-NN d45b843 called directly (dilation), OpenCV 5.0 dnn (beta; zero
point of PAD; scales of uint8 ADD, SUB, MUL, MEAN), accelerators whose activation is max(code, 0).

A row that is known for some geometries only, and refuses the others.

A geometry is described by the names that the conformance suite gives to options and extents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.kernels.families.activation import LIMITS, code_range, limits, without_activation
from tflq.engine.kernels.families.learned_form import LearnedForm, form
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.kernels.table import Rows, find
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import TO_CODES, TO_REALS, Clamp, CodeRange, range_of
from tflq.engine.numerics.estimates import in_bfloat16, in_float16, in_float32
from tflq.engine.numerics.multiplier import OperatorScales
from tflq.engine.numerics.requantizer import GrammarStage, Requantizer, point_of, reader
from tflq.engine.numerics.rounding import ROUNDINGS
from tflq.engine.numerics.stages import OutputStage, StageOf, as_reals, type_range
from tflq.errors import OptionError, UnknownNameError
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
        floats = node.with_inputs(lambda o: _in_floats(o, point))
        floats = floats.with_outputs(lambda o: replace(o, type=_float(o.type), quantization=None))
        types = [None if o is None else o.type for o in floats.inputs]
        chosen = find({node.op: rows}, node.op, node.version, types, [o.type for o in floats.outputs])
        if chosen is None or chosen.session:
            node.refuse("has no form in floats")
        prepare_floats = without_activation(chosen.prepare) if point.reals in IN_STEPS else chosen.prepare
        prepared = prepare_floats(floats, arithmetic)
        if prepared.updates:
            node.refuse("has no form in floats")
        return Prepared(prepared.shapes, replace(data, floats=prepared), eval_through_floats, scratch=prepared.scratch)

    return replace(row, prepare=prepare, takes=None)


#: The form as files state it.
FLOATS = LearnedForm(reader(Floats, FIELDS, "a float form"), through_floats)


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


#: Relative distance up to which a multiplier is taken for a quotient of scales.
_NEAR = 1e-6


@form(point_of, keeps_rule=True)
def requantize(node: Node, arithmetic: Arithmetic, row: Kernel, point: Requantizer) -> Prepared:
    """Return the row with every output stage replaced."""
    quotients = [] if point.multiplier == "given" and not point.uses_scales else list(quotients_of(node))

    def change(_own: StageOf) -> StageOf:
        return lambda real: _stage(point, real, quotients)

    return row.prepare(node, arithmetic.each_stage(change))


def _stage(point: Requantizer, real: ArrayLike, quotients: list[OperatorScales]) -> OutputStage:
    values = as_reals(real)
    with np.errstate(all="ignore"):
        known = next((s for s in quotients if _is_near(values, s)), None)
    return GrammarStage.of(point, values, known)


def _is_near(real: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scales: OperatorScales) -> bool:
    product = scales.real
    return product.size in (1, real.size) and bool(np.allclose(real, product, rtol=_NEAR, atol=0))


def quotients_of(node: Node) -> Iterator[OperatorScales]:
    """Yield the scales whose quotients may be the multipliers of a node."""
    operands = [o for o in (*node.inputs[:2], *node.outputs[:1]) if o is not None and o.type in CODES]
    scales = [o.quantization.scale.astype(np.float32) for o in operands if o.quantization is not None]
    if len(scales) < 2 or any(not s.size for s in scales):
        return
    *factors, y = scales
    if len(factors) == 2:
        yield OperatorScales(factors[0], factors[1], y)
    alpha = node.options.get("alpha")
    if alpha is not None:
        yield OperatorScales(factors[0], np.atleast_1d(np.float32(alpha)), y)
    for factor in factors:
        yield OperatorScales(factor, None, y)


#: Values that options of the schema get, by the name of what is ignored.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "activation": {"fused_activation_function": 0},
    "dilation": {"dilation_h_factor": 1, "dilation_w_factor": 1},
    "align_corners": {"align_corners": False},
    "half_pixel_centers": {"half_pixel_centers": False},
    "align_corners and half_pixel_centers": {"align_corners": False, "half_pixel_centers": False},
    "beta": {"beta": 1.0},
}
_FUSED = "fused_activation_function"
#: The activation's lower bound alone: RELU for all that have one at 0.
UPPER, AT_CODE_0, AT_CODE_0_ALONE = BOUNDS = (
    "upper bound of the activation",
    "zero point of the activation",
    "zero point and upper bound of the activation",
)
#: Names of what is ignored of operands, with whether this means scales, and zero points.
OPERANDS: Mapping[str, tuple[bool, bool]] = {"zero points": (False, True), "scales and zero points": (True, True)}
#: The values of each field.
IGNORED_OPTIONS_FIELDS: Mapping[str, tuple[str, ...]] = {"option": (*DEFAULTS, *BOUNDS, *OPERANDS)}
#: Numbers of activations in files.
_RELU, _RELU6 = 1, 3


@dataclass(frozen=True, slots=True)
class Ignored:
    """The option that is not looked at. The field is spelled as files of profiles spell it."""

    option: str = "activation"


@form(reader(Ignored, IGNORED_OPTIONS_FIELDS, "an ignored option"))
def ignoring(node: Node, arithmetic: Arithmetic, row: Kernel, point: Ignored) -> Prepared:
    """Return the row that computes as if an option had its default."""
    if point.option in OPERANDS:

        def plain(operand: Operand) -> Operand:
            return _plain(operand, *OPERANDS[point.option])

        return row.prepare(node.with_inputs(plain).with_outputs(plain), arithmetic)
    changed = {_FUSED: 0} if point.option in BOUNDS else DEFAULTS[point.option]
    for name in changed:
        node.check(name in tuple(node.options.fields), f"has no option {name} to ignore")
    prepared = row.prepare(node.with_options(**changed), arithmetic)
    return _bounded(prepared, node, point.option) if point.option in BOUNDS else prepared


def _with(node: Node, changed: Mapping[str, Any]) -> Node:
    return replace(node, options=replace(node.options, fields={**node.options.fields, **changed}))


def _plain(operand: Operand, scales: bool, zeros: bool) -> Operand:
    """Return an operand of codes without scales or zero points."""
    q = operand.quantization
    if q is None or operand.type not in CODES:
        return operand
    scale = np.ones_like(q.scale) if scales else q.scale
    zero = np.zeros_like(q.zero_point) if zeros else q.zero_point
    return replace(operand, quantization=replace(q, scale=scale, zero_point=zero))


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Constants: the row's own without an activation, and the bounds of codes."""

    inner: Prepared
    clamp: Clamp


def _bounded(prepared: Prepared, node: Node, option: str) -> Prepared:
    """Return the row with the activation's bounds applied to codes."""
    y, activation = node.outputs[0], int(node.options[_FUSED])
    if activation == _RELU6 and option != AT_CODE_0:
        activation = _RELU
    if option != UPPER:
        y = _plain(y, scales=False, zeros=True)
    clamp = code_range(_with(node, {_FUSED: activation}), y, CARRIER[y.type])
    return replace(prepared, data=Bounded(prepared, clamp), eval=eval_bounded)


def eval_bounded(data: Bounded, *inputs: Array | None) -> Array:
    """Evaluate the row and limit its codes."""
    codes = np.asarray(data.inner.eval(data.inner.data, *inputs))
    return np.asarray(np.clip(codes, *map(codes.dtype.type, data.clamp)))


_ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}
_PADDINGS = {0: "SAME", 1: "VALID"}


def _option(name: str, usual: int | None = None) -> Callable[[Node], object]:
    return lambda node: int(node.options[name] if usual is None else node.options.get(name, usual))


def _kernel(axis: int, option: str) -> Callable[[Node], object]:
    return lambda node: int(node.options[option]) if option in node.options.fields else node.input(1).shape[axis]


#: Properties that may limit a row, by name. Extents of images are left out: rules on them are hardly about one number.
NAMES: Mapping[str, Callable[[Node], object]] = {
    **{f"stride_{a}": _option(f"stride_{a}") for a in "hw"},
    **{f"dilation_{a}": _option(f"dilation_{a}_factor", 1) for a in "hw"},
    "kernel_h": _kernel(1, "filter_height"),
    "kernel_w": _kernel(2, "filter_width"),
    "padding": lambda node: _PADDINGS.get(int(node.options["padding"]), ""),
    "batch": lambda node: node.input(0).shape[0],
    "depth": lambda node: node.input(0).shape[-1],
    "filters": lambda node: node.outputs[0].shape[-1],
    "units": lambda node: node.outputs[0].shape[-1],
    "groups": lambda node: node.input(0).shape[-1] // max(1, node.input(1).shape[-1]),
    "multiplier": _option("depth_multiplier", 1),
    "rank": lambda node: len(node.input(0).shape),
    "activation": lambda node: _ACTIVATIONS.get(int(node.options.get("fused_activation_function", 0)), ""),
}


@dataclass(frozen=True, slots=True)
class Only:
    """The geometries that are known: values of some names together, as text."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def only_of(stated: Mapping[str, Any]) -> Only:
    """Return the geometries that `stated` gives: `names`, and lists of their `values`.

    Raises:
        UnknownNameError: There is no such name.
        OptionError: A key is missing or unknown, or a list of values does not suit the names.
    """
    names, values = stated.get("names"), stated.get("values")
    lists = (list, tuple)
    if set(stated) != {"names", "values"} or not isinstance(names, lists) or not isinstance(values, lists):
        raise OptionError("only: expected names and lists of their values")
    unknown = next((name for name in names if name not in NAMES), None)
    if unknown is not None:
        raise UnknownNameError("name of a geometry", str(unknown)[:80], tuple(NAMES))
    if not all(isinstance(one, lists) and len(one) == len(names) for one in values):
        raise OptionError(f"only: expected {len(names)} values each")
    return Only(tuple(names), tuple(tuple(map(str, one)) for one in values))


@form(only_of)
def only_where(node: Node, arithmetic: Arithmetic, row: Kernel, point: Only) -> Prepared:
    """Return the row that refuses geometries that are not known."""
    own = tuple(str(NAMES[name](node)) for name in point.names)
    listed = " or ".join(", ".join(map(" ".join, zip(point.names, one, strict=True))) for one in point.values)
    node.check(own in point.values, "is known for some geometries only", expected=listed, got=", ".join(own))
    return row.prepare(node, arithmetic)
