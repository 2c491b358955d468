"""The fidelity of a model's outputs and inner tensors to those of the model it was built from.

The inputs and outputs of two models in one order: by the names of their signatures or tensors before position.

Ranges of quantized tensors, compared with the values that they represent.

It works for any two models with the same inputs and outputs: usually a float model and its quantized form.

The comparison of an integer model with the float model that it was built from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inputs.prepare import codes_of_inputs
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.checks import code_limits
from tflq.engine.profiles import by_name
from tflq.errors import InputError
from tflq.interrupts import Progress
from tflq.model.ir import GraphView, Model, OperatorView, TensorSpec, TensorType, input_names, output_names, view
from tflq.quantization.build.build import Built
from tflq.quantization.frontier import Runner, Sample, executor
from tflq.quantization.judge.detections import DecisionAgreement, Fidelity, OutputPart, parts_of, units_of
from tflq.quantization.judge.outputs import OutputFigures, OutputTally, Truth, truths_from
from tflq.quantization.params import ACTIVATION_TYPES, codes_of, real
from tflq.quantization.portable.editing import Rewritten
from tflq.quantization.portable.nudging import OperatorDifferences
from tflq.quantization.refine.groups import EQUALIZED
from tflq.texts import Tabular, display_by
from tflq.typing import Array

#: Suffixes that converters append to the name of a tensor that they quantize.
_SUFFIXES = ("_int8", "_int16", "_uint8", "_quantized", "_requantized", "_dequantize", "_quantize")
#: Number of dimensions from which on converters move the channels.
_LEAST_RANK = 3


@dataclass(frozen=True, slots=True)
class Edges:
    """A model with its inputs and outputs in another model's order, and what was done for that.

    `turned` are axes, by tensor, in which the model has an input or an output whose channels the other model has at
    another place: its values are the other's with these axes.
    """

    model: Model
    turned: Mapping[int, tuple[int, ...]]
    remarks: tuple[str, ...]

    def turn(self, tensor: int, values: Array) -> Array:
        """Return values of the other model's tensor as this model has them."""
        return values.transpose(self.turned[tensor]) if tensor in self.turned else values

    def turn_back(self, tensor: int, values: Array) -> Array:
        """Return values of this model's tensor as the other model has them."""
        axes = self.turned.get(tensor)
        return values if axes is None else values.transpose(sorted(range(len(axes)), key=axes.__getitem__))


def align(reference: Model, other: Model) -> Edges:
    """Return `other` with its inputs and outputs in the reference's order.

    They are paired by the names of signatures, else by those of tensors, else by position, else by shape. A shape fits
    if it is the same, or has the channels (axis 1 or the last) at the other end.

    Raises:
        InputError: Inputs or outputs do not correspond.
    """
    ours, theirs, turned, remarks = view(reference), view(other), dict[int, tuple[int, ...]](), list[str]()
    edges = []
    for what, a, b, names in (
        ("input", ours.inputs, theirs.inputs, input_names),
        ("output", ours.outputs, theirs.outputs, output_names),
    ):
        shapes = [[graph.tensors[t].shape for t in edge] for graph, edge in ((ours, a), (theirs, b))]
        order = _order(shapes, [names(reference), names(other)], [_plain(ours, a), _plain(theirs, b)])
        if order is None:
            raise InputError(f"the models' {what}s differ", expected=shapes[0], got=shapes[1])
        if order != list(range(len(order))):
            pairs = ", ".join(f"{k} with {place}" for k, place in enumerate(order))
            remarks.append(f"{what}s in another order: paired by name or shape, number {pairs} of the other model")
        edges.append(tuple(b[place] for place in order))
        for t, place in zip(a, order, strict=True):
            shape, wanted = ours.tensors[t].shape, shapes[1][place]
            axes = _axes(shape, wanted)
            if axes is not None and shape != wanted:
                turned[b[place]] = axes
                remarks.append(
                    f"{what} {ours.tensors[t].name}: {list(shape)} against {list(wanted)}, the channels are at another "
                    f"place: compared as transposed by {list(axes)}"
                )
    record = replace(theirs.record, inputs=edges[0], outputs=edges[1])
    index = next(k for k, graph in enumerate(other.subgraphs) if graph is theirs.record)
    subgraphs = (*other.subgraphs[:index], record, *other.subgraphs[index + 1 :])
    return Edges(replace(other, subgraphs=subgraphs), turned, tuple(remarks))


def plain_name(name: str) -> str:
    """Return a tensor's name without what converters append."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _plain(graph: GraphView, tensors: Sequence[int]) -> list[str]:
    return [plain_name(graph.tensors[t].name or "") for t in tensors]


def _order(shapes: Sequence[Sequence[tuple[int, ...]]], *names: Sequence[Sequence[str]]) -> list[int] | None:
    """Return for each of our edges the position of its twin; None if there is none."""
    count = len(shapes[0])
    if count != len(shapes[1]):
        return None
    orders: list[list[int]] = [
        [theirs.index(name) for name in mine]
        for mine, theirs in (map(list, pair) for pair in names)
        if len(set(mine)) == count and set(mine) == set(theirs)
    ]
    orders.append(list(range(count)))
    twins = [[k for k, b in enumerate(shapes[1]) if _axes(a, b) is not None] for a in shapes[0]]
    if all(len(found) == 1 for found in twins) and len({found[0] for found in twins}) == count:
        orders.append([found[0] for found in twins])
    return next((order for order in orders if all(k in fits for k, fits in zip(order, twins, strict=True))), None)


def _axes(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the axes by which a shape becomes another: as it is, or with the channels moved; None if it does not."""
    rank = len(ours)
    ways = [tuple(range(rank))]
    if rank >= _LEAST_RANK:
        ways += [(0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))]
    return next((axes for axes in ways if rank == len(theirs) and tuple(ours[k] for k in axes) == tuple(theirs)), None)


#: A quantized range of this many times the values' own was calibrated on other numbers.
WIDE = 16.0
#: A tensor is too narrow if what is cut off is this share of its noise, and noise this far above what steps cost.
_CUT, _BEYOND_STEPS = 0.5, 4.0
#: Most columns of an input whose values are watched one by one.
_MOST_COLUMNS = 4096


def code_range(spec: TensorSpec) -> tuple[float, float] | None:
    """Return the real values of the lowest and the highest code; None for a tensor without 8-bit codes of one scale."""
    q = spec.quantization
    if spec.type not in (TensorType.INT8, TensorType.UINT8) or q is None or len(q.scale) != 1:
        return None
    zero = int(q.zero_point[0]) if len(q.zero_point) else 0
    low, high = ((code - zero) * float(q.scale[0]) for code in code_limits(TensorType(spec.type)))
    return low, high


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a quantized tensor, and that of the values which the reference has there.

    `share` of the values are cut off. `narrow` are columns (of an input) that vary by less than one `step` of the
    codes, of `columns`; `spreads` are the least and the greatest spread of all.
    """

    name: str
    op: str
    index: int
    low: float
    high: float
    seen: tuple[float, float]
    share: float = 0.0
    is_narrow: bool = False
    narrow: tuple[int, ...] = ()
    columns: int = 0
    spreads: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(spec: TensorSpec, sums: Fidelity, columns: SpanColumns | None = None) -> Span | None:
        """Return the ranges of a tensor; None if it has no codes of one scale, or no values were seen."""
        ends = code_range(spec)
        if ends is None or not sums.elements:
            return None
        step = (ends[1] - ends[0]) / 255
        steps = sums.elements * step * step / 12
        is_narrow = sums.cut > _CUT * sums.noise and sums.noise > _BEYOND_STEPS * steps
        spreads = np.zeros(0) if columns is None else columns.spreads
        alone = np.flatnonzero((spreads > 0) & (spreads < step)) if len(spreads) > 1 else np.zeros(0, np.int64)
        return Span(
            sums.name,
            sums.op,
            sums.index,
            *ends,
            (sums.low, sums.high),
            sums.beyond / sums.elements,
            is_narrow,
            tuple(alone.tolist()),
            len(spreads),
            (float(spreads[spreads > 0].min(initial=np.inf)), float(spreads.max())) if alone.size else (0.0, 0.0),
        )

    @property
    def step(self) -> float:
        """The distance of two codes."""
        return (self.high - self.low) / 255

    @property
    def excess(self) -> float:
        """Width of the range by that of the values, which include 0 as every range does."""
        width = max(self.seen[1], 0.0) - min(self.seen[0], 0.0)
        return (self.high - self.low) / width if width > 0 else 1.0


@dataclass(slots=True)
class SpanColumns:
    """The least and the greatest value of each column of an input (its last axis) over all samples."""

    low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    high: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, values: Array) -> None:
        """Count a sample; inputs of very many columns are not watched."""
        if values.ndim and 0 < values.shape[-1] <= _MOST_COLUMNS and values.size:
            rows = values.reshape(-1, values.shape[-1])
            low, high = rows.min(axis=0), rows.max(axis=0)
            is_first = self.low.shape != low.shape
            self.low = low if is_first else np.minimum(self.low, low)
            self.high = high if is_first else np.maximum(self.high, high)

    @property
    def spreads(self) -> NDArray[np.float64]:
        """The widths of the columns' ranges."""
        return np.asarray(self.high, np.float64) - np.asarray(self.low, np.float64)


#: A tensor below this signal-to-noise ratio (dB) counts as damaged.
DAMAGED = 20.0
#: One number of a row is named if it is damaged, and this far (dB) below its output.
_COLUMN = 10.0
#: Samples from which on it is judged alone.
_LEAST_SAMPLES = 8


@display_by("compare:compare_card", "compare_document", "comparison.tensors")
@dataclass(frozen=True, slots=True)
class Fidelities(Tabular):
    """Two models over the same samples.

    `tensors` are in order of execution, `outputs` in order of outputs.

    `parts` are what concatenations join in outputs. `rescaled` are results of QUANTIZE between integers in the other
    model, which have no counterpart: compared with what they read. `ranges` are the quantized tensors' ranges.
    `figures` are those of outputs as they are read: boxes at anchors with high scores, and metrics if there are labels.
    """

    samples: int
    outputs: tuple[Fidelity, ...]
    tensors: tuple[Fidelity, ...]
    unmatched: int  # tensors of the reference without a counterpart of that name and shape in the other
    agreement: DecisionAgreement | None
    parts: tuple[OutputPart, ...] = ()
    rescaled: tuple[Fidelity, ...] = ()
    ranges: tuple[Span, ...] = ()
    figures: OutputFigures = field(default_factory=OutputFigures)
    runtimes: tuple[OnRuntime, ...] = ()  # the other model on each runtime asked for
    entries: tuple[Span, ...] = ()  # ranges of quantized inputs, and what the samples hold
    units: tuple[OutputPart, ...] = ()  # whole outputs, and the numbers of those that are a row of a few
    inputs: tuple[Fidelity, ...] = ()  # float inputs, as the other model's codes hold them
    remarks: tuple[str, ...] = ()  # how inputs and outputs are paired, if not by position

    @property
    def weakest(self) -> OutputPart | Fidelity | None:
        """The part of an output, number of a row, or output of several, with the lowest ratio; None without these."""
        outputs = self.judged if len(self.outputs) > 1 else ()
        lost = {part.output for part in self.parts}
        whole = [(o.sqnr, k, o) for k, o in enumerate(outputs) if k not in lost]
        every: list[tuple[float, int, OutputPart | Fidelity]] = [
            *((p.fidelity.sqnr, k, p) for k, p in enumerate((*self.parts, *self.lost_columns))),
            *whole,
        ]
        return min(every, key=lambda one: one[:2])[2] if every else None

    @property
    def judged(self) -> tuple[Fidelity, ...]:
        """The outputs that depend on the input: all except constant ones, or all if there are no others."""
        return tuple(o for o in self.outputs if not o.is_constant) or self.outputs

    @property
    def lost_columns(self) -> tuple[OutputPart, ...]:
        """The numbers of a row that are damaged, far below their output; a distribution is judged as a whole."""
        if self.agreement is not None and not math.isnan(self.agreement.divergence):
            return ()
        return tuple(
            unit
            for unit in self.units
            if unit.column is not None
            and self.samples >= _LEAST_SAMPLES
            and not unit.fidelity.is_constant
            and unit.fidelity.sqnr < min(DAMAGED, self.outputs[unit.output].sqnr - _COLUMN)
        )

    @property
    def records(self) -> int:
        """The number of samples that alone reach an end of some tensor: without it, it would lie beyond the others.

        As a share, it estimates how many other samples lie beyond all of these.
        """
        return len({k for tensor in (*self.tensors, *self.inputs) for k in tensor.holders if k >= 0})

    @property
    def narrow(self) -> tuple[Span, ...]:
        """The inputs and tensors that lose most by what lies beyond their codes, in order of execution."""
        return tuple(span for span in (*self.entries, *self.ranges) if span.is_narrow)

    def numbered(self, origins: Sequence[int]) -> Fidelities:
        """Return the comparison with the operators of a rewritten reference numbered as in its source."""
        tensors = (replace(t, index=origins[t.index] if t.index >= 0 else -1) for t in self.tensors)
        return replace(self, tensors=tuple(tensors))

    @property
    def wide(self) -> tuple[Span, ...]:
        """The inputs and tensors whose range is WIDE times that of their values or more."""
        return tuple(span for span in (*self.entries, *self.ranges) if span.excess >= WIDE)

    @property
    def sqnr(self) -> float:
        """Signal-to-noise ratio of the worst output about its mean over samples, dB."""
        return min((output.sqnr for output in self.judged), default=math.inf)

    @property
    def leading(self) -> float:
        """The ratio by which a model is judged, dB: of the worst part as it is read, else of the worst output."""
        return min(self.figures.ratios.values(), default=self.sqnr)

    @property
    def worst(self) -> Fidelity | None:
        """The tensor with the lowest signal-to-noise ratio."""
        return min(self.tensors, key=lambda t: t.sqnr, default=None)

    @property
    def first(self) -> Fidelity | None:
        """The first tensor below DAMAGED dB."""
        return next((t for t in self.tensors if t.sqnr < DAMAGED), None)


@dataclass(frozen=True, slots=True, eq=False)
class OnRuntime:
    """The other model on one runtime, with that runtime's own bits; or the `error` by which the profile refuses it.

    `differing` of the `elements` of the outputs differ from those on the first runtime, over the first `samples`, and
    `changed` samples, of all, get another top-1 there. `operators` are those that differ on the same inputs, in order
    of execution.
    """

    profile: str
    comparison: Fidelities | None
    error: str = ""
    differing: int = 0
    elements: int = 0
    samples: int = 0
    changed: int = 0
    operators: tuple[OperatorDifferences, ...] = ()


def compare_models(
    reference: Model,
    other: Model,
    samples: Iterable[Sample],
    labels: Iterable[Truth] | None = None,
    progress: Progress | None = None,
    profile: str | None = None,
) -> Fidelities:
    """Run both on `samples` (arrays by the reference's input tensor index) and summarize the differences.

    The reference runs on `litert-ref`, the other on `profile`; None: on `litert-ref`, or on what takes it.

    Raises:
        UnsupportedError, ModelError: The profile does not take the other model.
        InputError: The models' inputs or outputs do not correspond, or the number of labels differs from the number of
            samples.
    """
    edges = align(reference, other)
    other = edges.model
    ours, theirs = view(reference), view(other)
    pairs = _matching(reference, other)
    if profile is None:
        profile = executor(other, "litert-ref")
    else:
        make_plan(other, by_name(profile))
    pairs_of_scales = [(op.inputs[0], op.outputs[0]) for op in theirs.ops if _rescales(op)]
    rescaled = {pair: _fidelity(other, pair[1]) for pair in pairs_of_scales}
    inner = (*pairs.values(), *(t for pair in rescaled for t in pair))
    runners = (Runner(reference, (*ours.outputs, *pairs)), Runner(other, (*theirs.outputs, *inner), profile))
    outputs = tuple(
        _fidelity(reference, *pair) for pair in zip(ours.outputs, map(theirs.tensor, theirs.outputs), strict=True)
    )
    tensors = {t: _fidelity(reference, t, theirs.tensors[twin]) for t, twin in pairs.items()}
    parts = [part for k, t in enumerate(ours.outputs) for part in parts_of(ours, k, t)]
    units = [unit for k, t in enumerate(ours.outputs) for unit in units_of(ours, k, t)]
    agreement: DecisionAgreement | None = None
    count, total = 0, len(samples) if isinstance(samples, Sized) else 0
    known = None if labels is None else truths_from(labels)
    tally = OutputTally(ours)
    codes = codes_of_inputs(ours, theirs)
    entries = {t: _entry(ours.tensors[t], spec) for t, spec in codes.items()}
    columns = {t: SpanColumns() for t in codes}
    stream, copies = tee(_watch(samples, entries, columns, codes))
    for f, q in zip(runners[0].each(stream), runners[1].each(_translate(copies, ours, theirs, edges)), strict=True):
        q = {t: edges.turn_back(t, values) for t, values in q.items()}
        for tensor, sums in tensors.items():
            twin = pairs[tensor]
            sums.add(_floats(ours.tensors[tensor], f[tensor]), *_steps(theirs.tensors[twin], q[twin]))
        for sums, a, b in zip(outputs, ours.outputs, theirs.outputs, strict=True):
            sums.add(_floats(ours.tensors[a], f[a]), *_steps(theirs.tensors[b], q[b]))
        for part in (*parts, *units):
            a, b = ours.outputs[part.output], theirs.outputs[part.output]
            part.add(_floats(ours.tensors[a], f[a]), *_steps(theirs.tensors[b], q[b]))
        for (source, result), sums in rescaled.items():
            sums.add(_floats(theirs.tensors[source], q[source]), *_steps(theirs.tensors[result], q[result]))
        read = [[real(g.tensors[t], v[t]) for t in g.outputs] for g, v in ((ours, f), (theirs, q))]
        truth = None if known is None else _label(known, count)
        tally.add(read[0], read[1], truth)
        scores, predicted = (values[0] for values in read)
        if scores.ndim == 2 and scores.shape[0] == 1 and scores.shape[1] >= 2:
            agreement = agreement or DecisionAgreement()
            agreement.add(scores[0], predicted[0], truth if isinstance(truth, int) else None)
        count += 1
        if progress is not None:
            progress("comparing sample", count, total)
    if known is not None and len(known) != count:
        raise InputError("number of labels", expected=count, got=len(known))
    unmatched = len(_results(reference)) - len(pairs)
    spans = [Span.of(theirs.tensors[pairs[t]], sums) for t, sums in tensors.items()]
    ranges = tuple(span for span in spans if span is not None)
    fed = [Span.of(codes[t], sums, columns[t]) for t, sums in entries.items()]
    return Fidelities(
        count,
        outputs,
        tuple(tensors.values()),
        unmatched,
        agreement,
        tuple(parts),
        tuple(rescaled.values()),
        ranges,
        tally.figures(),
        entries=tuple(span for span in fed if span is not None),
        units=tuple(units),
        inputs=tuple(entries.values()),
        remarks=edges.remarks,
    )


def _watch(
    samples: Iterable[Sample],
    entries: Mapping[int, Fidelity],
    columns: Mapping[int, SpanColumns],
    codes: Mapping[int, TensorSpec],
) -> Iterator[Sample]:
    """Yield samples, and note what their float inputs hold, and lose by the codes of the other model's."""
    for sample in samples:
        for tensor, sums in entries.items():
            values, spec = sample[tensor], codes[tensor]
            sums.add(values, *(_steps(spec, codes_of(spec, values)) if _is_quantized(spec) else (values,)))
            columns[tensor].add(values)
        yield sample


def _rescales(op: OperatorView) -> bool:
    """Return whether the operator turns an operator's codes into codes of another scale."""
    is_inner = op.builtin == "QUANTIZE" and op.graph.maker(op.inputs[0]) is not None
    return is_inner and all(_is_quantized(op.graph.tensors[t]) for t in (*op.inputs, *op.outputs))


def _floats(spec: TensorSpec, values: Array) -> Array:
    """Return the real numbers that a tensor's values represent; float32 unchanged."""
    return values if values.dtype == np.float32 else real(spec, values)


def _steps(spec: TensorSpec, codes: Array) -> tuple[Array, float, float]:
    """Return values, and the scale and zero point that decode them; codes of one scale stay codes."""
    q = spec.quantization
    if q is not None and len(q.scale) == 1 and codes.dtype.kind in "iu":
        return codes, float(q.scale[0]), float(q.zero_point[0])
    return _floats(spec, codes), 1.0, 0.0


def _label(labels: Sequence[Truth], sample: int) -> Truth:
    if sample >= len(labels):
        raise InputError("number of labels", expected=f"one per sample, at least {sample + 1}", got=len(labels))
    return labels[sample]


def _results(model: Model) -> list[int]:
    """Return tensors that operators produce and that represent real numbers."""
    graph = view(model)
    return [t for t in graph.computed if graph.tensors[t].type == TensorType.FLOAT32 or _is_quantized(graph.tensors[t])]


def _is_quantized(spec: TensorSpec) -> bool:
    return spec.type in ACTIVATION_TYPES and spec.quantization is not None and len(spec.quantization.scale) > 0


def _matching(reference: Model, other: Model) -> dict[int, int]:
    """Return a map from tensors that the reference's operators produce to the other's of the same name and shape.

    A name that several of them have matches none.
    """
    graph = view(other)
    by_name: dict[str, int] = {}
    for t in graph.computed:
        by_name.setdefault(plain_name(graph.tensors[t].name or ""), t)
    pairs, results = {}, _results(reference)
    names = Counter(view(reference).tensors[t].name for t in results)
    for t in results:
        spec = view(reference).tensors[t]
        twin = by_name.get(plain_name(spec.name or ""))
        if spec.name and names[spec.name] == 1 and twin is not None and graph.tensors[twin].shape == spec.shape:
            pairs[t] = twin
    return pairs


def _fidelity(model: Model, tensor: int, codes: TensorSpec | None = None) -> Fidelity:
    """Return new sums of a tensor; with the `codes` that represent it, values beyond them count as cut off."""
    graph = view(model)
    maker, name = graph.maker(tensor), graph.tensors[tensor].name or ""
    op, index = ("", -1) if maker is None else (maker.builtin, maker.index)
    return Fidelity(name, op, index, *_limits(codes))


def _entry(spec: TensorSpec, codes: TensorSpec) -> Fidelity:
    return Fidelity(spec.name or "input", "INPUT", -1, *_limits(codes))


def _limits(codes: TensorSpec | None) -> tuple[float, float]:
    """Return the ends of the values that codes represent, each with the half step that is rounded to it."""
    ends = None if codes is None else code_range(codes)
    if ends is None:
        return -math.inf, math.inf
    half = (ends[1] - ends[0]) / 510
    return ends[0] - half, ends[1] + half


def _translate(
    samples: Iterable[Sample], ours: GraphView, theirs: GraphView, edges: Edges
) -> Iterator[Mapping[int, Array]]:
    """Yield samples for the reference as samples for the other: by its tensor indices, in its types."""
    pairs = list(zip(ours.inputs, theirs.inputs, strict=True))
    for sample in samples:
        yield {b: edges.turn(b, _input(ours.tensors[a], sample[a], theirs.tensors[b])) for a, b in pairs}


def _input(ours: TensorSpec, values: Array, theirs: TensorSpec) -> Array:
    numbers = real(ours, values).astype(np.float32) if _is_quantized(ours) else values
    return codes_of(theirs, numbers)


def compare(
    reference: Model,
    form: Rewritten,
    built: Built,
    result: Model,
    samples: Iterable[Sample],
    labels: Sequence[Truth] | None,
    progress: Progress | None = None,
) -> Fidelities:
    """Compare with the float model; if channels were equalized, compare inner tensors with the equalized model.

    `reference` is the source, or its `form` that was quantized; operators are numbered as in the source. Equalizing
    changes no bit of the outputs, so one run gives all results unless operators of the float model were dissolved, or
    loops made integer.
    """
    floats = built.assignment.scheme.model
    if not any((tensor.name or "").endswith(EQUALIZED) for tensor in floats.graph.tensors):
        compared = compare_models(reference, result, samples, labels, progress)
        return compared.numbered(form.origins) if reference is form.model else compared
    inside = compare_models(floats.model, result, samples, labels, progress)
    inside = inside.numbered([form.origins[index] for index in floats.origins])
    if not floats.ranges and len(reference.subgraphs) == 1:  # whose loops may be integer in `floats`
        return inside
    whole = compare_models(reference, result, samples, labels)
    return replace(whole, tensors=inside.tensors, unmatched=inside.unmatched)
