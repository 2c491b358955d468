"""A run in lines: the inputs, each output with its promise, and of classifiers the likeliest classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.escaping import shown
from tflq.ir import TensorSpec
from tflq.kernels.exactness import Exactness
from tflq.report.render.line import Line
from tflq.verification.results import InputFacts

#: Arrays up to this many elements are printed.
SHOWN = 10
#: Classes that are listed.
TOP = 5


def run_lines(
    profile: str, inputs: InputFacts, arrays: Mapping[str, NDArray[Any]], promises: Mapping[str, Exactness], output: str
) -> Iterator[Line]:
    """What the inputs were, each array, and where they were written."""
    seed = "" if inputs.seed is None else f", seed {inputs.seed}"
    yield Line(f"inputs: {inputs.source}{seed}; profile {profile}")
    for name, value in arrays.items():
        values = "" if value.size > SHOWN else f" = {value.ravel().tolist()}"
        yield Line(f"{shown(name)}: {value.dtype} {list(value.shape)}, {promises[name]}{values}")
    if output:
        yield Line(f"written to {output}")


def top_line(name: str, spec: TensorSpec, value: NDArray[Any], labels: Sequence[str]) -> Line | None:
    """The classes with the largest values of an output [1, N], in real units; None for other outputs."""
    if value.size < 2 or value.size != value.shape[-1] or value.dtype.kind not in "iuf":
        return None
    real, q = value.ravel().astype(np.float64), spec.quantization
    if q is not None and len(q.scale) == 1 and value.dtype.kind != "f":
        real = (real - int(q.zero_point[0] if len(q.zero_point) else 0)) * float(q.scale[0])
    best = np.argsort(-real, kind="stable")[:TOP]
    texts = (f"{labels[k] if k < len(labels) else k} {real[k]:.4g}" for k in map(int, best))
    return Line(f"top {len(best)} of {shown(name)}: {', '.join(texts)}", "strong")
