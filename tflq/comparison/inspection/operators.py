"""The contents of a model, and the constants with which a profile prepares its operators. Nothing is run.

Bytes of activations that a model holds at every step: a lower bound for a runtime's arena.

The range of an accumulator: bounds from an operator's weights and the range of its input, and its width.

A bound holds for every order of summation: positive and negative contributions are added separately, the bias among
them. It is reached if each tap takes the code that contributes most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tflq.comparison.inspection.prepared import Constants, constants_of
from tflq.engine.api.files import ModelFacts, Source, Subject, subject
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.families.contraction import code_span, weights_read_as_int8
from tflq.engine.kernels.kernel import Exactness, Operand
from tflq.engine.kernels.validity import REF
from tflq.engine.kernels.work import multiply_accumulates
from tflq.engine.numerics.products import Range
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.errors import TflqError
from tflq.model.ir import (
    CARRIER,
    GraphView,
    Model,
    OperatorView,
    Root,
    Signed,
    TensorSpec,
    TensorType,
    rooted,
    signed,
    view,
    with_graph,
)
from tflq.model.ir.model import in_words, stored_bytes
from tflq.model.ir.signatures import call, original_index, reach
from tflq.model.surgery.tap import single_operator
from tflq.texts import Tabular, display_by
from tflq.typing import Array

#: Operators that run one of several subgraphs.
_BRANCHES = frozenset({"IF", "STABLEHLO_CASE"})


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor. `scale` and `zero_point` have one entry per tensor or per channel, none if it is not quantized."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    signature: tuple[int, ...] | None
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    quantized_dimension: int
    kind: str  # input, output, constant, variable or activation
    bytes: int  # size of the constant, 0 for other tensors


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator. `constants` is None if it is bound at run time, or for the `reason` given.

    `options` are those of the file, in words if the schema has any: ("padding", "SAME").
    """

    index: int
    op: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]
    macs: int
    constants: Constants | None
    promise: Exactness | None  # of its results; None if it is refused
    reason: str = ""


@display_by("inspect:inspect_report", "inspect_document", "operators")
@dataclass(frozen=True, slots=True)
class Inspection(Tabular):
    """A signature's subgraph under a profile, or one that operators run.

    `signatures` holds the inspections of all signatures if the model has several, this one among them. `inner` holds
    the subgraphs that its operators run; their `callers` are these operators, by index and name. Multiply-accumulates
    of an operator include those of the subgraphs that it runs, each run once.
    """

    model: ModelFacts
    profile: str
    description: str
    subgraphs: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensors: tuple[TensorFacts, ...]
    operators: tuple[OperatorFacts, ...]
    name: str = ""
    subgraph: int = 0
    signatures: tuple[Inspection, ...] = ()
    inner: tuple[Inspection, ...] = ()
    callers: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Inspection, ...]:
        """The inspections of all signatures."""
        return self.signatures or (self,)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(operator.macs for operator in self.operators)

    @property
    def unsupported(self) -> tuple[OperatorFacts, ...]:
        """Operators that the profile refuses."""
        return tuple(operator for operator in self.operators if operator.reason)


def inspect(model: Source | Model, profile: str | Profile = "litert-ref", signature: str | None = None) -> Inspection:
    """Read the model and prepare each operator by itself, so that a refused one does not hide the others.

    Args:
        model: A path, the bytes of a file, or a Model. Nothing is run.
        profile: The arithmetic of the constants: a name or a Profile.
        signature: The only signature to inspect. None: all; the result is the first, whose `signatures` holds all.

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no profile of that name.

    Example:
        >>> found = tflq.inspect("golden/models/digits_mobilenet_int8.tflite")
        >>> found.operators[4].op, f"{found.macs:,}"
        ('CONV_2D', '1,292,544')
        >>> found.operators[4].constants.stages[0].shift[:3]
        (-9, -9, -9)
    """
    chosen = profile_by_name(profile)
    target = subject(model)
    found = tuple(_with_inner(target, part, chosen) for part in signed(target.model, signature))
    return replace(found[0], signatures=found) if len(found) > 1 else found[0]


def _with_inner(target: Subject, part: Signed, profile: Profile) -> Inspection:
    """Inspect a signature, and the subgraphs that its operators run."""
    callers: dict[int, list[str]] = {}
    for op in view(part.model).ops:
        for index in sorted(reach(part.model, set(call(op.record)))):
            callers.setdefault(index, []).append(f"{op.index} {op.name}")
    inner = []
    for index, names in callers.items():
        inside = rooted(part.model, Root(None, index))
        place = original_index(part.root, index)
        inner.append(_inspection(target, inside, profile, place, view(inside).record.name or "", callers=tuple(names)))
    return _inspection(target, part.model, profile, part.root.subgraph, part.name, inner=tuple(inner))


def _inspection(
    target: Subject,
    model: Model,
    profile: Profile,
    subgraph: int,
    name: str,
    inner: tuple[Inspection, ...] = (),
    callers: tuple[str, ...] = (),
) -> Inspection:
    """Inspect the first subgraph of a model."""
    graph = view(model)
    return Inspection(
        model=target.facts,
        profile=profile.name,
        description=target.model.description or "",
        subgraphs=len(target.model.subgraphs),
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=tuple(_tensor(graph, i, spec) for i, spec in enumerate(graph.tensors)),
        operators=tuple(_operator(op, profile, is_inner=bool(callers)) for op in graph.ops),
        name=name,
        subgraph=subgraph,
        inner=inner,
        callers=callers,
    )


def _tensor(graph: GraphView, index: int, spec: TensorSpec) -> TensorFacts:
    q = spec.quantization
    data = graph.data(index)
    size = 0 if data is None else data.nbytes
    kinds = (
        (spec.is_variable, "variable"),
        (index in graph.inputs, "input"),
        (size > 0, "constant"),
        (index in graph.outputs, "output"),
    )
    return TensorFacts(
        index=index,
        name=spec.name or "",
        type=spec.type.label if isinstance(spec.type, TensorType) else str(spec.type),
        shape=spec.shape,
        signature=spec.shape_signature,
        scale=tuple(q.scale.tolist()) if q else (),
        zero_point=tuple(q.zero_point.tolist()) if q else (),
        quantized_dimension=q.quantized_dimension if q else 0,
        kind=next((kind for holds, kind in kinds if holds), "activation"),
        bytes=size,
    )


def _operator(op: OperatorView, profile: Profile, *, is_inner: bool) -> OperatorFacts:
    constants, promise, reason = None, None, ""
    if not (is_inner and any(True for _ in call(op.record))):  # what runs others is bound by the outermost operator
        constants, promise, reason = _prepare(op.graph.model, op.index, profile)
    return OperatorFacts(
        index=op.index,
        op=op.name,
        version=op.version,
        inputs=op.inputs,
        outputs=op.outputs,
        options=_options(op),
        macs=macs_with_calls(op),
        constants=constants,
        promise=promise,
        reason=reason,
    )


def prepare_alone(model: Model, index: int, profile: Profile, beside: Collection[Profile] = ()) -> Step:
    """Return one operator as the profile prepares it, in the form to be compared with that of those `beside` it.

    Reference kernels do not depend on whether weights are constant. Where all profiles have them, they get no weights,
    which saves packing.
    """
    return planned(forms_alone(model, index, (profile, *beside)), profile)


def planned(forms: Sequence[Model], profile: Profile) -> Step:
    """Return the operator of the first form that the profile takes."""
    *others, whole = forms
    for form in others:
        try:
            return make_plan(form, profile).steps[0]
        except TflqError:
            continue
    return make_plan(whole, profile).steps[0]


def forms_alone(model: Model, index: int, profiles: Collection[Profile]) -> tuple[Model, ...]:
    """Return one operator as models of its own, of which the first that a profile takes is prepared.

    The last one has the operator's weights.
    """
    alone, _ = single_operator(model, index)
    has_packed = any(one.runtime.resolver != REF for one in profiles)
    return (alone,) if has_packed else (_without_weights(alone), alone)


def _prepare(model: Model, index: int, profile: Profile) -> tuple[Constants | None, Exactness | None, str]:
    """Return constants, promise, and the reason if there are none."""
    try:
        step = prepare_alone(model, index, profile)
    except TflqError as error:
        return None, None, error.statement
    return None if step.prepared is None else constants_of(step.prepared), step.promise, ""


#: Types of constants that may be a shape, an axis or paddings, which determine shapes.
_SHAPE_TYPES = frozenset({TensorType.INT32, TensorType.INT64, TensorType.BOOL})


def _without_weights(alone: Model) -> Model:
    """Return the operator with its constants of other types as graph inputs, which prevents packing."""
    graph = view(alone)
    withheld = {
        index
        for index, spec in enumerate(graph.tensors)
        if spec.type not in _SHAPE_TYPES
        and not spec.is_variable
        and (data := graph.data(index)) is not None
        and data.nbytes
    }
    tensors = tuple(replace(spec, buffer=0) if i in withheld else spec for i, spec in enumerate(graph.tensors))
    inputs = (*graph.inputs, *sorted(withheld - set(graph.inputs)))
    return with_graph(alone, replace(graph.record, tensors=tensors, inputs=inputs))


def _options(op: OperatorView) -> tuple[tuple[str, Any], ...]:
    record = op.options
    if record is None:
        return ()
    plain = ((name, value) for name, value in record.fields.items() if isinstance(value, (bool, int, float, str)))
    return tuple((name, in_words(record.table, name, value)) for name, value in plain)


def macs_with_calls(op: OperatorView) -> int:
    """Return an operator's multiply-accumulates with those of the subgraphs that it runs, each counted once.

    Of the branches of IF and STABLEHLO_CASE only the one with the most counts.
    """
    return macs_of(op) + _macs_of_calls(op, {})


def _macs_of_calls(op: OperatorView, known: dict[int, int]) -> int:
    """Return the multiply-accumulates of the subgraphs that an operator runs; `known` are those of some subgraphs."""
    inside, model = [], op.graph.model
    for index in call(op.record):
        if index not in known and 0 <= index < len(model.subgraphs):
            known[index] = 0  # a subgraph that runs itself counts once
            known[index] = sum(macs_of(one) + _macs_of_calls(one, known) for one in view(model, index).ops)
        inside.append(known.get(index, 0))
    return max(inside, default=0) if op.builtin in _BRANCHES else sum(inside)


def macs_of(op: OperatorView) -> int:
    """Return an operator's multiply-accumulates, from the shapes in the file; 0 if it has none."""
    sizes = Sizes(
        inputs=tuple(None if spec is None else spec.shape for spec in op.input_specs),
        outputs=tuple(() if spec is None else spec.shape for spec in op.output_specs),
        options={} if op.options is None else op.options.fields,
    )
    return multiply_accumulates(op.name, sizes)


def live_bytes(model: Model) -> tuple[int, ...]:
    """Return the bytes held while each operator of the first subgraph runs.

    These are its operands, and tensors that later operators still read. Shapes are those of the file, an open dimension
    counts as 1. Constants do not count; graph inputs are held until their last reader, graph outputs to the end.
    """
    graph = view(model)
    last = {tensor: len(graph.ops) - 1 for tensor in graph.outputs}
    first = dict.fromkeys(graph.inputs, 0)
    for op in graph.ops:
        for tensor in op.outputs:
            first.setdefault(tensor, op.index)
            last.setdefault(tensor, op.index)
        for tensor in op.inputs:
            if tensor in first and tensor not in graph.outputs:
                last[tensor] = op.index
    change = [0] * (len(graph.ops) + 1)
    for tensor, start in first.items():
        if tensor in last:
            change[start] += _size(graph, tensor)
            change[last[tensor] + 1] -= _size(graph, tensor)
    live, steps = 0, []
    for step in change[:-1]:
        live += step
        steps.append(live)
    return tuple(steps)


def _size(graph: GraphView, tensor: int) -> int:
    if not 0 <= tensor < len(graph.tensors):
        return 0
    spec = graph.tensors[tensor]
    return stored_bytes(spec.type, (max(extent, 1) for extent in spec.shape))


#: Lowest and highest sum by output channel, int64.
Extremes = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class SumBound:
    """The bounds of one operator's accumulator: lowest and highest value, and the channel."""

    index: int
    op: str
    low: int
    high: int
    channel: int  # the output channel with the largest magnitude
    signature: str = ""  # the signature that runs it, if the model has several

    @property
    def bits(self) -> int:
        """The narrowest two's complement word that holds both."""
        return max((~self.low if self.low < 0 else self.low).bit_length(), self.high.bit_length()) + 1


def overflow_bounds(model: Model, profile: Profile, signature: str | None = None) -> tuple[SumBound, ...]:
    """Return the bounds of all operators of all signatures, or one, that accumulate codes with constant weights."""
    parts = signed(model, signature)
    return tuple(replace(bound, signature=part.name) for part in parts for bound in _bounds(part.model, profile))


def _bounds(model: Model, profile: Profile) -> Iterator[SumBound]:
    for index in range(len(view(model).ops)):
        alone, _ = single_operator(model, index)
        try:
            step = make_plan(alone, profile).steps[0]
        except TflqError:
            continue
        extremes = _EXTREMES[step.op](step) if step.op in _EXTREMES and _reads_codes(step) else None
        if extremes is not None and extremes[0].size:
            low, high = extremes
            channel = int(np.argmax(np.maximum(high, ~low)))
            yield SumBound(index, step.op, int(low.min()), int(high.max()), channel)


def _reads_codes(step: Step) -> bool:
    """Return whether its results, and its first operands, are quantized integers."""
    data = next((o for o in step.node.inputs if o is not None and o.is_quantized), None)
    return data is not None and all(CARRIER[o.type].kind in "iu" for o in (data, *step.node.outputs))


def _weight(step: Step, x: int, w: int, bias: int, taps: Callable[[Array], Iterator[Array]]) -> Extremes | None:
    """Return the bounds; `taps` gives matrices (channels, taps) of weights: the sets of taps of one accumulator."""
    data, weights = step.node.input(x), step.node.input(w)
    if weights.value is None:
        return None
    is_short = data.type == TensorType.INT16 and step.op in ("CONV_2D", "DEPTHWISE_CONV_2D")
    codes = weights_read_as_int8(weights.value) if is_short else weights.value
    has_zero = data.type == TensorType.UINT8 or step.op == "FULLY_CONNECTED"
    centred = codes.astype(np.int32) - np.int32(weights.zero_point if has_zero else 0)
    sets = [_of_taps(part, code_span(data)) for part in taps(centred)]
    low, high = np.min([s[0] for s in sets], axis=0), np.max([s[1] for s in sets], axis=0)
    operand = step.node.optional(bias)
    added = np.int64(0) if operand is None or operand.value is None else operand.value.reshape(-1).astype(np.int64)
    return low + np.minimum(added, 0), high + np.maximum(added, 0)


def _of_taps(weights: Array, span: Range) -> Extremes:
    """Return sums over taps of the least and the most that each can add, for any order."""
    above, below = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    lowest, highest = min(span[0], 0), max(span[1], 0)
    return above * lowest + below * highest, above * highest + below * lowest


def _convolve(step: Step) -> Extremes | None:
    return _weight(step, 0, 1, 2, lambda w: iter([w.reshape(w.shape[0], -1)]))


def _by_channel(step: Step) -> Extremes | None:
    return _weight(step, 0, 1, 2, lambda w: iter([w.reshape(-1, w.shape[-1]).T]))


def _spread_out(step: Step) -> Extremes | None:
    """Return the bounds: only taps a whole number of strides apart meet in one output pixel."""
    down, across = int(step.node.options["stride_h"]), int(step.node.options["stride_w"])

    def meeting(w: Array) -> Iterator[Array]:
        for y in range(min(down, w.shape[1])):
            for x in range(min(across, w.shape[2])):
                yield w[:, y::down, x::across].reshape(w.shape[0], -1)

    return _weight(step, 2, 1, 3, meeting)


def _matrix_product(step: Step) -> Extremes:
    """Return the bounds; both operands may hold any values."""
    x, y = step.node.input(0), step.node.input(1)
    length = x.shape[-2 if step.node.options["adj_x"] else -1]
    products = [a * b for a in code_span(x) for b in code_span(y)]
    return np.array([length * min(products)], np.int64), np.array([length * max(products)], np.int64)


def _product(step: Step) -> Extremes:
    products = [a * b for a in code_span(step.node.input(0)) for b in code_span(step.node.input(1))]
    return np.array([min(products)], np.int64), np.array([max(products)], np.int64)


def _reduce(step: Step) -> Extremes:
    """Return the bounds of the raw sum, and of the sum with the zero points subtracted."""
    x = step.node.input(0)
    return _times(x, prod(x.shape) // max(1, prod(step.node.outputs[0].shape)))


def _average(step: Step) -> Extremes:
    x, options = step.node.input(0), step.node.options
    taps = min(int(options["filter_height"]), x.shape[1]) * min(int(options["filter_width"]), x.shape[2])
    low, high = type_range(CARRIER[x.type])
    return np.array([min(0, taps * low)], np.int64), np.array([taps * high], np.int64)


def _times(x: Operand, count: int) -> Extremes:
    ends = (0, *type_range(CARRIER[x.type]), *code_span(x))
    return np.array([count * min(ends)], np.int64), np.array([count * max(ends)], np.int64)


_EXTREMES: Mapping[str, Callable[[Step], Extremes | None]] = {
    "AVERAGE_POOL_2D": _average,
    "BATCH_MATMUL": _matrix_product,
    "CONV_2D": _convolve,
    "DEPTHWISE_CONV_2D": _by_channel,
    "FULLY_CONNECTED": _convolve,
    "MEAN": _reduce,
    "MUL": _product,
    "SUM": _reduce,
    "TRANSPOSE_CONV": _spread_out,
}
