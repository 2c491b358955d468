"""A model on several runtimes, and the check in the real one.

A model on several runtimes: each one's own bits compared with the float model, and with those of the first.

Nudge scales so that several runtimes agree, as far as held-back samples show that it helps.

The check that the real runtime computes a quantized model with the same bits as tflq.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tflq.comparison.verification.report import Verification
from tflq.comparison.verification.verifying import verify
from tflq.errors import ModelError, RuntimeFailed, RuntimeMissing, TflqError, UndefinedResultError, UnsupportedError
from tflq.model.ir import Model, view
from tflq.quantization.build.build import Built, Task
from tflq.quantization.frontier import Sample, executor
from tflq.quantization.judge.comparison import Fidelities, OnRuntime, align, compare_models
from tflq.quantization.judge.contest import judged
from tflq.quantization.judge.detections import DecisionAgreement
from tflq.quantization.judge.journal import is_even
from tflq.quantization.judge.outputs import Truth, truths_from
from tflq.quantization.params import codes_of
from tflq.quantization.portable.nudging import Nudge, Portability, move, nudge, portability
from tflq.quantization.quarters import parted


def compare_on(
    reference: Model,
    other: Model,
    samples: Iterable[Sample],
    labels: Iterable[Truth] | None,
    runtimes: Sequence[str],
    watching: Iterable[Sample] | None = None,
) -> Fidelities:
    """Compare `other` with the reference on each of `runtimes`, profiles by name or path.

    `samples` can be read again and again; `watching`, which gives the same ones, is read once.

    The result is the comparison on the first one; its `runtimes` hold all. A profile that refuses the model has a row
    with its error, except the first.

    Raises:
        UnknownNameError, InputError: There is no such profile.
        UnsupportedError, ModelError: The first profile does not take the model.
    """
    known = None if labels is None else truths_from(labels)
    first, *others = dict.fromkeys(runtimes)
    comparison = compare_models(reference, other, watching or samples, known, profile=first)
    rows = [OnRuntime(first, comparison)]
    for name in others:
        try:
            found = compare_models(reference, other, samples, known, profile=name)
            rows.append(_part(reference, other, samples, rows[0], OnRuntime(name, found)))
        except (ModelError, UnsupportedError, UndefinedResultError) as error:
            rows.append(OnRuntime(name, None, str(error)))
    return replace(comparison, runtimes=tuple(rows))


def _part(reference: Model, other: Model, samples: Iterable[Sample], first: OnRuntime, found: OnRuntime) -> OnRuntime:
    """Return the row with what differs from the first runtime."""
    edges, inputs = align(reference, other), view(reference).inputs
    pairs = list(zip(inputs, view(edges.model).inputs, strict=True))
    turned = ({ours: edges.turn(theirs, sample[ours]) for ours, theirs in pairs} for sample in samples)
    apart = portability(edges.model, inputs, turned, (first.profile, found.profile))
    operators = tuple(operator for operator in apart.operators if any(operator.differing))
    agreements = [None if row.comparison is None else row.comparison.agreement for row in (first, found)]
    return replace(
        found,
        differing=apart.differing[0],
        elements=apart.elements,
        samples=apart.samples,
        changed=_changed(*agreements),
        operators=operators,
    )


def _changed(first: DecisionAgreement | None, other: DecisionAgreement | None) -> int:
    """Return the number of samples whose top-1 differs between two models that are compared with the same one."""
    if first is None or other is None:
        return 0
    one, two = ({flip.sample: flip.other for flip in agreement.flips} for agreement in (first, other))
    return sum(one.get(sample) != two.get(sample) for sample in one.keys() | two.keys())


@dataclass(frozen=True, slots=True)
class Agreed:
    """Agreement of runtimes on the model as written, on held-back samples, and `before` scales were nudged."""

    portability: Portability
    before: Portability
    nudges: tuple[Nudge, ...]


def agreed(task: Task, built: Built) -> tuple[Built, Agreed | None]:
    """Return the model with scales nudged on three quarters of the samples, if the last quarter confirms them.

    They are confirmed if fewer elements differ there, and the scores are not significantly worse. All nudges are tried
    first, then only those that remove at least half of their disagreements. Without further runtimes, the model stays,
    and there is no report.
    """
    recipe, inputs = task.recipe, task.floats.graph.inputs
    if not recipe.runtimes:
        return built, None
    fitting, judging = parted(task.samples)

    nudges = nudge(
        built.assignment.scheme,
        built.activations,
        lambda activations: built.again(recipe, activations).integer,
        fitting,
        recipe.judges,
        task.progress,
    )
    before = portability(built.integer.model, inputs, judging, recipe.judges)
    score = judged(task, built, judging)
    for some in dict.fromkeys(filter(None, (nudges, tuple(n for n in nudges if n.is_strong)))):
        again = built.again(recipe, move(built.activations, some))
        if not is_even(judged(task, again, judging), score):
            continue
        after = portability(again.integer.model, inputs, judging, recipe.judges)
        if after.total < before.total:
            return again, Agreed(after, before, some)
    return built, Agreed(before, before, ())


#: Samples that the check runs.
SAMPLES = 2
#: Runtimes; the second has operators that the first lacks.
RUNTIMES = ("litert-ref", "litert-opt")

#: Runtimes that read weights with block scales directly.
OF_BLOCKS = ("litert-xnnpack",)


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeCheck:
    """The verification, or the error that prevented it."""

    report: Verification | None
    error: TflqError | None = None


def check(model: Model, source: Model, samples: Iterable[Sample]) -> RuntimeCheck:
    """Verify `model` on some of the samples, which are float arrays by the inputs of `source`, operator by operator."""
    graph, floats = view(model), view(source)
    pairs = list(zip(floats.inputs, graph.inputs, strict=True))
    inputs = [[codes_of(graph.tensors[new], s[old]) for old, new in pairs] for s in islice(samples, SAMPLES)]
    failure: TflqError | None = None
    blocks = executor(model, "litert-ref") == "litert-xnnpack"
    for runtime in OF_BLOCKS if blocks else RUNTIMES:
        try:
            return RuntimeCheck(verify(model, runtime, inputs))
        except RuntimeMissing as error:
            return RuntimeCheck(None, error)
        except (RuntimeFailed, UnsupportedError) as error:
            failure = error
    return RuntimeCheck(None, failure)
