"""Agreement of several runtimes on an integer model, operator by operator and at its outputs.

Each operator runs alone under every runtime, on the inputs that the first runtime computes: a difference there is its
own. Then the whole model runs under each runtime, and the outputs show the remaining differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import Model, view
from tflq.model.surgery.cut import cut
from tflq.quantization.batching import batchable
from tflq.quantization.params import codes_of
from tflq.quantization.runner import Runner, Sample, join
from tflq.typing import Array

#: The limit on bytes of all kept tensors of the samples, and the least number of samples.
LOOKED_AT, LEAST = 64 << 20, 4

#: Tensors by index, for one or more samples along axis 0.
Values = Mapping[int, Array]


@dataclass(frozen=True, slots=True)
class OperatorDifferences:
    """One operator on the same inputs under each runtime: its number of elements, and how many differ.

    `differing` has one entry for each runtime after the first, with which they are compared.
    """

    index: int
    op: str
    elements: int
    differing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Portability:
    """Agreement of runtimes with the first one, over some samples.

    `elements` is the number of elements of the model's outputs. `differing` counts, for each other runtime, those that
    differ if the whole model runs there. `operators` give the differences that each operator adds alone.
    """

    runtimes: tuple[str, ...]
    samples: int
    elements: int
    differing: tuple[int, ...]
    operators: tuple[OperatorDifferences, ...]

    @property
    def total(self) -> int:
        """Number of elements that operators alone compute differently, over all runtimes."""
        return sum(sum(operator.differing) for operator in self.operators)


class Alone:
    """One operator of a model, run by itself under several runtimes."""

    def __init__(self, model: Model, index: int, profiles: Sequence[Profile]) -> None:
        self._whole, self._index, self._profiles = model, index, profiles
        self._cuts: dict[bool, tuple[Model, tuple[int, ...]]] = {}
        self._plans: dict[tuple[int, tuple[tuple[int, ...], ...]], Plan] = {}

    def results(self, values: Values) -> list[dict[int, Array]]:
        """Return the results of the operator for `values` under each runtime, by the original tensor index."""
        model, tensors = self._cut(values)
        graph = view(model)
        inputs = {i: values[tensors[i]] for i in graph.inputs}
        shapes = tuple(array.shape for array in inputs.values())
        results = []
        for number, profile in enumerate(self._profiles):
            if (number, shapes) not in self._plans:
                by_input = {i: array.shape for i, array in inputs.items()}
                self._plans[number, shapes] = make_plan(model, profile, input_shapes=by_input)
            trace = run(self._plans[number, shapes], inputs, State())
            results.append({tensors[i]: trace.values[i] for i in graph.outputs})
        return results

    def _cut(self, values: Values) -> tuple[Model, tuple[int, ...]]:
        """Return the operator as a model; for joined samples with shapes in the file that take any number of them."""
        tensors = view(self._whole).tensors
        read = [t for t in view(self._whole).op(self._index).inputs if t in values]
        is_joined = any(values[t].shape != tuple(tensors[t].shape) for t in read)
        if is_joined not in self._cuts:
            self._cuts[is_joined] = cut(batchable(self._whole) if is_joined else self._whole, [self._index])
        return self._cuts[is_joined]


def differing(results: Sequence[Values]) -> tuple[int, ...]:
    """Return, for each result after the first, the number of elements that differ from the first."""
    first, *others = results
    return tuple(sum(int(np.count_nonzero(unequal(first[t], other[t]))) for t in first) for other in others)


def portability(model: Model, inputs: Sequence[int], samples: Iterable[Sample], runtimes: Sequence[str]) -> Portability:
    """Compare runtimes on as many samples as LOOKED_AT allows. `inputs` are the samples' names of the model's inputs.

    Raises:
        TflqError: A runtime does not take the model.
    """
    profiles, graph = [by_name(name) for name in runtimes], view(model)
    batches, count = batched(model, inputs, samples, profiles)
    values = [dict(batch) for batch in batches]
    left = graph.uses()
    operators = []
    for operator in graph.ops:
        alone, counts, elements = Alone(model, operator.index, profiles), np.zeros(len(profiles) - 1, np.int64), 0
        for batch in values:
            results = alone.results(batch)
            counts += differing(results)
            elements += sum(array.size for array in results[0].values())
            batch.update(results[0])
        forget(values, left, operator.inputs)  # all samples of a large model do not fit at once
        found = tuple(map(int, counts))
        operators.append(OperatorDifferences(operator.index, operator.builtin, elements, found))
    whole = batchable(model) if count > len(batches) else model
    outputs = [list(Runner(whole, graph.outputs, name).run(batches, 1)) for name in runtimes]
    ends = sum((np.array(differing(results)) for results in zip(*outputs, strict=True)), np.zeros(len(profiles) - 1))
    size = sum(array.size for row in outputs[0] for array in row.values())
    return Portability(tuple(runtimes), count, size, tuple(map(int, ends)), tuple(operators))


def batched(
    model: Model, inputs: Sequence[int], samples: Iterable[Sample], profiles: Sequence[Profile]
) -> tuple[list[Sample], int]:
    """Return the first samples as the model takes them, and their number.

    They are joined if that changes no runtime's bits.
    """
    graph = view(model)
    pairs = list(zip(inputs, graph.inputs, strict=True))
    size = sum(prod(graph.tensors[t].shape) for operator in graph.ops for t in operator.outputs)
    first = islice(samples, max(LEAST, LOOKED_AT // max(1, size)))
    codes = [{n: codes_of(graph.tensors[n], sample[o]) for o, n in pairs} for sample in first]
    together = min(Runner(model, None, profile.name).together(codes) for profile in profiles)
    groups = [codes[start : start + together] for start in range(0, len(codes), together)]
    return [join(group) if len(group) > 1 else group[0] for group in groups], len(codes)


def forget(values: Sequence[dict[int, Array]], left: Counter[int], read: Sequence[int]) -> None:
    """Drop the tensors that an operator was the last to read; `left` counts remaining readers."""
    left.subtract(read)
    for tensor in read:
        if left[tensor] <= 0:
            for batch in values:
                batch.pop(tensor, None)
