"""A model on several runtimes: each one's own bits compared with the float model, and with those of the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tflq.errors import ModelError, UndefinedResultError, UnsupportedError
from tflq.model.ir import Model, view
from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.comparison import Comparison, OnRuntime, compare_models
from tflq.quantization.judge.edges import align
from tflq.quantization.judge.truths import Truth, truths_from
from tflq.quantization.portable.portability import portability
from tflq.quantization.runner import Sample


def compare_on(
    reference: Model,
    other: Model,
    samples: Iterable[Sample],
    labels: Iterable[Truth] | None,
    runtimes: Sequence[str],
    watching: Iterable[Sample] | None = None,
) -> Comparison:
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


def _changed(first: Agreement | None, other: Agreement | None) -> int:
    """Return the number of samples whose top-1 differs between two models that are compared with the same one."""
    if first is None or other is None:
        return 0
    one, two = ({flip.sample: flip.other for flip in agreement.flips} for agreement in (first, other))
    return sum(one.get(sample) != two.get(sample) for sample in one.keys() | two.keys())
