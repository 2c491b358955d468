"""Scales with which all runtimes requantize alike: multipliers just below a power of two, accumulators that are odd.

Scales with which sums of activations are the same in every runtime: powers of two apart.

ADD and SUB bring both operands to 20 further bits, add, and round to the output's scale. If scales are powers of two
apart, only that last step rounds. It has nothing to round where no operand is finer than the output. Where
one is, runtimes differ in ties of negative sums alone, which a RELU makes zero.

Source: LiteRT 2.3 add.cc, PrepareGeneral; XNNPACK qs8-vadd; CMSIS-NN arm_elementwise_add_s8. The prover runs the
finished operator on every combination of codes.

Which scale of a product moves so that its multiplier is a power of two: the result's, or that of an operand.

The scale of the result grows if nothing else depends on it. If it belongs to a sum, which needs powers of two of its
own, an operand's scale grows instead: that of a table is free. No scale is moved by two products.

An accumulator `acc` becomes a code by round(acc * real), real = s_x * s_w / s_y. Runtimes round twice, or once, or a
float32 product. If real is just below 2**-k, the 31-bit mantissa of the double form is 2**31 - c with a small c, so its
first rounding gives acc itself while |acc| * c < 2**30: only the shift by k rounds. The forms then differ at most in
ties, acc = 2**(k - 1) modulo 2**k. Even weights and an odd bias make every accumulator odd, which is no tie for k >= 2.
The same holds for a product of two odd numbers, as in MUL.

Nothing here proves that: `tflq prove` does, for the finished model.

Sources of real: LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams (float64) and
GetQuantizedConvolutionMultipler (float32 product, float64 quotient), mul.cc Prepare (float32); XNNPACK
xnn_create_convolution2d_nhwc_qs8_qc8w (float32).

Give every convolution and dense operator a bias: an odd one makes its accumulators odd.

Equalize channels on the grid: each gets the factor with which the least noise of rounding is expected.

On the grid, the codes of a channel's weights span between half and all of their range, as its largest weight lies. The
freedom of equalization moves that weight to just below a grid point: a channel's rows are multiplied by a factor f, and
what reads the channel is divided by it. A greater f means finer activations of that channel, as far as the scale of the
tensor has room for it, and coarser codes where they are read. Noise is modelled as uniform rounding errors of
activations and weights on inputs of a typical magnitude, and is measured where the channel is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.facts.rules import RULES
from tflq.engine.numerics.multiplier import NEAR
from tflq.model.ir import Buffer, Model, TensorSpec, TensorType, view, with_graph
from tflq.quantization.params import Params, Range, extent
from tflq.quantization.ranges.weights import data_params
from tflq.quantization.refine.groups import Factor, ScaledChannels, channel_groups, scaled
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Constraints, Form, Scheme, Slot
from tflq.typing import Array, Floats, Reals

#: Operators of which only the last step rounds if scales are powers of two apart.
SUMS = frozenset({"ADD", "SUB"})
#: Fused activations that are never negative: RELU, RELU6.
_NEVER_NEGATIVE = (1, 3)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum's groups of operands and of the result; `clips` if negative results become zero."""

    operands: tuple[Form, ...]
    result: Form
    clips: bool


def sums(plan: Scheme, inside: Collection[int]) -> tuple[Sum, ...]:
    """Return the sums of activations of a scheme that are operators `inside`, in order."""
    found = []
    for index in sorted(inside):
        op = plan.model.graph.op(index)
        if plan.modes[index] is not None and op.name in SUMS and op.outputs[0] in plan.results:
            operands = [plan.read.get((index, p)) or plan.constants.get((index, p)) for p in (0, 1)]
            known = tuple(form for form in operands if form is not None)
            clips = op.options is not None and op.options.get("fused_activation_function") in _NEVER_NEGATIVE
            found.append(Sum(known, plan.results[op.outputs[0]], clips))
    return tuple(found)


def align(plan: Scheme, of: Sequence[Sum], activations: Mapping[Form, Params]) -> dict[Form, Params]:
    """Return the activations with scales of sums grown to powers of two apart; the least growth is chosen."""
    chosen = dict(activations)
    for joined in kin(of):
        scales = {form: float(activations[form].scale[0]) for form in joined}
        fixed = [form for form in joined if form in plan.fixed]
        bases = {float(activations[form].scale[0]) for form in fixed or joined}
        inside = [one for one in of if one.result in joined]
        best = min((_raise(scales, base, inside) for base in sorted(bases)), key=lambda new: _growth(scales, new))
        for form, scale in best.items():
            if scale > scales[form] and form not in plan.fixed:
                chosen[form] = with_scale(chosen[form], np.float32(scale), is_centred=form in plan.centred)
    return chosen


def kin(of: Sequence[Sum]) -> list[frozenset[Form]]:
    """Return the sets of groups that sums connect."""
    sets: list[frozenset[Form]] = []
    for one in of:
        joined = frozenset({one.result, *one.operands})
        touching = [other for other in sets if other & joined]
        sets = [other for other in sets if not other & joined] + [joined.union(*touching)]
    return sets


def _raise(scales: Mapping[Form, float], base: float, inside: Sequence[Sum]) -> dict[Form, float]:
    """Return the least scales base * 2**n that are not smaller; operands of sums that do not clip are never finer."""
    powers = {form: int(np.ceil(np.log2(scale / base) - NEAR)) for form, scale in scales.items()}
    for one in reversed(inside):
        for form in one.operands if not one.clips else ():
            powers[form] = max(powers[form], powers[one.result])
    return {form: base * 2.0**power for form, power in powers.items()}


def _growth(before: Mapping[Form, float], after: Mapping[Form, float]) -> float:
    return sum((after[form] / scale) ** 2 for form, scale in before.items())


def with_scale(params: Params, scale: np.float32, *, is_centred: bool = False) -> Params:
    """Return parameters of activations with a greater scale: the lowest value keeps the lowest code."""
    low, high = params.limits
    lowest = (low - float(params.zero_point[0])) * float(params.scale[0])
    zero = 0 if is_centred else int(np.clip(np.rint(low - lowest / float(scale)), low, high))
    return replace(params, scale=np.full(1, scale, np.float32), zero_point=np.full(1, zero, np.int64))


@dataclass(frozen=True, slots=True)
class ScaledProduct:
    """A MUL of two activations: the groups of its operands and its result, and the one that moves."""

    operands: tuple[Form, Form]
    result: Form
    moving: Form

    @property
    def other(self) -> Form:
        """The operand that does not move, if one of them does."""
        one, other = self.operands
        return other if self.moving == one else one


def products(plan: Scheme, added: Sequence[Sum], inside: Collection[int]) -> tuple[ScaledProduct, ...]:
    """Return the products among operators `inside`, without those all of whose scales depend on each other."""
    related = kin(added)
    bound = frozenset[Form]().union(*related)
    found, taken = list[ScaledProduct](), set[Form]()
    for index in sorted(inside):
        op = plan.model.graph.op(index)
        one, other = (plan.read.get((index, position)) for position in (0, 1))
        result = plan.results.get(op.outputs[0]) if op.outputs else None
        if plan.modes[index] is None or op.name != "MUL" or one is None or other is None or result is None:
            continue
        groups = (result, one, other)
        free = [g for g in groups if g not in bound | taken | plan.fixed.keys() and groups.count(g) == 1]
        apart = not any({result, operand} <= each for each in related for operand in (one, other))
        if not free and apart and groups.count(result) == 1 and result not in taken | plan.fixed.keys():
            free = [result]
        if free:
            taken.add(free[0])
            found.append(ScaledProduct((one, other), result, free[0]))
    return tuple(found)


#: Weights are multiples of this, at most the greatest int8 code of that kind; biases are odd.
STRIDE, MOST_CODE = 2, 126
#: The least shift: a shift by one makes every odd accumulator a tie. The greatest: XNNPACK takes none beyond.
LEAST_SHIFT, MOST_SHIFT = 2, 31
#: Rounds in which scales of outputs grow until every shift is at least LEAST_SHIFT.
_ROUNDS = 8
#: The factor by which a scale exceeds its bound, so that rounding to float32 leaves it above.
_SLACK = 1 + 2.0**-22

#: Constraints on the scheme of a portable model. Releases up to 2.9 read scales for each channel of dense weights as 0.
CONSTRAINTS = Constraints(joins_rescale=False, own_constants=SUMS, one_scale=frozenset({"FULLY_CONNECTED"}))


def portable_scales(
    plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params], inside: Collection[int]
) -> tuple[dict[Form, Params], dict[Slot, Params]]:
    """Return parameters of activations and weights of operators `inside` with which all runtimes requantize alike.

    Operands and results of sums get scales powers of two apart. Scales of outputs grow where a shift would be too
    small. One scale of every product of activations moves so that the multiplier is a power of two.
    """
    added, chosen = sums(plan, inside), dict(activations)
    multiplied = products(plan, added, inside)
    for _ in range(_ROUNDS):
        grown = align(plan, added, _grown(plan, multiplied, chosen, weights, inside))
        if grown == chosen:
            break
        chosen = grown
    return chosen, {**weights, **_portable_weights(plan, chosen, weights, inside)}


def _grown(
    plan: Scheme,
    multiplied: Sequence[ScaledProduct],
    activations: Mapping[Form, Params],
    weights: Mapping[Slot, Params],
    inside: Collection[int],
) -> dict[Form, Params]:
    """Return the activations with greater scales where one is too small for its operator, in one pass."""
    chosen = dict(activations)

    def grow(group: Form, least: float) -> None:
        scale = np.float32(least)
        if scale > chosen[group].scale[0] and group not in plan.fixed:
            chosen[group] = with_scale(chosen[group], scale, is_centred=group in plan.centred)

    for m in plan.multiplied:
        group = output_group(plan, m.operator)
        if group is not None and m.bias is not None and m.operator in inside:
            reach = _reach(weights[m.operator, m.position]).max(initial=0.0)
            grow(group, float(data_params(plan, m, chosen).scale[0]) * reach * 2.0**LEAST_SHIFT * _SLACK)
    for product in multiplied:
        grow(product.moving, float(_moved_scale(product, chosen)))
    return chosen


def _moved_scale(product: ScaledProduct, activations: Mapping[Form, Params]) -> np.float32:
    """Return the scale that a product's moving group grows to."""
    own, result = activations[product.moving].scale[0], activations[product.result].scale[0]
    other = activations[product.other].scale[0]
    if product.moving == product.result:
        one, second = (activations[operand].scale[0] for operand in product.operands)
        return product_scale(one, second, own)
    shift = grid_shifts(np.array([float(own) * float(other) / float(result) * (1 - NEAR)]))
    return np.float32(weight_scales(other, result, shift)[0])


def output_group(plan: Scheme, operator: int) -> Form | None:
    """Return the group of an operator's only result, if that has 8 bits."""
    outputs = plan.model.graph.op(operator).outputs
    form = plan.results.get(outputs[0]) if len(outputs) == 1 else None
    return form if form is not None and form[1] == TensorType.INT8 else None


def _portable_weights(
    plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params], inside: Collection[int]
) -> dict[Slot, Params]:
    moved = {}
    for m in plan.multiplied:
        slot, group = (m.operator, m.position), output_group(plan, m.operator)
        if group is not None and m.bias is not None and m.operator in inside:
            data, output = data_params(plan, m, activations), activations[group]
            moved[slot] = _on_grid(plan, m, weights[slot], data.scale[0], output.scale[0])
    return moved


def _reach(params: Params) -> Reals:
    """Return the scales that even codes need for the same range."""
    return params.scale.astype(np.float64) * params.limits[1] / MOST_CODE


def _on_grid(plan: Scheme, m: Multiplied, params: Params, data: np.float32, output: np.float32) -> Params:
    """Return weights with portable scales: for each channel the next greater or the next smaller one."""
    values = plan.model.constants[m.tensor]
    ratio = _reach(params) * float(data) / float(output)
    shift = grid_shifts(ratio)
    wide = replace(params, stride=STRIDE, scale=weight_scales(data, output, shift))
    narrow = replace(wide, scale=weight_scales(data, output, np.minimum(shift + 1, MOST_SHIFT)))
    axis = params.axis if params.scale.size > 1 else None
    is_better = _squared_error(narrow, values, axis) < _squared_error(wide, values, axis)
    return replace(wide, scale=np.where(is_better, narrow.scale, wide.scale))


def _squared_error(params: Params, values: Array, axis: int | None) -> Reals:
    """Return the squared error of rounding, by channel."""
    squares = np.square(params.decode(params.encode(values)).astype(np.float64) - values)
    others = None if axis is None else tuple(d for d in range(values.ndim) if d != axis)
    return np.atleast_1d(squares.sum(axis=others))


def grid_shifts(multipliers: Reals) -> NDArray[np.int64]:
    """Return the shifts k of the powers of two 2**-k next above multipliers."""
    with np.errstate(divide="ignore"):
        return np.clip(np.floor(-np.log2(multipliers)), LEAST_SHIFT, MOST_SHIFT).astype(np.int64)


def weight_scales(data: np.float32, output: np.float32, shift: NDArray[np.int64]) -> Floats:
    """Return the greatest scales of weights whose multiplier is below 2**-shift in every runtime, [C] in float32."""
    scale = (np.exp2(-shift.astype(np.float64)) * float(output) / float(data)).astype(np.float32)
    while (over := multipliers(data, scale, output).max(axis=0) >= np.exp2(-shift.astype(np.float64))).any():
        scale = np.where(over, np.nextafter(scale, np.float32(0)), scale)
    return scale


def product_scale(one: np.float32, other: np.float32, least: np.float32) -> np.float32:
    """Return the smallest output scale from `least` up whose multiplier one * other / scale is below a power of two."""
    product = float(one) * float(other)
    shift = max(LEAST_SHIFT, int(np.ceil(-np.log2(product / float(least)) - NEAR)))
    scale = np.float32(product * 2.0**shift)
    while multipliers(one, np.full(1, other, np.float32), scale).max() >= 2.0**-shift:
        scale = np.nextafter(scale, np.float32(np.inf))
    return scale


def multipliers(data: np.float32, weights: Floats, output: np.float32) -> Reals:
    """Return the multipliers that runtimes compute in double precision, [2, C]: of the scales and of their product."""
    exact = float(data) * weights.astype(np.float64) / float(output)
    rounded = (data * weights).astype(np.float32).astype(np.float64) / float(output)
    return np.stack([exact, rounded])


def with_biases(model: Model) -> Model:
    """Return the float model with biases of zeros where operators with weights have none."""
    graph = view(model)
    tensors, buffers, operators = list(graph.tensors), list(model.buffers), list(graph.record.operators)
    for op in graph.ops:
        rule = RULES.get(op.name)
        weights = None if rule is None else rule.weights
        if weights is None or weights.bias is None or weights.axis is None or len(op.inputs) <= weights.weights:
            continue
        inputs = (*op.inputs, *(-1 for _ in range(weights.bias + 1 - len(op.inputs))))
        shape = graph.tensors[inputs[weights.weights]].shape if inputs[weights.weights] >= 0 else ()
        if inputs[weights.bias] >= 0 or len(shape) <= weights.axis:
            continue
        zeros = np.zeros(shape[weights.axis], np.float32)
        buffers.append(Buffer(zeros.view(np.uint8)))
        name = f"{graph.tensors[op.outputs[0]].name or op.name}/bias"
        tensors.append(TensorSpec(name, TensorType.FLOAT32, zeros.shape, len(buffers) - 1))
        filled = list(inputs)
        filled[weights.bias] = len(tensors) - 1
        operators[op.index] = replace(operators[op.index], inputs=tuple(filled))
    record = replace(graph.record, tensors=tuple(tensors), operators=tuple(operators))
    return replace(with_graph(model, record), buffers=tuple(buffers))


#: Factors that are tried; 1 first, so that it wins ties.
FACTORS = np.array(sorted((2.0 ** (k / 8) for k in range(-8, 9)), key=lambda f: abs(np.log2(f))))
#: The largest magnitude of a channel over its typical one.
PEAK = 3.0
#: A magnitude in place of 0.
_TINY = 1e-30


def equalize_on_grid(
    plan: Scheme, activations: Mapping[Form, Params], inside: Collection[int], extents: Mapping[int, Range]
) -> FloatModel:
    """Return the scheme's float model with channels of operators `inside` moved on the grid of these parameters.

    `extents` are the least and greatest value of each channel of activations, by tensor.
    """
    channels = _Channels(plan, activations, inside, extents)
    for group in channel_groups(plan.model):
        channels.move(group)
    return channels.model


class _Channels:
    """A float model while its groups of channels are moved, one after another."""

    def __init__(
        self, plan: Scheme, activations: Mapping[Form, Params], inside: Collection[int], extents: Mapping[int, Range]
    ) -> None:
        self.model = plan.model
        self._plan, self._activations, self._extents = plan, activations, dict(extents)
        products = [m for m in plan.multiplied if m.operator in inside]
        self._products = {m.tensor: m for m in products if output_group(plan, m.operator) is not None}

    def move(self, group: ScaledChannels) -> None:
        """Multiply each channel of a group by the factor with the least noise."""
        tensors = [t for t in group.tensors if t in self._extents and t in self._plan.results]
        if not tensors or not any(f.constant in self._products for f in group.factors):
            return
        noise, least = self._noise(group, tensors)
        most = np.min([self._room(t) for t in tensors], axis=0)
        tried = FACTORS[:, None]
        noise[(tried > np.maximum(most, 1)) | (tried < np.minimum(least, 1))] = np.inf
        factors = FACTORS[np.argmin(noise, axis=0)]
        self.model = scaled(self.model, [(group, 1 / factors)])
        for t in tensors:
            self._extents[t] = Range(self._extents[t].low * factors, self._extents[t].high * factors)

    def _noise(self, group: ScaledChannels, tensors: Sequence[int]) -> tuple[Reals, Reals]:
        """Return the noise of each factor and channel, [F, C], and the factor that no channel may go below, [C]."""
        typical = np.max([self._typical(t) for t in tensors], axis=0)
        noise, least, gain = np.zeros((FACTORS.size, group.size)), np.zeros(group.size), np.zeros(group.size)
        readers = [f for f in group.factors if f.sign > 0 and f.constant in self._products]
        for factor in readers:
            m, values = self._products[factor.constant], self._values(factor)
            gain += np.bincount(factor.channels, np.square(values).sum(axis=(0, 1)), group.size)
            if factor.reads:  # the steps of rows stay: no column may become a row's greatest
                steps = np.square(self._steps(m, np.ones((1, 1)))).sum()
                rows = np.abs(values).max(axis=1)
                least = np.maximum(least, (rows / np.maximum(rows.max(axis=1, keepdims=True), _TINY)).max(axis=0))
            else:
                every = self._steps(m, 1 / FACTORS[:, None])
                steps = np.stack([np.bincount(factor.channels, np.square(row), group.size) for row in every])
            noise += np.square(FACTORS)[:, None] * typical * values.shape[1] * steps
        for factor in (f for f in group.factors if f.sign < 0 and f.constant in self._products):
            m = self._products[factor.constant]
            output = output_group(self._plan, m.operator)
            assert output is not None
            own = np.square(self._steps(m, FACTORS[:, None])) * self._power(m) + self._scale(output) ** 2
            noise += gain * own / np.square(FACTORS)[:, None]
        return noise, least

    def _values(self, factor: Factor) -> Reals:
        """Return weights as [rows, taps, channels]; those of a depthwise convolution have one row."""
        moved = np.moveaxis(self.model.constants[factor.constant].astype(np.float64), factor.axis, -1)
        rows = moved.shape[0] if factor.reads else 1
        return moved.reshape(rows, -1, moved.shape[-1])

    def _scale(self, group: Form) -> float:
        return float(self._activations[group].scale[0])

    def _steps(self, m: Multiplied, factors: Reals) -> Reals:
        """Return the steps of each row's even codes, [F, C], if the rows are multiplied by factors [F, 1]."""
        output = output_group(self._plan, m.operator)
        assert output is not None
        ratio = float(data_params(self._plan, m, self._activations).scale[0]) / self._scale(output)
        weights = extent(self.model.constants[m.tensor], m.axis)
        reach = np.maximum(np.maximum(-weights.low, weights.high), _TINY) / MOST_CODE
        return STRIDE * np.exp2(-grid_shifts(reach * factors * ratio).astype(np.float64)) / ratio

    def _typical(self, tensor: int) -> Reals:
        """Return the mean square of each channel, as its extent suggests."""
        span = self._extents[tensor]
        return np.square(np.maximum(-span.low, span.high) / PEAK)

    def _power(self, m: Multiplied) -> Reals:
        """Return the sum of squares of the inputs of each row; one number if rows read the same."""
        values = self.model.constants[m.tensor]
        typical = self._typical(m.data) if m.data in self._extents else np.ones(1)
        if self.model.graph.op(m.operator).name == "DEPTHWISE_CONV_2D":
            per_channel = np.broadcast_to(typical, values.shape[3]) if typical.size == 1 else typical
            window = values.shape[1] * values.shape[2]
            return np.repeat(window * per_channel, values.shape[3] // per_channel.size)
        return np.full(1, values[0].size * typical.mean())

    def _room(self, tensor: int) -> Reals:
        """Return by how much each channel may grow before it leaves the range of its tensor."""
        params, span = self._activations[self._plan.results[tensor]], self._extents[tensor]
        low, high = (float(params.scale[0]) * (limit - int(params.zero_point[0])) for limit in params.limits)
        return np.minimum(high / np.maximum(span.high, _TINY), low / np.minimum(span.low, -_TINY))
