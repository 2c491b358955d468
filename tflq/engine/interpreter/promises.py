"""The promises of a graph's results: a result is no more exact than its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.exactness import EXACT, Exactness


def promises_of(steps: Iterable[Step], variables: Collection[int]) -> Mapping[int, Exactness]:
    """Return, by tensor, the promise of every result of these steps. Inputs and constants are exact and left out.

    A step that reaches beyond its operands is assumed to read state from any other such step.
    """
    steps = tuple(steps)
    promises: dict[int, Exactness] = {}
    beyond: Exactness = EXACT
    for _ in range(2):  # once more for variables that carry values between runs
        for step in steps:
            sources = [promises[tensor] for tensor in step.inputs if tensor in promises]
            if step.kernel.session:
                sources.append(beyond)
            promise = step.promise.after(sources)
            if step.kernel.session:
                beyond = max(beyond, promise, key=lambda known: known.strength)
            promises.update(dict.fromkeys(step.outputs, promise))
            promises.update(dict.fromkeys(set(step.inputs) & set(variables), promise))
    return promises
