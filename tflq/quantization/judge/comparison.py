"""The fidelity of a model's outputs and inner tensors to those of the model it was built from.

It works for any two models with the same inputs and outputs: usually a float model and its quantized form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import tee

import numpy as np

from tflq.comparison.verification.outside import codes_of_inputs
from tflq.display import display_by
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import InputError
from tflq.model.ir import GraphView, Model, OperatorView, TensorSpec, TensorType, view
from tflq.progress import Progress
from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.edges import Edges, align, plain_name
from tflq.quantization.judge.fidelity import Fidelity
from tflq.quantization.judge.outputs import Figures, OutputTally
from tflq.quantization.judge.parts import Part, parts_of, units_of
from tflq.quantization.judge.spans import WIDE, Columns, Span, code_range
from tflq.quantization.judge.truths import Truth, truths_from
from tflq.quantization.params import ACTIVATION_TYPES, codes_of, real
from tflq.quantization.portable.portability import OperatorDifferences
from tflq.quantization.runner import Runner, Sample, executor
from tflq.typing import Array

#: A tensor below this signal-to-noise ratio (dB) counts as damaged.
DAMAGED = 20.0
#: One number of a row is named if it is damaged, and this far (dB) below its output.
_COLUMN = 10.0
#: Samples from which on it is judged alone.
_LEAST_SAMPLES = 8


@display_by("compare.report:compare_card")
@dataclass(frozen=True, slots=True)
class Comparison:
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
    agreement: Agreement | None
    parts: tuple[Part, ...] = ()
    rescaled: tuple[Fidelity, ...] = ()
    ranges: tuple[Span, ...] = ()
    figures: Figures = field(default_factory=Figures)
    runtimes: tuple[OnRuntime, ...] = ()  # the other model on each runtime asked for
    entries: tuple[Span, ...] = ()  # ranges of quantized inputs, and what the samples hold
    units: tuple[Part, ...] = ()  # whole outputs, and the numbers of those that are a row of a few
    inputs: tuple[Fidelity, ...] = ()  # float inputs, as the other model's codes hold them
    remarks: tuple[str, ...] = ()  # how inputs and outputs are paired, if not by position

    @property
    def weakest(self) -> Part | Fidelity | None:
        """The part of an output, number of a row, or output of several, with the lowest ratio; None without these."""
        outputs = self.judged if len(self.outputs) > 1 else ()
        lost = {part.output for part in self.parts}
        whole = [(o.sqnr, k, o) for k, o in enumerate(outputs) if k not in lost]
        every: list[tuple[float, int, Part | Fidelity]] = [
            *((p.fidelity.sqnr, k, p) for k, p in enumerate((*self.parts, *self.lost_columns))),
            *whole,
        ]
        return min(every, key=lambda one: one[:2])[2] if every else None

    @property
    def judged(self) -> tuple[Fidelity, ...]:
        """The outputs that depend on the input: all except constant ones, or all if there are no others."""
        return tuple(o for o in self.outputs if not o.is_constant) or self.outputs

    @property
    def lost_columns(self) -> tuple[Part, ...]:
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

    def numbered(self, origins: Sequence[int]) -> Comparison:
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
    comparison: Comparison | None
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
) -> Comparison:
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
    agreement: Agreement | None = None
    count, total = 0, len(samples) if isinstance(samples, Sized) else 0
    known = None if labels is None else truths_from(labels)
    tally = OutputTally(ours)
    codes = codes_of_inputs(ours, theirs)
    entries = {t: _entry(ours.tensors[t], spec) for t, spec in codes.items()}
    columns = {t: Columns() for t in codes}
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
            agreement = agreement or Agreement()
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
    return Comparison(
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
    columns: Mapping[int, Columns],
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
