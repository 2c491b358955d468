"""Whole graphs by number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphfuzz.graph import Graph, NotDrawnError
from graphfuzz.steps import STEPS
from tflq.model.flatbuf import write
from tflq.typing import Array

_ATTEMPTS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A model with two samples of its inputs, whose batch may be another than the file's; `names` are its operators."""

    model: bytes
    samples: list[list[Array]]
    names: list[str]


def draw(seed: int, number: int) -> Drawn | None:
    """Return a graph of one to five operators, besides those that unpack constants; None if none fits."""
    g = Graph(np.random.default_rng([seed, number]))
    kind = g.choose("float32", "float32", "float32", "int8", "int8", "int8", "uint8", "int16")
    rank = g.choose(4, 4, 4, 4, 3, 2)
    shape = (g.choose(1, 1, 1, 2), *(g.number(1, 9) for _ in range(rank - 1)))
    for _ in range(g.choose(1, 1, 2)):
        g.give(kind, shape)
    steps = g.number(1, 6)
    for _ in range(_ATTEMPTS):
        before = g.remember()
        try:
            g.choose(*STEPS)(g)
            steps -= 1
        except NotDrawnError:
            g.recall(before)
        if steps == 0:
            break
    if not g.operators:
        return None
    outputs = g.results()
    inner = [t for t in g.computed if t not in outputs and t not in g.inputs]
    if inner and g.toss(0.2):
        outputs.append(g.choose(*inner))
    model = write(g.model(outputs))
    if g.toss(0.25):
        batch = g.number(1, 4)
        for tensor in g.inputs:
            g.tensors[tensor] = replace(g.tensors[tensor], shape=(batch, *g.shape(tensor)[1:]))
    samples = [[g.draw(g.kind(t), g.shape(t)) for t in g.inputs] for _ in range(2)]
    return Drawn(model, samples, g.names())
