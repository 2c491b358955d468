"""Deployment on targets: refusals, tflite-micro's arena and resolver, what XNNPACK leaves, oldest releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflq.comparison.inspection.arena import Arena, arena_of, registrations
from tflq.diagnosis.linting.targets import refusals
from tflq.engine.interpreter.fusions import is_delegated, unpackable_tensors
from tflq.engine.kernels.kernel import Operand
from tflq.engine.kernels.validity import CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, MICRO, RELEASES, XNNPACK
from tflq.engine.profiles import Profile, by_name
from tflq.errors import LimitError, UnknownNameError, brief
from tflq.model.ir import GraphView, Model, rooted, view
from tflq.model.ir.signatures import choose_roots, place_of

#: Releases of tflite-micro that have a profile, newest first.
_MICRO_RELEASES = ("tflm", "tflm-2026.9", "tflm-2026.2")


@dataclass(frozen=True, slots=True)
class Delegation:
    """XNNPACK's part in a model: the `partitions` that it runs, and the operators that it leaves to the interpreter.

    `left` are places and names, as "3 SPLIT".
    """

    operators: int
    partitions: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Oldest:
    """The oldest release of a family that takes a model, each later one included.

    `decides` is what the release before it refuses; "" if no earlier one is known, and `release` is "" if the newest
    refuses the model.
    """

    family: str
    release: str
    decides: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The answer whether one target runs a model.

    `refused` is what it refuses, "" if it runs. `methods` are those of `MicroMutableOpResolver`, for tflite-micro with
    any kernels; `arena` is its memory in a build for Cortex-M, known for the reference kernels. `delegation` is known
    for XNNPACK.
    """

    target: str
    refused: str
    arena: Arena | None = None
    methods: tuple[str, ...] = ()
    delegation: Delegation | None = None


def deployment(model: Model, target: str, profile: Profile, signature: str | None = None) -> Deployment:
    """Return whether a target runs a model, or its signature of that name. Nothing is run."""
    refused = refusal(model, profile, signature)
    if refused:
        return Deployment(target, refused)
    if profile.runtime.library in (MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN):
        is_reference = profile.runtime.library == MICRO and target != "cmsis-nn"
        return Deployment(target, "", _arena(model) if is_reference else None, registrations(model))
    if profile.runtime.resolver == XNNPACK and not profile.runtime.library:
        return Deployment(target, "", delegation=delegation(model, profile, signature))
    return Deployment(target, "")


def _arena(model: Model) -> Arena | None:
    try:
        return arena_of(model)
    except LimitError:
        return None


def refusal(model: Model, profile: Profile, signature: str | None = None) -> str:
    """Return what a profile refuses first in a model, with the operator's place; "" if it runs the model."""
    return next((brief(error) for _, error in refusals(model, profile, signature)), "")


def oldest_releases(model: Model, signature: str | None = None) -> tuple[Oldest, ...]:
    """Return the oldest release that takes a model, of TensorFlow Lite with LiteRT, and of tflite-micro."""
    micro = [(name, by_name(name)) for name in _MICRO_RELEASES]
    return tuple(
        _oldest(model, signature, family, releases)
        for family, releases in (("TensorFlow Lite and LiteRT", list(_releases())), ("tflite-micro", micro))
    )


def _releases() -> Iterator[tuple[str, Profile]]:
    """Yield the releases of TensorFlow Lite and LiteRT with their optimized kernels, the newest first."""
    for release in reversed(RELEASES):
        try:
            yield release, by_name(f"{release}-opt")
        except UnknownNameError:
            continue


def _oldest(model: Model, signature: str | None, family: str, releases: list[tuple[str, Profile]]) -> Oldest:
    taken = ""
    for release, profile in releases:
        if refused := refusal(model, profile, signature):
            return Oldest(family, taken, f"{release} refuses {refused}")
        taken = release
    return Oldest(family, taken)


def delegation(model: Model, profile: Profile, signature: str | None = None) -> Delegation:
    """Return what XNNPACK takes of the subgraphs that a caller runs, as `profile` states it."""
    operators, partitions, left = 0, 0, []
    for root in choose_roots(model, signature):
        graph = view(rooted(model, root))
        operands: dict[int, Operand] = {}
        unpackable_tensors(graph, profile, operands)
        stays = {op.index: not is_delegated(graph, op, operands, profile) for op in graph.ops}
        operators += len(stays)
        partitions += _partitions(graph, stays)
        left += [f"{place_of(root.subgraph, op.index)} {op.name}" for op in graph.ops if stays[op.index]]
    return Delegation(operators, partitions, tuple(left))


def _partitions(graph: GraphView, stays: Mapping[int, bool]) -> int:
    """Return the number of groups that the delegate runs.

    A group begins with the first operator whose operands are computed, and grows by those of its kind while it can.
    Source: LiteRT 2.3 tflite/graph_info.cc PartitionGraphIntoIndependentNodeSubsets.
    """
    makers = {tensor: op.index for op in graph.ops for tensor in op.outputs if tensor >= 0}
    waits = {op.index: {makers[t] for t in op.inputs if t in makers} for op in graph.ops}
    done: set[int] = set()
    groups = 0
    while waits:
        kind = stays[next(index for index, needed in waits.items() if needed <= done)]
        while ready := [index for index, needed in waits.items() if stays[index] == kind and needed <= done]:
            done.update(ready)
            for index in ready:
                del waits[index]
        groups += not kind
    return groups
