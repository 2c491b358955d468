"""Estimates of reciprocals as x86's RCPPS makes them: 12 bits, which differ between makers of processors.

The data names the processor it was read on; another processor has another file of the same form.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir.schema import data_text

_INDEX_BITS = 12


@dataclass(frozen=True, slots=True, eq=False)
class ReciprocalEstimate:
    """One processor's table."""

    cpu: str
    mantissas: NDArray[np.int64]  # by the upper 12 bits of the fraction; (4096 + mantissa) / 8192 for x in [1, 2)

    @classmethod
    def read(cls, name: str) -> ReciprocalEstimate:
        """Read the table in a data file."""
        document = json.loads(data_text(name))
        steps = np.array([int(step) for step in "".join(document["steps"])])
        return cls(document["cpu"], document["first"] - np.cumsum(steps))

    def __call__(self, x: float) -> np.float32:
        """Return the estimate of 1 / x for a float32 x >= 1 with a finite result."""
        fraction, exponent = math.frexp(np.float32(x))
        index = int((2.0 * fraction - 1.0) * (1 << _INDEX_BITS))
        mantissa = int(self.mantissas[index]) + (1 << _INDEX_BITS)
        return np.float32(math.ldexp(mantissa, -_INDEX_BITS - exponent))
