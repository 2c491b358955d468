"""Many samples through one model, several at a time where that changes no bit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import TflqError
from tflq.interpreter import Plan, State, make_plan, run
from tflq.ir import Model, Operator
from tflq.profiles import by_name

Array = NDArray[Any]
#: The graph's inputs of one sample, by tensor index, batch dimension included.
Sample = Mapping[int, Array]

#: Samples that are run together, and bytes of kept tensors that a batch may hold.
BATCH, BATCH_BYTES = 32, 64 << 20


class Runner:
    """A model's first subgraph, whose tensors `keep` (None: its outputs) are wanted for many samples.

    Samples are joined along axis 0 where all inputs have one row there, and where two of them joined give every kept
    tensor the very bits that they give apart; else each runs alone.
    """

    def __init__(self, model: Model, keep: Collection[int] | None = None, profile: str = "litert-ref") -> None:
        graph = model.subgraphs[0]
        self.kept = tuple(dict.fromkeys(graph.outputs if keep is None else keep))
        made = {t for operator in graph.operators for t in operator.outputs}
        tapped = replace(graph, outputs=tuple(t for t in self.kept if t in made), operators=_needed(model, self.kept))
        self._model = replace(model, subgraphs=(tapped, *model.subgraphs[1:]), signature_defs=None)
        self._profile = by_name(profile)
        self._plans: dict[tuple[tuple[int, ...], ...], tuple[Plan, State]] = {}

    def run(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """The kept tensors of the samples in order, by tensor index: one or more samples at a time along axis 0.

        Samples that run alone keep the shapes that the model gives them. All have the same shapes.
        """
        return (values for _, values in self._batches(samples, batch))

    def each(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """As `run`, one sample at a time."""
        for count, values in self._batches(samples, batch):
            for row in range(count):
                yield values if count == 1 else {t: v[row : row + 1] for t, v in values.items()}

    def one(self, sample: Sample) -> dict[int, Array]:
        """The kept tensors of one sample."""
        shapes = tuple(sample[t].shape for t in self._model.subgraphs[0].inputs)
        if shapes not in self._plans:
            by_tensor = dict(zip(self._model.subgraphs[0].inputs, shapes, strict=True))
            self._plans[shapes] = make_plan(self._model, self._profile, input_shapes=by_tensor), State()
        plan, state = self._plans[shapes]
        if plan.variables:
            state = State(bound=state.bound)  # every sample begins anew
        values = run(plan, sample, state).values
        return {t: sample[t] if t in sample else values[t] for t in self.kept}

    def _batches(self, samples: Iterable[Sample], batch: int) -> Iterator[tuple[int, dict[int, Array]]]:
        """How many samples, and their kept tensors."""
        stream = iter(samples)
        waiting = list(islice(stream, 2))
        batch = self._batch(waiting, batch)
        while waiting:
            waiting.extend(islice(stream, max(0, batch - len(waiting))))
            yield min(batch, len(waiting)), self._together(waiting[:batch])
            waiting = waiting[batch:] or list(islice(stream, 1))

    def _together(self, samples: list[Sample]) -> dict[int, Array]:
        return self.one(samples[0] if len(samples) == 1 else _joined(samples))

    def _batch(self, head: list[Sample], batch: int) -> int:
        """How many samples run together: at most `batch`, fewer where they would hold more than BATCH_BYTES."""
        if len(head) < 2 or batch < 2 or any(x.shape[:1] != (1,) for sample in head for x in sample.values()):
            return 1
        if any(a.shape != head[1][t].shape for t, a in head[0].items()):
            return 1
        alone = [self.one(sample) for sample in head]
        try:
            joined = self.one(_joined(head))
        except TflqError:
            return 1
        if any(v.shape[:1] != (1,) or not _same(joined[t], v, alone[1][t]) for t, v in alone[0].items()):
            return 1
        return max(1, min(batch, BATCH_BYTES // max(1, sum(v.nbytes for v in alone[0].values()))))


def executor(model: Model, profile: str) -> str:
    """The profile, or `litert-ref` where it does not take the model."""
    try:
        make_plan(model, by_name(profile))
    except TflqError:
        return "litert-ref"
    return profile


def _needed(model: Model, kept: Collection[int]) -> tuple[Operator, ...]:
    """The operators that the kept tensors hang on; all of them where some have effects beyond their outputs."""
    graph = model.subgraphs[0]
    if len(model.subgraphs) > 1 or any(t.is_variable for t in graph.tensors):
        return graph.operators
    wanted, chosen = set(kept), []
    for operator in reversed(graph.operators):
        if wanted.intersection(operator.outputs):
            chosen.append(operator)
            wanted.update(operator.inputs)
    return tuple(reversed(chosen))


def _joined(samples: list[Sample]) -> dict[int, Array]:
    return {t: np.concatenate([sample[t] for sample in samples]) for t in samples[0]}


def _same(joined: Array, first: Array, second: Array) -> bool:
    """Whether the joined run holds the very bits of both."""
    apart = np.concatenate([first, second])
    return joined.shape == apart.shape and joined.tobytes() == apart.tobytes()
