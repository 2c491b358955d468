"""Run many samples through one model, several at a time if that changes no bit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import ModelError, TflqError
from tflq.model.ir import Model, OperatorView, view, with_graph
from tflq.model.surgery.cut import upstream
from tflq.quantization.batching import batchable
from tflq.typing import Array

#: The graph's inputs of one sample, by tensor index, batch dimension included.
Sample = Mapping[int, Array]

#: The number of samples that run together, and the limit on bytes of their tensors.
BATCH, BATCH_BYTES = 32, 64 << 20


class Runner:
    """A model's first subgraph, whose tensors `keep` (None: its outputs) are returned for many samples.

    Samples are joined along axis 0 if all inputs have one row there, and if two joined samples give every kept tensor
    the same bits as apart; otherwise each runs alone. Shapes in the file that fix the batch to one are no obstacle: a
    tensor without a batch dimension gets one in front. `together` is the number of samples that may run together, if it
    is known. Samples of a streaming model, which has handles of variables, are steps in a row from its first values.
    """

    def __init__(
        self,
        model: Model,
        keep: Collection[int] | None = None,
        profile: str = "litert-ref",
        together: int | None = None,
    ) -> None:
        graph = view(model)
        self.kept = tuple(dict.fromkeys(graph.outputs if keep is None else keep))
        outputs = tuple(t for t in self.kept if graph.maker(t) is not None)
        operators = tuple(op.record for op in needed_operators(model, self.kept))
        tapped = replace(graph.record, outputs=outputs, operators=operators)
        self._model = replace(with_graph(model, tapped), signature_defs=None)
        self._batchable = batchable(self._model)
        self._is_stream = any(code.name == "VAR_HANDLE" for code in model.operator_codes)
        self._profile, self._known = by_name(profile), 1 if self._is_stream else together
        self._plans: dict[tuple[tuple[int, ...], ...], tuple[Plan, State]] = {}

    def run(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """Return the kept tensors of the samples in order, by tensor index: one or more samples at a time along axis 0.

        Samples that run alone keep the shapes of the model. All have the same shapes.
        """
        return (values for _, values in self._batches(samples, batch))

    def each(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """Yield the kept tensors like `run`, one sample at a time."""
        for count, values in self._batches(samples, batch):
            for row in range(count):
                yield values if count == 1 else {t: self._row(t, v, row) for t, v in values.items()}

    def one(self, sample: Sample) -> dict[int, Array]:
        """Return the kept tensors of one sample."""
        self._restart()
        return self._kept(self._model, sample)

    def _restart(self) -> None:
        if self._is_stream:
            self._plans = {shapes: (plan, State(bound=state.bound)) for shapes, (plan, state) in self._plans.items()}

    def _row(self, tensor: int, values: Array, row: int) -> Array:
        """Return one of the samples that ran together, in the shape that it has alone."""
        rank = len(view(self._model).tensors[tensor].shape)
        return values[row] if 0 < rank < values.ndim else values[row : row + 1]

    def _kept(self, model: Model, sample: Sample) -> dict[int, Array]:
        """Return the kept tensors of a sample, or of several joined ones, from the model or its batched form."""
        shapes = tuple(sample[t].shape for t in view(self._model).inputs)
        if shapes not in self._plans:
            by_tensor = dict(zip(view(self._model).inputs, shapes, strict=True))
            self._plans[shapes] = make_plan(model, self._profile, input_shapes=by_tensor), State()
        plan, state = self._plans[shapes]
        if plan.variables:
            state = State(bound=state.bound)  # variables are reset for every sample
        values = run(plan, sample, state).values
        for tensor in self.kept:
            if tensor not in sample and tensor not in values:
                values[tensor] = self._constant(plan, tensor)
        return {t: sample[t] if t in sample else values[t] for t in self.kept}

    def _constant(self, plan: Plan, tensor: int) -> Array:
        value = plan.constants[tensor]
        if value is None:
            raise ModelError("is never computed", tensor=plan.operands[tensor].name or f"#{tensor}")
        return value

    def _batches(self, samples: Iterable[Sample], batch: int) -> Iterator[tuple[int, dict[int, Array]]]:
        """Yield the number of samples, and their kept tensors."""
        self._restart()
        stream = iter(samples)
        waiting = list(islice(stream, 2))
        batch = self._batch(waiting, batch)
        while waiting:
            waiting.extend(islice(stream, max(0, batch - len(waiting))))
            yield min(batch, len(waiting)), self._together(waiting[:batch])
            waiting = waiting[batch:] or list(islice(stream, 1))

    def _together(self, samples: list[Sample]) -> dict[int, Array]:
        return self._kept(*((self._model, samples[0]) if len(samples) == 1 else (self._batchable, join(samples))))

    def together(self, samples: Iterable[Sample], most: int = BATCH) -> int:
        """Return how many of the samples can run together: at most `most`, as memory allows."""
        return self._batch(list(islice(samples, 2)), most)

    def _batch(self, head: list[Sample], batch: int) -> int:
        """Return how many samples run together, limited by BATCH_BYTES."""
        if self._known is not None:
            return min(batch, self._known)
        if len(head) < 2 or batch < 2 or any(x.shape[:1] != (1,) for sample in head for x in sample.values()):
            return 1
        if any(a.shape != head[1][t].shape for t, a in head[0].items()):
            return 1
        alone = [self.one(sample) for sample in head]
        try:
            pair = self._together(head)
        except TflqError:
            return 1
        if any(not _same(pair[t], v, alone[1][t]) for t, v in alone[0].items()):
            return 1
        kept = sum(v.nbytes for v in alone[0].values())
        return max(1, min(batch, BATCH_BYTES // max(1, kept), BATCH_BYTES // max(1, self._peak)))

    @property
    def _peak(self) -> int:
        """The bytes of the tensors that are alive at the same time, for a single sample."""
        return min((plan.peak_memory for plan, _ in self._plans.values()), default=0)


def executor(model: Model, profile: str) -> str:
    """Return the profile, or `litert-ref` if it does not take the model.

    Only `litert-xnnpack` reads weights with block scales directly.

    Raises:
        UnsupportedError, ModelError: A profile that was learned from a device lacks an operator; nothing replaces it.
    """
    details = [t.quantization.details for t in view(model).tensors if t.quantization is not None]
    if any(d is not None and d.table == "BlockwiseQuantization" for d in details):
        profile = "litert-xnnpack"
    try:
        make_plan(model, by_name(profile))
    except TflqError:
        if by_name(profile).is_learned:
            raise
        return "litert-ref"
    return profile


def needed_operators(model: Model, kept: Collection[int]) -> tuple[OperatorView, ...]:
    """Return the operators that tensors depend on; all operators if some have effects beyond their outputs."""
    graph = view(model)
    if len(model.subgraphs) > 1 or any(t.is_variable for t in graph.tensors):
        return graph.ops
    return upstream(graph.ops, kept)


def join(samples: Sequence[Sample]) -> dict[int, Array]:
    """Return several samples as one, along axis 0; one sample as it is, scalars among it."""
    if len(samples) == 1:
        return dict(samples[0])
    return {t: np.concatenate([sample[t] for sample in samples]) for t in samples[0]}


def _same(pair: Array, first: Array, second: Array) -> bool:
    """Return whether two samples that ran together gave the same bits as apart."""
    rows = first.shape[1:] if first.shape[:1] == (1,) else first.shape
    return pair.shape == (2, *rows) and pair.tobytes() == first.tobytes() + second.tobytes()
