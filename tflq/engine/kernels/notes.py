"""Notes beside the rows of an operator: its formulas with their conditions, and known faults of runtimes.

docs/versions.md and docs/profiles.md are generated from them. Formulas: x is the accumulator; DR rounds twice (half up,
then half away), DRU twice half up, SR once half up, M16 once half up with a 16-bit multiplier, DBL once half away in
float64, F32 once half to even in float32; S is the sum of N raw codes, k = scale(x) / scale(y), zi and zo are the zero
points of input and output.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.engine.kernels.validity import When


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of an operator for some operands, in words `types`, where `when` holds."""

    op: str
    types: str
    source: str
    when: When
    text: str


def formulas(op: str, types: str, source: str, *eras: tuple[When, str]) -> tuple[Formula, ...]:
    """Return the formulas of one operator and form, one for each condition."""
    return tuple(Formula(op, types, source, when, text) for when, text in eras)


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a runtime computes other than what it means to, or than what its own other forms compute.

    `types` are rows of kernel tables; profiles for which one of `when` holds reproduce the fault, or refuse what it
    leaves undefined. A fault of `litert-ref` that `spec` has not is fixed there.
    """

    op: str
    types: tuple[str, ...]
    versions: str
    symptom: str
    source: str
    when: tuple[When, ...]
