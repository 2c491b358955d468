"""SVDF: a dense layer factored into a feature filter and a time filter over a memory of its results.

SVDF, compiled: one step of the filters, with the state changed in place.

| operand         | shape  | float form        | 8-bit weights            | 8-bit activations          |
|-----------------|--------|-------------------|--------------------------|----------------------------|
| x               | N, I   | float32           | float32                  | int8                       |
| feature weights | F, I   | float32           | int8, uint8 (as int8)    | int8, symmetric            |
| time weights    | F, M   | float32           | int8, uint8 (as int8)    | int16, symmetric           |
| bias            | U      | float32, optional | float32, optional        | int32, optional            |
| state           | N, F*M | float32, variable | float32, variable        | int16, symmetric, variable |
| y               | N, U   | float32           | float32                  | int8                       |

F = U * rank filters with M moments each. All quantization is per tensor.
Options: rank, fused_activation_function (8-bit activations: RELU only, and it is the output range that clamps),
asymmetric_quantize_inputs (8-bit weights).
The whole state moves down by one element; the last moment of every filter is then overwritten.
Refused: an int8 state, which the source reads as int16. Float results up to 2.14 are not claimed.
Source: LiteRT 2.3 svdf.cc; reference/svdf.h EvalFloatSVDF, EvalHybridSVDF, EvalIntegerSVDF.

SVDF of TensorFlow Lite Micro: multipliers in float64, and a state of 8 bits, which other runtimes misread.

| operand  | shape     | types       | quantization          |
|----------|-----------|-------------|-----------------------|
| x        | N, I      | int8        | per tensor            |
| features | F, I      | int8        | per tensor, symmetric |
| time     | F, M      | int8, int16 | per tensor, symmetric |
| bias     | F / rank  | int32       |                       |
| state    | N, F * M  | as time     | per tensor, variable  |
| y        | N, F/rank | int8        | per tensor            |

Options: rank; fused_activation_function is ignored. A bias is required: Prepare reads its scale, which must be that of
state times time within 1e-5.
tflite-micro up to August 2026 evaluates the multipliers in float32, and so would LiteRT.
Source: tflite-micro (August and October 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference,
EvalInt16SvdfReference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.activation import first_scale
from tflq.engine.kernels.families.recurrent.parts import (
    RELU,
    Inputs,
    apply,
    bind,
    floats_unclaimed,
    function_of,
    optional_matrix,
)
from tflq.engine.kernels.families.recurrent.rnn import check_state, is_asymmetric
from tflq.engine.kernels.kernel import (
    Call,
    Form,
    Kernel,
    Node,
    Prepared,
    close,
    in_turn,
    of_types,
    undefined,
    updating,
    valid,
)
from tflq.engine.kernels.validity import cmsis_nn, micro, spec, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.dynamic_range import NO_INTEGERS, ByteMatrix, Integers, add_quantized, are_finite
from tflq.engine.numerics.products import add_products, dot_rows, holds_zeros, sum_groups
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@in_pieces(lambda x, *rest: x.size * rest[5].shape[0] + rest[9].size, x="n", state="n", out="n")
@compiled
def step_floats(
    x: Array,
    is_fed: bool,
    is_float: bool,
    floats: Array,
    codes: Any,
    asymmetric: bool,
    time: Array,
    bias: Array,
    rank: Int,
    activation: Int,
    state: Array,
    out: Array,
    undefined: Array,
) -> None:
    """Fill `out` (N, U) and move `state` (N, F, M) on, by `x` (N, I). Sums: four lanes; ranks too; bias last.

    Features are `floats` (I, F) or what add_quantized takes, and count only if `is_fed`. `time` is (F, M), `bias` (U)
    or empty. `undefined` becomes 1 where a row cannot be quantized.

    Prepare guarantees: these shapes, and that F is U times `rank`.
    """
    filters, memory = time.shape
    latest, filtered = np.empty((1, filters), np.float32), np.empty(filters, np.float32)
    total = np.empty(out.shape[1], np.float32)
    for n in range(x.shape[0]):
        latest[0, :] = np.float32(0)
        row = x[n : n + 1]
        if is_fed and is_float:
            add_products(floats, row, latest)
        elif is_fed:
            if not are_finite(row):
                undefined[0] = 1
                return
            add_quantized(row, asymmetric, codes[0], codes[1], codes[2], codes[3], latest)
        for f in range(filters):
            for m in range(memory - 1):
                state[n, f, m] = state[n, f, m + 1]
            state[n, f, memory - 1] = latest[0, f]
        dot_rows(time, state[n], filtered)
        sum_groups(filtered, rank, total)
        for u in range(total.size):
            out[n, u] = apply(activation, total[u] + bias[u] if bias.size > 0 else total[u])


@in_pieces(lambda x, zero, features, out: x.size * features.shape[0], x="n", out="n")
@compiled
def sum_features(x: Array, zero: Int, features: Array, out: Array) -> None:
    """Compute out[n, f] = sum over i of (x[n, i] - zero) * features[f, i], which wraps int32.

    Prepare guarantees: `x` is (N, I), `features` (F, I), `out` (N, F).
    """
    for n in range(x.shape[0]):
        for f in range(features.shape[0]):
            total = np.int64(0)
            for i in range(x.shape[1]):
                total += np.int32(np.int32(x[n, i]) - zero) * np.int32(features[f, i])
            out[n, f] = np.int32(total)


@in_pieces(lambda latest, zero, offset, time, bias, rank, state, out: state.size, latest="n", state="n", out="n")
@compiled
def sum_moments(
    latest: Array, zero: Int, offset: Int, time: Array, bias: Array, rank: Int, state: Array, out: Array
) -> None:
    """Move `state` (N, F, M) on to `latest` (N, F) plus `offset`, which wraps; fill `out` (N, U), which wraps int32.

    `zero` is the state's zero point.
    Prepare guarantees: `time` is (F, M), `bias` (U) or empty, and F is U times `rank`.
    """
    memory = time.shape[1]
    for n in range(latest.shape[0]):
        for u in range(out.shape[1]):
            total = np.int64(0) if bias.size == 0 else np.int64(bias[u])
            for f in range(u * rank, (u + 1) * rank):
                for m in range(memory - 1):
                    state[n, f, m] = state[n, f, m + 1]
                state[n, f, memory - 1] = latest[n, f] + offset
                for m in range(memory):
                    total += (np.int64(state[n, f, m]) - zero) * np.int64(time[f, m])
            out[n, u] = np.int32(total)


X, FEATURES, TIME, BIAS, STATE = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the forms with a float state."""

    weights: Callable[[Inputs], tuple[bool, Array, Integers, Array]]  # whether features are float, features as
    # step_floats takes them, time (F, M) as float32
    rank: int
    activation: int
    asymmetric: bool


@dataclass(frozen=True, slots=True, eq=False)
class IntegerData:
    """Constants of the 8-bit form."""

    features: Array  # (F, I) int8
    to_state: OutputPipeline  # -> LSB of state
    to_output: OutputPipeline  # LSB of state times time weights -> LSB of output
    rank: int
    input_zero_point: ZeroPoint  # LSB of input
    state_zero_point: ZeroPoint  # LSB of state
    state_offset: int  # LSB of state, added after saturation


def _shape(node: Node) -> tuple[int, int, int]:
    """Return batches, filters and rank, all shapes checked."""
    x, features, time = (node.input(p) for p in (X, FEATURES, TIME))
    node.check(len(node.inputs) == 5, "number of inputs", expected=5, got=len(node.inputs))
    for operand in (x, features, time):
        require_rank(node, operand, 2)
    rank, (filters, depth) = int(node.options.get("rank", 0)), features.shape
    node.check(rank > 0 and filters % rank == 0, "rank", features, expected="a divisor of the filters", got=rank)
    node.check(x.shape[1] == depth, "depth", features, expected=x.shape[1], got=depth)
    node.check(time.shape[0] == filters, "filters", time, expected=filters, got=time.shape[0])
    bias = node.optional(BIAS)
    if bias is not None:
        node.check(bias.shape == (filters // rank,), "shape", bias, expected=[filters // rank], got=list(bias.shape))
    check_state(node, node.input(STATE), (x.shape[0], filters * time.shape[1]))
    return x.shape[0], filters, rank


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Convert 8-bit time weights to float32: code times scale."""
    batches, filters, rank = _shape(node)
    time = node.input(TIME)

    def build(inputs: Inputs) -> tuple[bool, Array, Integers, Array]:
        features, moments = optional_matrix(node, FEATURES, inputs), inputs[TIME]
        assert features is not None
        assert moments is not None
        if moments.dtype != np.float32:
            moments = moments.view(np.int8).astype(np.float32) * time.scale
        moments = np.array(moments)
        if isinstance(features, ByteMatrix):
            return False, np.zeros((0, 0), np.float32), features.integers(), moments
        return True, np.array(features), NO_INTEGERS, moments

    data = FloatData(bind(node, (FEATURES, TIME), build), rank, function_of(node), is_asymmetric(node))
    return Prepared(((batches, filters // rank),), data, eval_float, updates=(STATE,))


def _form(data: FloatData | IntegerData, *inputs: Array | None) -> list[Form]:
    x, time = inputs[X], inputs[TIME]
    assert x is not None
    assert time is not None
    return [((len(x), len(time) // data.rank), np.dtype(np.float32 if isinstance(data, FloatData) else np.int8))]


@updating(_form, STATE)
def eval_float(data: FloatData, outs: Sequence[Array], *inputs: Array | None) -> Call:
    """Source: EvalFloatSVDF, EvalHybridSVDF."""
    x, bias, state = inputs[X], inputs[BIAS], inputs[STATE]
    assert x is not None
    assert state is not None
    added, undefined = np.zeros(0, np.float32) if bias is None else bias, np.zeros(1, np.int8)
    whole = x.reshape(1, -1)

    def call() -> None:
        is_float, floats, codes, time = data.weights(inputs)
        rest = data.asymmetric, time, added, data.rank, data.activation, state.reshape(len(x), *time.shape)
        step_floats(x, not holds_zeros(whole), is_float, floats, codes, *rest, outs[0], undefined)
        if undefined[0]:
            raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")

    return call


def prepare_integer(
    node: Node,
    arithmetic: Arithmetic,
    state_type: DTypeLike = np.int16,
    state_zero_point: int = 0,
    real: type[np.floating[Any]] = np.float32,
    state_offset: int = 0,
) -> Prepared:
    """Compute multipliers in the type `real`, left to right. 16-bit states are taken to have zero point 0.

    The state saturates to the range of `state_type`; `state_offset` is the part of its zero point that is added after
    that, and wraps. The fused activation is ignored.
    """
    batches, filters, rank = _shape(node)
    x, features, time, state = (node.input(p) for p in (X, FEATURES, TIME, STATE))
    y = node.outputs[0]
    for operand in (x, features, time, state, y):
        node.check(operand.is_quantized, "is not quantized", operand)
    x, features, time, state, y = (first_scale(operand) for operand in (x, features, time, state, y))
    data = IntegerData(
        features=np.ascontiguousarray(node.constant(FEATURES)),
        to_state=_pipeline(
            arithmetic,
            real(x.scale) * real(features.scale) / real(state.scale),
            state_type,
            state_zero_point - state_offset,
        ),
        to_output=_pipeline(arithmetic, real(state.scale) * real(time.scale) / real(y.scale), np.int8, y.zero_point),
        rank=rank,
        input_zero_point=x.zero_point,
        state_zero_point=ZeroPoint(state_zero_point),
        state_offset=state_offset,
    )
    return Prepared(((batches, filters // rank),), data, eval_integer, updates=(STATE,))


def prepare_rectified(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with RELU, which LiteRT requires and then ignores."""
    node.check(function_of(node) == RELU, "fused activation function", expected="RELU", got=function_of(node))
    return prepare_integer(node, arithmetic)


def _pipeline(arithmetic: Arithmetic, real: np.floating[Any], dtype: Any, zero_point: int) -> OutputPipeline:
    stage = arithmetic.requantize(np.float64(real))
    return OutputPipeline(stage, ZeroPoint(zero_point), type_range(dtype), np.dtype(dtype))


@updating(_form, STATE)
def eval_integer(data: IntegerData, outs: Sequence[Array], *inputs: Array | None) -> Call:
    """Source: EvalIntegerSVDF. Overflow: sums wrap int32, values beyond the state's type wrap."""
    x, time, bias, state = inputs[X], inputs[TIME], inputs[BIAS], inputs[STATE]
    assert x is not None
    assert time is not None
    assert state is not None
    sums, totals = np.empty((len(x), len(time)), np.int32), np.empty(outs[0].shape, np.int32)
    latest, zero = np.empty(sums.shape, data.to_state.dtype), int(data.state_zero_point)
    added = np.zeros(0, np.int32) if bias is None else bias
    if not sums.size:
        return partial(np.copyto, outs[0], data.to_output(np.zeros_like(totals) + added))
    moments = state.reshape(len(x), *time.shape)
    return in_turn(
        [
            sum_features.bound(x, int(data.input_zero_point), data.features, sums),
            data.to_state.into(sums, latest),
            sum_moments.bound(latest, zero, data.state_offset, time, added, data.rank, moments, totals),
            data.to_output.into(totals, outs[0]),
        ]
    )


#: The source accepts such a state, and reads and writes twice its size.
INT8_STATE = undefined("an int8 state, read as int16")
ROWS = (
    Kernel("SVDF", "float32 float32 float32 float32? float32 -> float32", prepare_float, (1, 4)),
    Kernel("SVDF", "float32 int8|uint8 int8|uint8 float32? float32 -> float32", prepare_float, (1, 4)),
    Kernel("SVDF", "int8 int8 int16 int32? int16 -> int8", prepare_rectified, (1, 4)),
    Kernel("SVDF", "int8 int8 int8|int16 int32? int8 -> int8", INT8_STATE, (1, 4)),
)

_REFERENCE = (*ROWS, *valid(tflite(until="tflite-2.14"), *floats_unclaimed(ROWS)))


def prepare_int8_state(
    node: Node, arithmetic: Arithmetic, real: type[np.floating[Any]] = np.float64, is_right: bool = False
) -> Prepared:
    """Prepare SVDF with an int8 state, which has a zero point; the int16 state has none.

    If `is_right`, the state saturates with its zero point, not before it is added.
    """
    check_bias(node)
    zero = node.input(STATE).zero_point
    return prepare_integer(node, arithmetic, np.int8, zero, real, 0 if is_right else zero)


def prepare_cmsis_int8_state(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare SVDF with an int8 state as CMSIS-NN: it saturates to 16 bits, then wraps; its zero point is ignored.

    Source: tflite-micro cmsis_nn/svdf.cc EvalIntegerSVDF, which gives bounds of int16; CMSIS-NN arm_svdf_s8.c.
    """
    check_bias(node)
    return prepare_integer(node, arithmetic, np.int16, real=np.float64)


def prepare_int16_state(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare SVDF with an int16 state: multipliers in float64."""
    check_bias(node)
    return prepare_integer(node, arithmetic, real=np.float64)


def check_bias(node: Node) -> None:
    """Refuse a bias of another scale. Without one, the source reads the scale of no tensor.

    Source: svdf_common.cc PrepareSvdf; product in float32, difference in float64.
    """
    bias, time, state = node.optional(BIAS), node.input(TIME), node.input(STATE)
    if bias is None:
        raise UndefinedResultError(node.op, "Prepare reads the scale of a bias that is not there")
    product = float(np.float32(state.scale) * np.float32(time.scale))
    if not abs(float(bias.scale) - product) < 1e-5:
        node.reject("scale of the bias", bias, expected=f"{product:.9g} within 1e-5", got=float(bias.scale))


#: Sums of floats.
_FLOATS = close("sums in the order of loops, which is not reproduced")

_MICRO = (
    *valid(
        micro(),
        replace(of_types(ROWS, "float32 float32 float32 float32? float32 -> float32"), exactness=_FLOATS),
        Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_int8_state, (1, 4)),
        Kernel("SVDF", "int8 int8 int16 int32? int16 -> int8", prepare_int16_state, (1, 4)),
    ),
    *valid(cmsis_nn(), Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_cmsis_int8_state, (1, 4))),
    *valid(
        spec(),
        Kernel(
            "SVDF",
            "int8 int8 int8 int32? int8 -> int8",
            partial(prepare_int8_state, real=np.float32, is_right=True),
            (1, 4),
        ),
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO)
