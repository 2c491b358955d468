"""Tensors that a runtime never writes: their memory holds anything, so it is neither compared nor read.

A recording names those that a test found: their memory kept what it was filled with before the run, or changed with
inputs that they do not depend on. For recordings and dumps without that test the structure of the model decides
(tflq/engine/interpreter/unpacking.py): such a tensor was not written if it differs from the computed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.comparison.verification.results import NOT_WRITTEN, Located
from tflq.engine.interpreter.unpacking import constant_results, unpack_tensors
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Runtime, Step
from tflq.engine.runtimes.runtime import Content
from tflq.errors import TflqError
from tflq.model.ir import Model, Root, view
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Tensors of a graph: `seen` were not written, `possible` were not if they differ from the computed value."""

    seen: frozenset[int] = frozenset()
    possible: frozenset[int] = frozenset()

    def holds(self, tensor: int, *, differs: bool) -> bool:
        """Return whether the tensor was not written; `differs`: from the computed value."""
        return tensor in self.seen or (differs and tensor in self.possible)


def unwritten(model: Model, profile: Profile, seen: Iterable[int] = ()) -> Unwritten:
    """Return the tensors that a runtime with a profile may not write, and those `seen` not to be written."""
    return Unwritten(frozenset(seen), unpack_tensors(view(model), profile))


def without_unwritten(located: Located, gaps: Unwritten) -> Located:
    """Return the comparison of an operator without results that the runtime never wrote."""
    known = {**dict.fromkeys(located.notes, False), **{t: not d.same for t, d in located.differences.items()}}
    lost = tuple(t for t, differs in known.items() if t in located.shapes and gaps.holds(t, differs=differs))
    if not lost:
        return located
    kept = {t: d for t, d in located.differences.items() if t not in lost}
    notes = {**located.notes, **dict.fromkeys(lost, NOT_WRITTEN)}
    return replace(located, differences=kept, notes=notes, unwritten=lost)


def unwritten_by_test(
    runtime: Runtime,
    tapped: Content,
    steps: Mapping[Root, tuple[Model, Step]],
    taps: Mapping[Root, Mapping[str, int]],
    observed: Mapping[Root, Sequence[Mapping[str, Array | None]]],
) -> dict[Root, frozenset[int]]:
    """Return the results of constants that a runtime does not write, by signature.

    The model with all tensors as outputs runs once more on zeros, on filled memory: what a runtime writes of constants
    is the same as in the runs before.

    Args:
        runtime: The runtime, which has a delegate.
        tapped: The file of the model with all tensors as outputs.
        steps: The graph and a step of each signature.
        taps: The tensors that the outputs are, by signature and name.
        observed: The outputs of earlier runs, by signature.
    """
    found: dict[Root, frozenset[int]] = {}
    for root, (model, step) in steps.items():
        constants = constant_results(view(model))
        names = {name: tensor for name, tensor in taps[root].items() if tensor in constants}
        again = _again(runtime, tapped, replace(step, poisoned=tuple(names))) if names else {}
        runs = observed[root]
        found[root] = frozenset(
            t for name, t in names.items() if name in again and any(_apart(again[name], run.get(name)) for run in runs)
        )
    return found


def _again(runtime: Runtime, tapped: Content, step: Step) -> Mapping[str, Array | None]:
    """Return the outputs of another run: on zeros, or on the same inputs if the runtime refuses zeros."""
    zeros = {name: value if value.dtype.hasobject else np.zeros_like(value) for name, value in step.inputs.items()}
    for inputs in (zeros, step.inputs):
        try:
            return runtime.run_steps([tapped], [[replace(step, inputs=inputs)]]).outputs[0][0][0]
        except TflqError:
            continue
    return {}


def _apart(one: Array | None, other: Array | None) -> bool:
    """Return whether two values have other bytes; False if one is missing."""
    return one is not None and other is not None and one.tobytes() != other.tobytes()
