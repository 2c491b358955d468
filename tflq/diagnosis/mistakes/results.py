"""Mistakes in otherwise correct results: codes of one sign only, or inside narrower limits."""

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


def mistaken_results(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield limits of the results at 0 and -1, and at the lowest and highest codes of the dump."""
    for name, limit in _LIMITS.items():
        yield name, _limit(profile, limit)
    codes = [v for v in alone.got.values() if v.dtype.kind in "iu" and v.size]
    if len(codes) == 1:
        low, high = codes[0].min(), codes[0].max()
        yield f"clamp at another code: no result below {low}", _limit(profile, lambda y: np.maximum(y, low))
        yield f"clamp at another code: no result above {high}", _limit(profile, lambda y: np.minimum(y, high))


def _limit(profile: Profile, limit: Callable[[Array], Array]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        return {t: limit(v) if t in alone.got and v.dtype.kind in "if" else v for t, v in values.items()}

    return device
