"""Types of activations of each operator, from LiteRT's kernel tables and the facts of operators."""

from __future__ import annotations

from functools import cache

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.versions import need
from tflq.engine.kernels.signature import Slot
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType

#: The profile whose tables give the operators and types.
PROFILE = "litert-ref"
#: The release of that profile as facts name it: later ones have the same versions.
RELEASE = "2.1"
KINDS = ("int8", "uint8", "int16")


@cache
def kinds(op: str) -> tuple[str, ...]:
    """Return the types of codes that an operator makes or, if it makes no codes (places, truth values), reads.

    Types of indices, weights and states do not count. Nor do types whose results in LiteRT are known to be wrong.
    """
    fact, found = OPERATORS[op], set()
    for row in by_name(PROFILE).kernels[op]:
        inputs, outputs = row.signature.inputs, row.signature.outputs
        found |= _codes(outputs[0]) or _codes(inputs[0])
    return tuple(kind for kind in KINDS if kind in found and kind not in fact.broken)


def _codes(slot: Slot) -> set[str]:
    """Return the types of codes that an operand can have; all if it takes any type."""
    return {kind for kind in KINDS if slot.types is None or TensorType[kind.upper()] in slot.types}


def version_of(op: str, kind: str) -> int:
    """Return the version that codes of a type need, unless LiteRT's reference resolver stops before it."""
    fact = OPERATORS[op]
    lowest = min(row.versions[0] for row in by_name(PROFILE).kernels[op])
    least = need(op, [TensorType[kind.upper()]])
    return max(lowest, min(least, fact.highest(RELEASE, optimized=False) or least))


def kind_of(types: str) -> str | None:
    """Return the type of codes of a case by its operand types, such as "int8 int8 -> bool"; None if it has none."""
    inputs, _, outputs = types.partition(" -> ")
    return next((words[0] for words in (outputs.split(), inputs.split()) if words[0] in KINDS), None)
