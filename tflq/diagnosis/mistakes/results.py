"""Mistakes in otherwise correct results: codes of one sign only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.typing import Array

#: By name: a limit for signed results, codes or floats.
_LIMITS: dict[str, Callable[[Array], Array]] = {
    "results of one sign only: the smaller of the result and -1": lambda y: np.minimum(y, y.dtype.type(-1)),
    "results of one sign only: the smaller of the result and 0": lambda y: np.minimum(y, y.dtype.type(0)),
    "results of one sign only: the larger of the result and 0": lambda y: np.maximum(y, y.dtype.type(0)),
}


def mistaken_results(profile: Profile) -> Iterator[Mistaken]:
    """Yield limits of the results at 0 and -1."""
    for name, limit in _LIMITS.items():
        yield name, _limit(profile, limit)


def _limit(profile: Profile, limit: Callable[[Array], Array]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        return {t: limit(v) if t in alone.got and v.dtype.kind in "if" else v for t, v in values.items()}

    return device
