"""What the results of a graph are promised to be: no more than what they are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tflq.interpreter.plan import Step
from tflq.kernels.exactness import EXACT, Exactness


def promises_of(steps: Iterable[Step], variables: Collection[int]) -> Mapping[int, Exactness]:
    """By tensor, the promise of every result of these steps. Inputs and constants, which are not there, are exact.

    Steps that reach beyond their operands are taken to read whatever other such steps have left.
    """
    steps = tuple(steps)
    promises: dict[int, Exactness] = {}
    beyond: Exactness = EXACT
    for _ in range(2):  # once more for what variables carry from run to run
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
