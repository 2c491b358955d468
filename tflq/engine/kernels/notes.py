"""Notes on kernels, read from notes.yaml: formulas with their conditions, known faults of runtimes, XNNPACK's rewrites.

docs/runtimes.md and docs/xnnpack.md are made from them. Formulas: x is the accumulator; DR rounds
twice (half up, then half away), DRU twice half up, SR once half up, M16 once half up with a 16-bit multiplier, DBL once
half away in float64, F32 once half to even in float32; S is the sum of N raw codes, k = scale(x) / scale(y), zi and zo
are the zero points of input and output.

A condition is a few words: a place of `PLACES`; `since..until`, either of which may be absent, or one release; a
processor; `vectors` or `plain`, for packages with vector code and without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from tflq.engine.kernels.validity import (
    ESP_NN,
    MICRO,
    SPEC,
    When,
    cmsis_nn,
    micro,
    opt,
    ref,
    spec,
    tf1,
    tflite,
    xnnpack,
)
from tflq.model.storage.documents import read_yaml

#: Words for libraries and resolvers.
PLACES: Mapping[str, When] = MappingProxyType(
    {
        "tflite": tflite(),
        "ref": ref(),
        "opt": opt(),
        "opt-alone": tflite(resolvers="opt"),
        "ref-or-opt": tflite(resolvers="ref opt"),
        "xnnpack": xnnpack(),
        "tf1": tf1(),
        "tf1-opt": tf1("opt"),
        "micro": micro(),
        "micro-or-spec": micro(SPEC),
        "micro-or-esp-nn": When((MICRO, ESP_NN)),
        "cmsis-nn": cmsis_nn(),
        "spec": spec(),
    }
)
_VECTORS = {"vectors": True, "plain": False}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of an operator for some operands, in words `types`, where `when` holds."""

    op: str
    types: str
    source: str
    when: When
    text: str


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


class Effect(str, Enum):
    """The effect of a rewrite on results."""

    NONE = "none"  # no bit differs
    BITS = "other bits"
    UNWRITTEN = "a tensor is never written"


@dataclass(frozen=True, slots=True)
class GraphRewrite:
    """One rewrite of a model by the delegate or by XNNPACK before it runs: what becomes what, its function and day.

    `when` is the condition under which its bits or missing tensors are reproduced; None if it has no effect, or none
    that a profile reproduces. `where` names the file that does so, or the reason why none does. Releases were compared
    on drawn models, once as they are and once with every tensor as an output, with NaN, infinities, zeros of both signs
    and subnormal numbers among the values.
    """

    what: str
    function: str
    day: str
    effect: Effect
    when: When | None = None
    where: str = ""


@cache
def formulas() -> tuple[Formula, ...]:
    """Return the formulas of all operators."""
    return tuple(
        Formula(note["op"], note["types"], note["source"], condition(when), text)
        for note in _notes()["formulas"]
        for when, text in note["holds"].items()
    )


@cache
def faults() -> tuple[Fault, ...]:
    """Return the known faults of all operators."""
    return tuple(
        Fault(**{**note, "types": tuple(note["types"]), "when": tuple(map(condition, note["when"]))})
        for note in _notes()["faults"]
    )


@cache
def rewrites() -> tuple[GraphRewrite, ...]:
    """Return XNNPACK's rewrites."""
    return tuple(
        GraphRewrite(**{**note, "effect": Effect(note["effect"]), "when": note.get("when") and condition(note["when"])})
        for note in _notes()["rewrites"]
    )


def condition(text: str) -> When:
    """Return the condition that words of notes.yaml state ("opt tf-2.5..tflite-2.12 vectors")."""
    place, *words = text.split()
    when = PLACES[place]
    for word in words:
        since, dots, until = word.partition("..")
        if word in _VECTORS:
            when = replace(when, vectors=_VECTORS[word])
        elif word in ("arm64", "x86-64"):
            when = replace(when, cpus=(word,))
        else:
            when = replace(when, since=since or when.since, until=until or (when.until if dots else since))
    return when


@cache
def _notes() -> Any:
    data = (resources.files(__package__) / "notes.yaml").read_bytes()
    return read_yaml(data, "notes.yaml")
