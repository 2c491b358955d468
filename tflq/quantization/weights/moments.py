"""Second moments of what weights are multiplied by, over the steps of a float model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.engine.api.steps import Stepper
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Step
from tflq.model.ir import Model, view
from tflq.model.ir.signatures import choose_roots
from tflq.quantization.weights.places import Weight

Reals = NDArray[np.float64]


def moments(
    model: Model, profile: Profile, weights: Sequence[Weight], sequences: Iterable[Sequence[Step]]
) -> Mapping[int, Reals]:
    """Return the sum of x x^T over all inputs x of FULLY_CONNECTED, (inputs, inputs), by buffer of the weights.

    Weights that are looked up only, or that no signature multiplies by, have none.
    """
    places: dict[tuple[int, int], list[Weight]] = {}
    for weight in weights:
        for use in weight.uses:
            if use.op == "FULLY_CONNECTED":
                places.setdefault((use.subgraph, view(model, use.subgraph).op(use.operator).inputs[0]), []).append(
                    weight
                )
    sums: dict[int, Reals] = {}
    for steps in sequences:
        stepper = Stepper(model, profile)
        for step in steps:
            tensors = stepper.run(step, keep_all=True).tensors
            (root,) = choose_roots(model, step.signature)
            for (subgraph, tensor), readers in places.items():
                if subgraph == root.subgraph and tensor in tensors:
                    _add(sums, tensors[tensor], readers)
    return sums


def _add(sums: dict[int, Reals], values: NDArray[np.float32], readers: Sequence[Weight]) -> None:
    for weight in readers:
        rows = values.reshape(-1, weight.rows.shape[1]).astype(np.float64)
        square = rows.T @ rows
        sums[weight.buffer] = sums[weight.buffer] + square if weight.buffer in sums else square


def share(weight: Weight, square: Reals | None) -> Reals | None:
    """Return the moments by which weights are judged.

    Weights that are also looked up have no inputs there: each of their elements counts as much as the mean.
    """
    if square is None or not square.any():
        return None
    if "EMBEDDING_LOOKUP" in weight.ops:
        together: Reals = square + np.eye(len(square)) * np.trace(square) / len(square)
        return together
    return square
