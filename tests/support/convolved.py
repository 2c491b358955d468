"""A model of two convolutions, its right runs, and what is found of changed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support import suites
from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis.faults import Defect
from tflq.diagnosis.findings import investigate
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

Array = NDArray[Any]
REF = by_name("litert-ref")
NETWORK = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
#: The second operator of the network, a convolution with 16 channels whose result the third reads.
INDEX = 1


def network() -> Model:
    """Return a small network of images."""
    return load(NETWORK)


def runs(model: Model, count: int = 2, seed: int = 3) -> list[dict[int, Array]]:
    """Return all tensors of right runs on random codes."""
    draw = np.random.default_rng(seed)
    graph, plan = view(model), make_plan(model, REF)
    shape = graph.tensors[graph.inputs[0]].shape
    inputs = [draw.integers(-128, 128, shape).astype(np.int8) for _ in range(count)]
    kept = {*graph.inputs, *graph.last_writers}
    made = [run(plan, {graph.inputs[0]: x}, keep_all=True).values for x in inputs]
    return [{t: np.array(v) for t, v in values.items() if t in kept} for values in made]


def result(model: Model, index: int = INDEX) -> int:
    """Return the result of an operator."""
    return view(model).op(index).outputs[0]


def after_reading(change: Callable[[Array], Array], count: int = 2) -> list[dict[int, Array]]:
    """Return runs in which a result changed after it was read."""
    model = network()
    tensor = result(model)
    return [{**values, tensor: change(values[tensor].copy())} for values in runs(model, count)]


def alone(change: Callable[[int, Sequence[Array]], Array], count: int = 3) -> list[dict[int, Array]]:
    """Return the inputs and the changed results of one operator; `change` gets the sample and all right results."""
    model = network()
    tensor, kept = result(model), (view(model).op(INDEX).inputs[0], result(model))
    every = runs(model, count)
    right = [values[tensor] for values in every]
    changed = [{**values, tensor: change(k, right)} for k, values in enumerate(every)]
    return [{t: v for t, v in values.items() if t in kept} for values in changed]


def defect(samples: Sequence[dict[int, Array]], model: Model | None = None) -> Defect | None:
    """Return the fault that is no arithmetic."""
    model = model or network()
    explanation = investigate(model, [dump_of(model, one) for one in samples], REF).explanation
    return None if explanation is None else explanation.defect
