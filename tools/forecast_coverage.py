"""Measure whether the forecast of `tflq quantize` holds on fresh samples: random networks, five laws of the data.

    python tools/forecast_coverage.py [--nets 50] [--fresh 500] [--samples 64] [--seed 0]

Each network is quantized with 64 samples of a law, and run on fresh ones of the same law. A promise holds if the share
of fresh samples that keep its ratio is the promised one; its share is what 500 samples show, so a promise that is just
true fails in half of the cases. For comparison, `mean` counts how often fresh samples together stay within two standard
errors of the mean noise, as earlier versions promised. `beyond` are the estimated and the measured share of samples
that reach beyond the calibration data in some tensor.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tflq
from tflq.model.ir import Model, view
from tflq.quantization.frontier import Runner
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.params import codes_of, real
from tflq.typing import Array

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support.float_graphs import FloatGraph

LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "uniform": lambda random, shape: random.uniform(-1, 1, shape),
    "normal": lambda random, shape: random.normal(0, 1, shape),
    "laplace": lambda random, shape: random.laplace(0, 1, shape),
    "student t, 3 degrees": lambda random, shape: random.standard_t(3, shape),
    "normal, log-normal loudness": lambda random, shape: (
        random.normal(0, 1, shape) * random.lognormal(0, 0.7, (len(shape) and shape[0], *[1] * (len(shape) - 1)))
    ),
}


def network(seed: int) -> Model:
    """Return a network of one to three layers with weights: dense, or convolutions and a mean, then numbers."""
    g = FloatGraph(seed)
    random, options = g.random, dict.fromkeys(("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"), 1)
    outputs = int(random.integers(2, 9))
    if random.random() < 0.5:
        x = g.given(1, int(random.integers(8, 33)))
    else:
        x = g.given(1, 6, 6, 2)
        for _ in range(random.integers(1, 3)):
            count = int(random.integers(4, 13))
            operands = [x, g.weights(count, 3, 3, g.shape(x)[-1]), g.bias(count)]
            (x,) = g.op("CONV_2D", operands, {**options, "padding": 0, "fused_activation_function": 1})
        (x,) = g.op("MEAN", [x, g.constant([1, 2], "int32")], {"keep_dims": False})
    hidden = [int(random.integers(8, 25)) for _ in range(random.integers(0, 3))]
    for count in (*hidden, outputs):
        operands = [x, g.weights(count, g.shape(x)[-1]), g.bias(count)]
        (x,) = g.op("FULLY_CONNECTED", operands, {"fused_activation_function": int(count != outputs)})
    return g.model([x])


def noises(model: Model, made: Model, rows: Array) -> tuple[Array, Array]:
    """Return the noise of each sample, and its signal about the mean, of the first output."""
    ours, theirs = view(model), view(made)
    spec, result = theirs.tensors[theirs.inputs[0]], theirs.tensors[theirs.outputs[0]]
    floats = Runner(model, ours.outputs).each([{ours.inputs[0]: row[None]} for row in rows])
    codes = Runner(made, theirs.outputs).each([{theirs.inputs[0]: codes_of(spec, row[None])} for row in rows])
    f = np.array([v[ours.outputs[0]].reshape(-1) for v in floats], np.float64)
    q = np.array([real(result, v[theirs.outputs[0]]).reshape(-1) for v in codes], np.float64)
    return np.square(f - q).sum(axis=1), np.square(f - f.mean(axis=0)).sum(axis=1)


def beyond(model: Model, given: Array, fresh: Array) -> float:
    """Return the share of fresh samples that leave the range of the given ones in some tensor."""
    graph = view(model)
    tensors = [*graph.inputs, *(t for t in graph.computed if graph.tensors[t].type.name == "FLOAT32")]
    ends = []
    for rows in (given, fresh):
        runs = Runner(model, tensors).each([{graph.inputs[0]: row[None]} for row in rows])
        ends.append(np.array([[(v[t].min(), v[t].max()) for t in tensors] for v in runs]))
    low, high = ends[0][..., 0].min(axis=0), ends[0][..., 1].max(axis=0)
    return float(((ends[1][..., 0] < low) | (ends[1][..., 1] > high)).any(axis=1).mean())


def main() -> None:
    """Print a row for each law, and for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=int, default=50)
    parser.add_argument("--fresh", type=int, default=500)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        "| law | promise holds | mean holds | forecast off by, dB | beyond, estimated and measured |\n"
        "|---|---|---|---|---|"
    )
    rows: dict[str, list[tuple[bool, bool, float, float, float]]] = {law: [] for law in LAWS}
    for law, draw in LAWS.items():
        for net in range(args.nets):
            model, random = network(args.seed + net), np.random.default_rng([args.seed, net])
            shape = view(model).tensors[view(model).inputs[0]].shape[1:]
            given, fresh = (draw(random, (n, *shape)).astype(np.float32) for n in (args.samples, args.fresh))
            result = tflq.quantize(model, given, "fast")
            best = result.report.ranking[0]
            assert best.score is not None
            assert best.proof is not None
            assert best.proof.promise is not None
            noise, signal = noises(model, result.model, fresh)
            share, ratio = best.proof.promise
            keeps = noise <= signal.mean() / 10 ** (ratio / 10)
            error = best.score.noises.std() / math.sqrt(len(best.score.noises))
            is_within = noise.mean() <= best.score.noises.mean() + 2 * error
            off = abs(best.proof.sqnr - 10 * math.log10(signal.mean() / noise.mean()))
            held = compare_models(model, result.model, [{view(model).inputs[0]: row[None]} for row in given])
            estimates = held.records / args.samples, beyond(model, given, fresh)
            rows[law].append((bool(keeps.mean() >= share), bool(is_within), off, *estimates))
        print(_row(law, rows[law]), flush=True)
    print(_row("all", [row for found in rows.values() for row in found]))


def _row(law: str, found: list[tuple[bool, bool, float, float, float]]) -> str:
    columns = np.array(found, np.float64).T
    holds, mean, estimated, measured = (columns[k].mean() for k in (0, 1, 3, 4))
    middle = np.median(columns[2])
    return f"| {law} | {holds:.1%} of {len(found)} | {mean:.1%} | {middle:.1f} | {estimated:.1%}, {measured:.1%} |"


if __name__ == "__main__":
    main()
