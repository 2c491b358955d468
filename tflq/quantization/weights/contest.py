"""Methods judged by the tokens that the quantized model predicts, on windows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.comparison.inspection.fidelity import decibels, divergences
from tflq.comparison.sessions.roles import Roles
from tflq.engine.api.steps import run_steps
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Step
from tflq.model.ir import Model
from tflq.quantization.weights.forms import Method
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Judged:
    """A method with its results: mean KL divergence of the next token (nats), dB of the logits, equal choices."""

    method: Method
    divergence: float
    noise: float
    agreement: float
    steps: int


def logits_of(model: Model, profile: Profile, roles: Roles, sequences: Sequence[Sequence[Step]]) -> Array:
    """Return the logits of all steps of decode, (steps, vocabulary)."""
    name = str(roles.logits)
    rows = [
        result.outputs[name].reshape(-1, result.outputs[name].shape[-1])[-1]
        for steps in sequences
        for result in run_steps(model, profile, steps)
        if result.step.signature == roles.signature
    ]
    return np.stack(rows)


def judged(method: Method, reference: Array, logits: Array) -> Judged:
    """Return the results of a method from the logits of the float and the quantized model."""
    return Judged(
        method,
        float(divergences(reference, logits).mean()),
        decibels(reference, logits),
        float((reference.argmax(-1) == logits.argmax(-1)).mean()),
        len(reference),
    )


def ranked(results: Sequence[Judged]) -> tuple[Judged, ...]:
    """Return the results, the least divergence first; of equal ones the first tried."""
    return tuple(sorted(results, key=lambda result: result.divergence))


def held_back(windows: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the windows to fit to, and every fourth to judge by; with fewer than four, all serve both."""
    if len(windows) < 4:
        return list(windows), list(windows)
    return [w for k, w in enumerate(windows) if k % 4 != 3], [w for k, w in enumerate(windows) if k % 4 == 3]


def signature_counts(sequences: Sequence[Sequence[Step]]) -> Mapping[str, int]:
    """Return the number of steps by signature."""
    counts: dict[str, int] = {}
    for steps in sequences:
        for step in steps:
            counts[str(step.signature)] = counts.get(str(step.signature), 0) + 1
    return counts
