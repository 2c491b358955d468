"""Arithmetic of runtimes without a profile, compared with the operators on which a dump differs from a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located, merge_samples
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes.device import Device
from tflq.diagnosis.mistakes.floats import mistaken_floats, name_of
from tflq.diagnosis.outcomes import results, score
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.through_floats import Floats
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model

#: Points of the grammar of float forms -> runtimes known to compute this way.
_POINTS = {
    Floats(): "TVM, ONNX QDQ",
    Floats(quotient="times reciprocal"): "OpenVINO",
    Floats("bfloat16"): "OpenVINO with bfloat16",
    Floats("bfloat16, results in float32"): "OpenVINO with bfloat16",
}
#: These runtimes by the name of the point.
RUNTIMES = {name_of(point): runtimes for point, runtimes in _POINTS.items()}
#: Number of compared operators of one kernel, those with most differing elements first; size of their largest results.
_OF_ONE_KIND, _LARGEST = 3, 1 << 20


def foreign_causes(
    model: Model, dumps: Sequence[Dump], by_sample: Sequence[Sequence[Located]], profile: Profile
) -> tuple[str, ...]:
    """Return the names that reproduce every element of the compared operators, in all samples.

    A runtime is identified as a whole: operators that the profile reproduces count, too. The result is empty if nothing
    differs, or if no operator has a float form to compare.
    """
    operators = [merge_samples(row) for row in zip(*by_sample, strict=True)]
    fitting, is_tried = set(RUNTIMES) if any(o.differs for o in operators) else set(), False
    for operator in _look_at(operators) if fitting else ():
        for dump in dumps:
            try:
                alone = operator_alone(model, dump, operator.index, profile)
                devices = dict(mistaken_floats(alone, profile)) if alone.got else {}
            except TflqError:
                continue
            if devices:
                fitting, is_tried = _reproducing(alone, devices, fitting), True
        if not fitting:
            break
    return tuple(name for name in RUNTIMES if name in fitting and is_tried)


def _look_at(operators: Sequence[Located]) -> list[Located]:
    """Return the operators of each type in which most elements differ; operators that differ come first."""
    chosen: dict[str, list[Located]] = {}
    for one in sorted(operators, key=lambda o: -sum(d.differing for d in o.differences.values())):
        of_type = chosen.setdefault(one.op, [])
        if (
            one.differences
            and len(of_type) < _OF_ONE_KIND
            and sum(d.elements for d in one.differences.values()) <= _LARGEST
        ):
            of_type.append(one)
    return [one for of_type in chosen.values() for one in of_type]


def _reproducing(alone: Part, devices: Mapping[str, Device], names: set[str]) -> set[str]:
    """Return those of the names whose devices reproduce every bit."""
    found = ((name, score(results(devices[name], alone), alone.got)) for name in names)
    return {name for name, (matching, elements) in found if matching == elements}
