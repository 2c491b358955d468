"""Known faults of runtimes, with the profiles that reproduce them: the notes of all operators, resolved to names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tflq.engine.kernels.notes import Fault
from tflq.engine.kernels.signature import Signature
from tflq.engine.kernels.tables.rows import faults
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles.profile import Profile
from tflq.model.ir import TensorType


@dataclass(frozen=True, slots=True)
class Known:
    """A fault and the names of the profiles that reproduce it, or refuse what it leaves undefined."""

    fault: Fault
    profiles: tuple[str, ...]


@cache
def known_faults() -> tuple[Known, ...]:
    """Return every fault that a profile has."""
    return tuple(Known(fault, tuple(n for n, p in PROFILES.items() if _has(p, fault))) for fault in faults())


def faults_at(
    profile: Profile, op: str, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]
) -> tuple[Fault, ...]:
    """Return the faults of a profile's kernel for an operator on operands of those types."""
    return tuple(
        fault
        for fault in faults()
        if fault.op == op
        and any(not Signature.parse(types).mismatches(inputs, outputs) for types in fault.types)
        and _has(profile, fault)
    )


def _has(profile: Profile, fault: Fault) -> bool:
    """Return whether the fault's condition holds for a profile that takes all its forms."""
    if not any(when.holds(profile.runtime) for when in fault.when):
        return False
    rows = profile.kernels.get(fault.op, ())
    return all(any(_takes(types, row.signature) for row in rows) for types in fault.types)


def _takes(types: str, signature: Signature) -> bool:
    """Return whether a row of that signature takes operands of these types, everything optional among them."""
    form = Signature.parse(types)
    inputs, outputs = ([slot.types[0] for slot in slots if slot.types] for slots in (form.inputs, form.outputs))
    return signature.mismatches(inputs, outputs) == 0
