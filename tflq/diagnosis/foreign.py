"""Arithmetic of runtimes that have no profile, compared with the operators on which a dump parts from a profile."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes.floats import mistaken_floats
from tflq.diagnosis.outcomes import results, score
from tflq.errors import TflqError
from tflq.ir import Model
from tflq.profiles import Profile
from tflq.surgery.part import Part
from tflq.verification.dump import Dump
from tflq.verification.results import Located

#: By the name of the hypothesis: runtimes that are known to compute so.
RUNTIMES = {
    "computed in float32, rounded half to even": "TVM, ONNX QDQ",
    "computed in float32, times the output scale's reciprocal, rounded half to even": "OpenVINO",
    "computed in bfloat16, rounded half to even": "OpenVINO with bfloat16",
    "computed in bfloat16, results in float32, rounded half to even": "OpenVINO with bfloat16",
}
#: Operators that are looked at, those in which most elements differ first, and the largest of their results.
_OPERATORS, _LARGEST = 6, 1 << 20


def foreign_causes(
    model: Model, dumps: Sequence[Dump], by_sample: Sequence[Sequence[Located]], profile: Profile
) -> tuple[str, ...]:
    """Return the names that reproduce every element of every divergent operator that is looked at, in all samples."""
    apart = [_differing(by_sample, index) for index in range(len(by_sample[0]) if by_sample else 0)]
    divergent = sorted((i for i, count in enumerate(apart) if count), key=lambda i: -apart[i])[:_OPERATORS]
    fitting = set(RUNTIMES) if divergent else set()
    for index in divergent:
        for dump in dumps:
            try:
                alone = operator_alone(model, dump, index, profile)
            except TflqError:
                continue
            fitting &= _reproducing(alone, profile, fitting) if alone.got else fitting
        if not fitting:
            break
    return tuple(name for name in RUNTIMES if name in fitting)


def _differing(by_sample: Sequence[Sequence[Located]], index: int) -> int:
    parts = [d for sample in by_sample if sample[index].differs for d in sample[index].differences.values()]
    return 0 if sum(d.elements for d in parts) > _LARGEST else sum(d.differing for d in parts)


def _reproducing(alone: Part, profile: Profile, names: set[str]) -> set[str]:
    found = set()
    for name, device in mistaken_floats(alone, profile):
        if name in names:
            matching, elements = score(results(device, alone), alone.got)
            found |= {name} if matching == elements else set()
    return found
