"""Pools, reductions and operators along a row: sums, divisions and exponentials."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tflq.devices.conformance.draft import Draft, samples_of, zero_point
from tflq.devices.conformance.grids.contracting import ACTIVATIONS, SAME, VALID
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T
from tflq.engine.kernels.facts import OPERATORS

AXES = ((1, 2), (1,), (3,), (0, 3))
FIXED = {op: OPERATORS[op].output for op in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")}
OPTIONS = {"LOG_SOFTMAX": "LogSoftmaxOptions", "L2_NORMALIZATION": "L2NormOptions"}


def drafts(seed: int) -> Iterator[Draft]:
    """Yield pools, reductions and operators along a row."""
    rng = np.random.default_rng([seed, 3])
    for kind in KINDS:
        yield from _pools(rng, kind)
        yield from _reductions(rng, kind)
        yield from _rows(rng, kind)


def _pools(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    windows = ((1, 1), (2, 2), (3, 2), (4, 5))
    for op, kernel, stride, padding, activation in product(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D"), windows, (1, 2), (SAME, VALID), ACTIVATIONS
    ):
        x = T(kind, (1, 6, 5, 7), float(np.float32(rng.uniform(0.01, 0.1))), zero_point(rng, kind))
        out = [
            -(-n // stride) if padding == SAME else (n - k) // stride + 1 for n, k in zip((6, 5), kernel, strict=True)
        ]
        y = T(kind, (1, *out, 7), x.scale, x.zero_point)
        options = {
            "padding": padding,
            "stride_h": stride,
            "stride_w": stride,
            "filter_height": kernel[0],
            "filter_width": kernel[1],
            "fused_activation_function": activation,
        }
        aim = f"quotients by {kernel[0] * kernel[1]}" if op == "AVERAGE_POOL_2D" else "order"
        aim = f"{aim}; {ACTIVATIONS[activation]}"
        yield Draft(op, aim, (x,), (y,), samples_of(rng, (x,)), ("Pool2DOptions", options), 3)


def _reductions(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    ops = ["MEAN", "REDUCE_MAX", "REDUCE_MIN"] + ["SUM"] * (kind == "uint8")
    for op, axes, keep, turn in product(ops, AXES, (True, False), range(6)):
        shape = (2, 4, 5, 17)
        powers = turn % 2 == 0
        exponents = rng.uniform(-7, -3), rng.uniform(-1, 1)
        scale, ratio = (float(np.float32(2.0 ** (round(e) if powers else e))) for e in exponents)
        x = T(kind, shape, scale, zero_point(rng, kind))
        out = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
        count = int(np.prod([shape[a] for a in axes]))
        growth = {"MEAN": 0.3, "SUM": count**0.5}.get(op, 1.0)
        y = T(kind, out, x.scale, x.zero_point)
        if growth != 1.0:
            y = T(kind, out, float(np.float32(scale * ratio * growth)), zero_point(rng, kind))
        listed = T("int32", (len(axes),), value=np.array(axes))
        aim = f"sums of {count} codes; " + ("ties: powers of two" if powers else "odd scales")
        options = ("ReducerOptions", {"keep_dims": keep})
        yield Draft(op, aim, (x, listed), (y,), samples_of(rng, (x, listed)), options, 2)


def _rows(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    for width, turn in product((1, 2, 5, 17, 64), range(8)):
        exponent = rng.uniform(-7, -2)
        scale = float(np.float32(2.0 ** (round(exponent) if turn % 2 else exponent)))
        x = T(kind, (8, width), scale, zero_point(rng, kind))
        for op, outputs in FIXED.items():
            if kind not in outputs:
                continue
            y = T(kind, x.shape, *outputs[kind])
            options = (OPTIONS.get(op, "SoftmaxOptions"), {"beta": (1.0, 0.5)[turn // 4]} if op == "SOFTMAX" else {})
            aim = f"rows of {width}; " + ("powers of two" if turn % 2 else "odd scales")
            yield Draft(op, aim, (x,), (y,), samples_of(rng, (x,)), options, 2)
