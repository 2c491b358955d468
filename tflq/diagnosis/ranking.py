"""Rank differing operators by the consequence of each difference for the model's outputs."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located
from tflq.diagnosis.amplification import Amplification, amplify
from tflq.diagnosis.localization import most_telling, trust
from tflq.engine.profiles import Profile
from tflq.model.ir import Model

#: Number of operators whose differences are followed through the model; the model runs twice for each.
_FOLLOWED = 8
#: Differences of floats that another order of sums or another libm makes, in ULP of the tensor's largest magnitude.
_NOISE = 8


def by_consequence(
    differing: Sequence[Located],
    model: Model,
    samples: Sequence[Dump],
    by_sample: Sequence[Sequence[Located]],
    profile: Profile,
) -> tuple[Amplification, ...]:
    """Return the growth of differences by themselves, each in the sample in which it is largest, the worst first.

    The worst flips the most choices of the outputs, then changes the outputs most. The noise of floats comes last.
    """
    chosen = sorted(differing, key=is_noise)[:_FOLLOWED]  # otherwise in order of execution
    rows = []
    for operator in chosen:
        k = most_telling(by_sample, operator.index)
        growth = amplify(model, trust(samples[k], by_sample[k]), operator.index, profile)
        rows.append(((is_noise(operator), -growth.flipped, -growth.effect, operator.index), growth))
    return tuple(growth for _, growth in sorted(rows, key=lambda row: row[0]))


def is_noise(operator: Located) -> bool:
    """Return whether an operator's differences are no larger than those of another order of sums."""
    apart = [d for d in operator.differences.values() if not d.same]
    return bool(apart) and all(d.unit == "ULP" and d.at_scale is not None and d.at_scale <= _NOISE for d in apart)
