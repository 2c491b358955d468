"""Search model inputs on which profiles differ that all fit a dump."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.localization import alone
from tflq.diagnosis.discrimination import Discrimination, distinguish
from tflq.diagnosis.hypotheses import device_of
from tflq.diagnosis.probes import random_values
from tflq.diagnosis.rows import computation
from tflq.engine.api.part import Part, part_of
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.typing import Array

#: Number of tried inputs.
_TRIALS = 12


def profiles_apart(model: Model, dump: Dump, names: Sequence[str]) -> Discrimination:
    """Search inputs on which the model's outputs differ under those profiles; if they never do, any tensor counts.

    Causes are profiles. Profiles that compute every operator of the model alike are one cause, named after the first.
    """
    distinct = _distinct(model, names)
    devices = [device_of(by_name(name)) for name in distinct]
    graph = view(model)
    best = distinguish(_trials(model, dump, graph.outputs), devices)
    if len(best.groups) < len(devices):
        inner = distinguish(_trials(model, dump, graph.computed), devices)
        best = inner if len(inner.groups) > len(best.groups) else best
    return Discrimination(None, tuple(distinct.values()), True, best.trials, best.groups)


def _distinct(model: Model, names: Sequence[str]) -> dict[str, str]:
    """Return one profile of each set that computes the whole model alike, and the name of the set."""
    parts = [alone(model, op.index) for op in view(model).ops]
    sets: dict[Hashable, list[str]] = {}
    for name in names:
        sets.setdefault(tuple(computation(part, by_name(name)) for part in parts), []).append(name)
    return {same[0]: " = ".join(same) for same in sets.values()}


def _trials(model: Model, dump: Dump, tensors: Sequence[int]) -> Iterator[tuple[tuple[Array, ...], Part]]:
    """Yield random inputs in the dump's shapes, and the whole model on them with those tensors as results."""
    graph = view(model)
    looked: Mapping[int, Array] = {t: np.empty(0) for t in tensors}
    for trial in range(_TRIALS):
        rng = np.random.default_rng(trial)
        inputs = []
        for tensor in graph.inputs:
            spec, known = graph.tensors[tensor], dump.tensors.get(tensor)
            if not isinstance(spec.type, TensorType):
                return
            shape = spec.shape if known is None else known.shape
            inputs.append(random_values(rng, CARRIER[spec.type], shape, trial))
        try:
            whole = part_of(model, range(len(graph.ops)), dict(zip(graph.inputs, inputs, strict=True)))
        except TflqError:
            return
        yield tuple(inputs), replace(whole, got=looked)
