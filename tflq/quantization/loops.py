"""Loops (WHILE) whose bodies become integer, and the detours of streams.

Loops (WHILE) whose bodies become integer: their float variables are states, from iteration to iteration.

A body is quantized as a model of its own, on the iterations that the float model's loop makes for the calibration
samples. The loop then runs on codes between QUANTIZE and DEQUANTIZE, as operators that the model prescribes.

Models that are quantized by way of others: a stream by its step, a loop by its body.

`fit` is `quantize`, which comes here for such models and is called for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from tflq.engine.kernels.facts.rules import dequantize_version, quantize_version
from tflq.errors import ModelError, OptionError, TflqError
from tflq.interrupts import Progress
from tflq.model.ir import (
    GraphView,
    Model,
    Operator,
    OperatorCode,
    OperatorView,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)
from tflq.model.ir.signatures import call
from tflq.model.surgery.cut import compact, operators_named, upstream
from tflq.quantization.frontier import Runner, Sample, part_of
from tflq.quantization.judge.tails import REASON, behind, check_steps, compare_steps
from tflq.quantization.recipe import AUTO, NO_TAIL, TYPES, Norms, Recipe
from tflq.quantization.recipe_files import digest, stamped
from tflq.quantization.result import Result, number
from tflq.quantization.streams import ASSIGN, READ, Stream, StreamState, bounded, code_of, narrowed
from tflq.typing import Array

#: Iterations to which a body is fitted, spread over the samples.
ITERATIONS = 256


class LoopFit(Protocol):
    """The quantization of a body, as a model, on samples, given the number of the loop and that of all loops."""

    def __call__(self, body: Model, samples: Sequence[Sample], *, number: int, count: int) -> Model:
        """Return the integer body."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopedModel:
    """A model with integer loops. `origins` are its operators' indices in the float model.

    `made` are the loops that are integer, and `refused` the reasons why others stay in float, by these indices.
    """

    model: Model
    origins: tuple[int, ...]
    made: tuple[int, ...]
    refused: dict[int, str]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks about the samples, if loops are integer."""
        text = "loops are fitted to all samples, so figures on held-out ones flatter them; --evaluate takes others"
        return (text,) if self.made else ()

    def renumbered(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the numbers of its float tail as this model has them."""
        places = {str(origin): str(i) for i, origin in enumerate(self.origins)}  # the last, after its conversions
        numbers = [places.get(number, number) for number in recipe.float_tail.split("..")]
        return replace(recipe, float_tail="..".join(numbers))


@dataclass(frozen=True, slots=True)
class _Loop:
    operator: OperatorView
    cond: GraphView
    body: GraphView
    floats: tuple[int, ...]  # positions of the variables that are float

    @property
    def moving(self) -> tuple[int, ...]:
        """The positions of float variables that change."""
        return tuple(p for p in self.floats if self.body.outputs[p] != self.body.inputs[p])


def with_integer_loops(model: Model, samples: Sequence[Sample], recipe: Recipe, fit: LoopFit) -> LoopedModel | None:
    """Return the model with integer loops as far as they can be; None if it has no loop with float variables.

    A budget, and a model that is portable, keep loops in float.

    Raises:
        OptionError: The recipe asks for normalizations of 16 bits.
    """
    graph = view(model)
    wanted = _float_loops(model)
    if not wanted or reasons_against(model, recipe):
        return None
    if recipe.norms is Norms.INT16:  # which changes the tensors that `Task.reference` shares
        raise OptionError("--norms int16: a model with loops takes auto, int8 or float")
    kept = dict.fromkeys(operators_named(model, recipe.keep_float), "asked for")
    if recipe.float_tail not in (AUTO, NO_TAIL) and recipe.output_type in (None, TensorType.FLOAT32):
        kept = {**dict.fromkeys(behind(graph, operators_named(model, (recipe.float_tail,))), REASON), **kept}
    placed, refused = dict[int, tuple[TensorSpec | None, ...]](), dict[int, str]()
    changed = _apart(model, {loop.operator.index for loop in wanted} - kept.keys())
    for which, loop in enumerate(wanted):
        index = loop.operator.index
        try:
            if index in kept:
                raise ModelError(kept[index])
            _refuse(model, loop)
            own = partial(fit, number=which, count=len(wanted))
            changed, placed[index] = _with_loop(model, changed, loop, samples, own)
        except TflqError as error:
            refused[index] = str(error)
    tensors, codes, operators = list(graph.tensors), list(changed.operator_codes), list[tuple[int, Operator]]()
    for op in view(changed).ops:
        around = _converted(op, placed[op.index], tensors, codes) if op.index in placed else (op.record,)
        operators += [(op.index, record) for record in around]
    main = replace(graph.record, tensors=tuple(tensors), operators=tuple(record for _, record in operators))
    whole = replace(changed, operator_codes=tuple(codes), subgraphs=(main, *changed.subgraphs[1:]))
    return LoopedModel(whole, tuple(index for index, _ in operators), tuple(placed), refused)


def reasons_against(model: Model, recipe: Recipe) -> dict[int, str]:
    """Return the reason why a recipe keeps loops on floats in float, by operator; empty if it does not."""
    reasons = {
        f"mode {recipe.mode.value} leaves the operators that it runs in float": TYPES[recipe.mode].data is None,
        "a budget keeps loops in float": recipe.budget is not None,
        "a portable model keeps loops in float": bool(recipe.portable),
    }
    reason = next((text for text, holds in reasons.items() if holds), None)
    return {} if reason is None else {loop.operator.index: reason for loop in _float_loops(model)}


def _float_loops(model: Model) -> list[_Loop]:
    return [loop for op in view(model).ops if op.builtin == "WHILE" and (loop := _loop(model, op)).floats]


def _apart(model: Model, loops: Collection[int]) -> Model:
    """Return the model with subgraphs of their own for loops that share them with other operators."""
    graphs, main, own = list(model.subgraphs), list(model.subgraphs[0].operators), {(0, index) for index in loops}
    taken = {
        k
        for g, graph in enumerate(graphs)
        for i, op in enumerate(graph.operators)
        if (g, i) not in own
        for k in call(op)
    }
    for index in sorted(loops):
        options = main[index].options
        assert isinstance(options, Record)  # those of a WHILE
        for name in ("cond_subgraph_index", "body_subgraph_index"):
            place = options[name]
            if place in taken:
                graphs.append(graphs[place])
                place = len(graphs) - 1
            taken.add(place)
            options = replace(options, fields={**options.fields, name: place})
        main[index] = replace(main[index], options=options)
    graphs[0] = replace(graphs[0], operators=tuple(main))
    return replace(model, subgraphs=tuple(graphs))


def _loop(model: Model, op: OperatorView) -> _Loop:
    cond, body = (view(model, k) for k in call(op.record))
    floats = tuple(p for p, t in enumerate(body.inputs) if body.tensors[t].type == TensorType.FLOAT32)
    return _Loop(op, cond, body, floats)


def _refuse(model: Model, loop: _Loop) -> None:
    """Refuse loops whose conditions read floats, and whose subgraphs run others or use variables of the model."""
    if any(tuple(call(op.record)) for graph in (loop.cond, loop.body) for op in graph.ops):
        raise ModelError("its subgraphs run others")
    if any(op.builtin in (READ, ASSIGN) for op in loop.body.ops):
        raise ModelError("its body uses variables of the model")
    read = {t for op in loop.cond.ops for t in op.inputs}
    if any(loop.cond.inputs[p] in read for p in loop.floats):
        raise ModelError("its condition reads floats")


def _alone(model: Model, graph: GraphView) -> Model:
    return compact(replace(model, subgraphs=(graph.record,), signature_defs=None))


def _iterate(model: Model, loop: _Loop, samples: Sequence[Sample]) -> Iterator[tuple[int, int, Sample, Sample]]:
    """Yield the numbers of sample and iteration, the variables before, and all of them by tensor, before and after."""
    cond = Runner(_alone(model, loop.cond), loop.cond.outputs)
    body = Runner(_alone(model, loop.body), loop.body.outputs)
    given = Runner(model, tuple(dict.fromkeys(loop.operator.inputs)))
    for which, values in enumerate(given.each(samples)):
        now: list[Array] = [values[t] for t in loop.operator.inputs]
        iteration = 0
        while bool(cond.one(dict(zip(loop.cond.inputs, now, strict=True)))[loop.cond.outputs[0]].all()):
            before = dict(zip(loop.body.inputs, now, strict=True))
            after = body.one(before)
            yield which, iteration, before, {**after, **before}
            now = [after[t] for t in loop.body.outputs]
            iteration += 1


def _observed(model: Model, loop: _Loop, samples: Sequence[Sample]) -> tuple[list[StreamState], list[Sample]]:
    """Return the loop's states with their ranges, and the iterations to which its body is fitted."""
    states = [StreamState(loop.body.inputs[p], loop.body.outputs[p]) for p in loop.moving]
    count = sum(1 for _ in _iterate(model, loop, samples[:1]))
    stride = max(1, -(-count * len(samples) // ITERATIONS))
    fitted = list[Sample]()
    for which, iteration, before, every in _iterate(model, loop, samples):
        states = [state.seen(every) for state in states]
        if (which + iteration) % stride == 0:
            fitted.append(before)
    if not fitted:
        raise ModelError("it makes no iteration for these samples")
    return states, fitted


def _with_loop(
    source: Model, host: Model, loop: _Loop, samples: Sequence[Sample], fit: Callable[[Model, list[Sample]], Model]
) -> tuple[Model, tuple[TensorSpec | None, ...]]:
    """Return the host with the loop's subgraphs in integers, and the variables' integer forms, None for others."""
    body, alone = loop.body, _alone(source, loop.body)
    states, fitted = _observed(source, loop, samples)
    still = [p for p in range(len(body.inputs)) if p not in loop.moving]
    counted = [p for p in still if body.outputs[p] not in body.inputs]
    inputs, outputs = [body.inputs[p] for p in still], [body.outputs[p] for p in counted]
    model = bounded(alone, states, (op.record for op in view(alone).ops), outputs, inputs)
    order = view(model).inputs
    made = fit(model, [{t: sample[t] for t in order} for sample in fitted])
    narrow = narrowed(made, host, [f"variable {p} of the loop" for p in loop.moving])
    firsts = dict(zip((*still, *loop.moving), (*narrow.inputs, *(one for one, _ in narrow.states)), strict=True))
    lasts = {p: firsts[body.inputs.index(body.outputs[p])] for p in still if p not in counted}  # another's, or its own
    lasts |= zip((*counted, *loop.moving), (*narrow.outputs, *(one for _, one in narrow.states)), strict=True)
    first, last = (tuple(side[p] for p in range(len(body.inputs))) for side in (firsts, lasts))
    tensors = tuple(narrow.tensors)
    record = replace(body.record, tensors=tensors, inputs=first, outputs=last, operators=upstream(narrow.body, last))
    forms = tuple(tensors[t] if p in loop.floats else None for p, t in enumerate(first))
    if all(form is None or form.type == TensorType.FLOAT32 for form in forms):
        raise ModelError("no operator at its variables becomes integer")
    graphs, place = list(host.subgraphs), tuple(call(host.subgraphs[0].operators[loop.operator.index]))
    graphs[place[0]], graphs[place[1]] = _asking(loop.cond, forms), record
    buffers = (*host.buffers, *made.buffers)
    return replace(host, operator_codes=tuple(narrow.codes), buffers=buffers, subgraphs=tuple(graphs)), forms


def _asking(cond: GraphView, forms: Sequence[TensorSpec | None]) -> Subgraph:
    """Return a loop's condition, which reads no float, with variables in their integer forms."""
    tensors = list(cond.tensors)
    for t, form in zip(cond.inputs, forms, strict=True):
        if form is not None:
            tensors[t] = replace(tensors[t], type=form.type, quantization=form.quantization)
    return replace(cond.record, tensors=tuple(tensors))


def _converted(
    op: OperatorView, forms: Sequence[TensorSpec | None], tensors: list[TensorSpec], codes: list[OperatorCode]
) -> Iterator[Operator]:
    """Yield a loop on codes, with the conversions around it; new tensors and codes are appended."""
    edges, last = [list(op.inputs), list(op.outputs)], list[Operator]()
    uses, outputs = op.graph.uses(), op.graph.outputs
    for p, form in enumerate(forms):
        if form is None or form.type == TensorType.FLOAT32:
            continue
        wide = [edge[p] for edge in edges]
        for edge in edges:
            spec = tensors[edge[p]]
            like = replace(spec, type=form.type, quantization=form.quantization, buffer=0)
            tensors.append(replace(like, name=f"{spec.name}/codes"))
            edge[p] = len(tensors) - 1
        narrow = code_of(codes, "QUANTIZE", quantize_version(TensorType.FLOAT32, TensorType(form.type)))
        yield Operator(narrow, (wide[0],), (edges[0][p],), Record("QuantizeOptions"))
        if uses[wide[1]] or wide[1] in outputs:
            back = code_of(codes, "DEQUANTIZE", dequantize_version(TensorType(form.type), 1))
            last.append(Operator(back, (edges[1][p],), (wide[1],), Record("DequantizeOptions")))
    yield replace(op.record, inputs=tuple(edges[0]), outputs=tuple(edges[1]))
    yield from last


def quantize_stream(
    stream: Stream,
    recipe: Recipe,
    fitted: Sequence[Sequence[Sample]],
    judged: Sequence[Sequence[Sample]] | None,
    fit: Callable[..., Result],
) -> Result:
    """Return the result for a streaming model: of its step as a function of inputs and states, with its variables."""
    steps, states = stream.unrolled(fitted)
    others = None if judged is None else stream.unrolled(judged)[0]
    inner = replace(recipe, float_tail=NO_TAIL, norms=Norms.INT8, keep_float=stream.named(recipe.keep_float))
    made = fit(stream.stateless(states), steps, inner, evaluation=others)
    whole = stamped(stream.restored(made.model), digest(recipe))
    figures = compare_steps(stream, whole, fitted if judged is None else judged, recipe.executor)
    report = number(made.report, stream.origins)
    tensors = tuple(tensor for tensor in report.comparison.tensors if tensor.index >= 0)
    comparison = replace(report.comparison, tensors=tensors)
    report = replace(report, recipe=recipe, comparison=comparison, check=check_steps(whole), streamed=figures)
    return Result(whole, report)


def fit_bodies(recipe: Recipe, progress: Progress | None, fit: Callable[..., Result]) -> LoopFit:
    """Return the quantization of loops' bodies by a recipe for the whole model."""
    norms = Norms.AUTO if recipe.norms is Norms.AUTO else Norms.INT8  # others need a normalization in each body
    inner = replace(
        recipe, float_tail=NO_TAIL, norms=norms, keep_float=(), runtimes=(), input_type=None, output_type=None
    )

    def fit_body(body: Model, samples: Sequence[Sample], *, number: int, count: int) -> Model:
        return fit(body, samples, inner, part_of(progress, f"loop {number + 1} of {count}", number, count)).model

    return fit_body


def without_auto_norms(recipe: Recipe) -> Recipe:
    """Return a recipe for a model with integer loops: 16 bits change the tensors that its `Task.reference` shares."""
    return replace(recipe, norms=Norms.INT8) if recipe.norms is Norms.AUTO else recipe
