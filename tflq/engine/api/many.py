"""Run a model on many samples: each with fresh variables, several at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tflq.engine.api.files import Source, load
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.arrays import admit, open_shape
from tflq.engine.interpreter.limits import Limits
from tflq.engine.kernels.kernel import Shape
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError
from tflq.model.ir import Model, view
from tflq.typing import Array

#: One sample: an array for each input of the graph, in order; or the array if there is one input.
Sample = Any


def run_many(
    model: Source | Model | str | os.PathLike[str],
    samples: Iterable[Sample],
    *,
    profile: str | Profile = "litert-ref",
    threads: int = 1,
    limits: Limits | None = None,
) -> list[list[Array]]:
    """Return the outputs of `model` for every sample, in the order of the samples and of the graph's outputs.

    Variables begin with their first values for each sample. Inputs may have other shapes than in the file, as after
    `resize_tensor_input`: operators are bound once for each combination of shapes.

    Args:
        model: A `.tflite` file, the bytes of one, or a Model.
        samples: Each a sequence of arrays, one for each input of the graph; or an array, for a model with one input.
        profile: The arithmetic: a name or a Profile.
        threads: The number of samples that run at the same time; results do not depend on it.
        limits: The limits on memory and work, for each sample.

    Raises:
        InputError: A sample does not have an array for every input, or has one that does not fit.
        UnsupportedError, ModelError, LimitError: See Interpreter.allocate_tensors and invoke.

    Example:
        >>> samples = np.zeros((3, 1, 8, 8, 1), np.int8)
        >>> results = tflq.run_many("golden/models/digits_mobilenet_int8.tflite", samples)
        >>> len(results), results[0][0].shape
        (3, (1, 10))
    """
    if threads < 1:
        raise OptionError("is too small", name="threads", expected="1 or more", got=threads)
    batch = _Batch(load(model), by_name(profile), limits)
    if threads == 1:
        return [batch.run(number, sample) for number, sample in enumerate(samples)]
    with ThreadPoolExecutor(threads, "tflq") as pool:
        return list(pool.map(lambda numbered: batch.run(*numbered), enumerate(samples)))


class _Batch:
    """A model with the plans of its samples, each made once, and states that belong to one thread."""

    def __init__(self, model: Model, profile: Profile, limits: Limits | None) -> None:
        self._model, self._profile, self._limits = model, profile, limits
        self._plans: dict[tuple[Shape, ...], Plan] = {}
        self._making, self._own = threading.Lock(), threading.local()

    def run(self, number: int, sample: Sample) -> list[Array]:
        """Return the outputs for one sample."""
        inputs = self._inputs(number, sample)
        plan = self._plan(tuple(value.shape for value in inputs.values()), list(inputs))
        if any(step.kernel.session for step in plan.steps):  # called subgraphs are planned during the run
            with self._making:
                trace = run(plan, inputs)
        else:
            trace = run(plan, inputs, self._state(plan))
        return [trace.values[tensor].copy() for tensor in plan.outputs]

    def _state(self, plan: Plan) -> State:
        """Return a state of this thread without variables; its routine is kept."""
        states: dict[int, State] = self._own.__dict__.setdefault("states", {})
        before = states.get(id(plan), State())
        if not before.routine or plan.variables:
            before = State(bound=before.bound, known=before.known, routine=before.routine)
        states[id(plan)] = before
        return before

    def _plan(self, shapes: tuple[Shape, ...], tensors: Sequence[int]) -> Plan:
        with self._making:
            if shapes not in self._plans:
                by_tensor = dict(zip(tensors, shapes, strict=True))
                plan = make_plan(self._model, self._profile, input_shapes=by_tensor, limits=self._limits)
                self._plans[shapes] = plan
            return self._plans[shapes]

    def _inputs(self, number: int, sample: Sample) -> dict[int, Array]:
        graph = view(self._model)
        values = [sample] if hasattr(sample, "dtype") else list(sample)
        if len(values) != len(graph.inputs):
            raise InputError("number of arrays", name=f"sample {number}", expected=len(graph.inputs), got=len(values))
        inputs = {}
        for tensor, value in zip(graph.inputs, values, strict=True):
            spec = graph.tensors[tensor]
            shape = open_shape(spec)
            rank = None if shape is None else (-1,) * len(shape)
            inputs[tensor] = admit(value, spec.type, rank, f"sample {number}, {spec.name or f'#{tensor}'}")
        return inputs
