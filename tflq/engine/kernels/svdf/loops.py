"""SVDF, compiled: one step of the filters, with the state changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.recurrent.activation import apply
from tflq.engine.numerics.dynamic_range import add_quantized, are_finite
from tflq.engine.numerics.lanes import add_products, dot_rows, sum_groups
from tflq.typing import Array


@in_pieces(lambda x, *rest: x.size * rest[5].shape[0] + rest[9].size, x="n", state="n", out="n")
@compiled
def step_floats(
    x: Array,
    is_fed: bool,
    is_float: bool,
    floats: Array,
    codes: Any,
    asymmetric: bool,
    time: Array,
    bias: Array,
    rank: Int,
    activation: Int,
    state: Array,
    out: Array,
    undefined: Array,
) -> None:
    """Fill `out` (N, U) and move `state` (N, F, M) on, by `x` (N, I). Sums: four lanes; ranks too; bias last.

    Features are `floats` (I, F) or what add_quantized takes, and count only if `is_fed`. `time` is (F, M), `bias` (U)
    or empty. `undefined` becomes 1 where a row cannot be quantized.

    Prepare guarantees: these shapes, and that F is U times `rank`.
    """
    filters, memory = time.shape
    latest, filtered = np.empty((1, filters), np.float32), np.empty(filters, np.float32)
    total = np.empty(out.shape[1], np.float32)
    for n in range(x.shape[0]):
        latest[0, :] = np.float32(0)
        row = x[n : n + 1]
        if is_fed and is_float:
            add_products(floats, row, latest)
        elif is_fed:
            if not are_finite(row):
                undefined[0] = 1
                return
            add_quantized(row, asymmetric, codes[0], codes[1], codes[2], codes[3], latest)
        for f in range(filters):
            for m in range(memory - 1):
                state[n, f, m] = state[n, f, m + 1]
            state[n, f, memory - 1] = latest[0, f]
        dot_rows(time, state[n], filtered)
        sum_groups(filtered, rank, total)
        for u in range(total.size):
            out[n, u] = apply(activation, total[u] + bias[u] if bias.size > 0 else total[u])


@in_pieces(lambda x, zero, features, out: x.size * features.shape[0], x="n", out="n")
@compiled
def sum_features(x: Array, zero: Int, features: Array, out: Array) -> None:
    """Compute out[n, f] = sum over i of (x[n, i] - zero) * features[f, i], which wraps int32.

    Prepare guarantees: `x` is (N, I), `features` (F, I), `out` (N, F).
    """
    for n in range(x.shape[0]):
        for f in range(features.shape[0]):
            total = np.int64(0)
            for i in range(x.shape[1]):
                total += np.int32(np.int32(x[n, i]) - zero) * np.int32(features[f, i])
            out[n, f] = np.int32(total)


@in_pieces(lambda latest, zero, offset, time, bias, rank, state, out: state.size, latest="n", state="n", out="n")
@compiled
def sum_moments(
    latest: Array, zero: Int, offset: Int, time: Array, bias: Array, rank: Int, state: Array, out: Array
) -> None:
    """Move `state` (N, F, M) on to `latest` (N, F) plus `offset`, which wraps; fill `out` (N, U), which wraps int32.

    `zero` is the state's zero point.
    Prepare guarantees: `time` is (F, M), `bias` (U) or empty, and F is U times `rank`.
    """
    memory = time.shape[1]
    for n in range(latest.shape[0]):
        for u in range(out.shape[1]):
            total = np.int64(0) if bias.size == 0 else np.int64(bias[u])
            for f in range(u * rank, (u + 1) * rank):
                for m in range(memory - 1):
                    state[n, f, m] = state[n, f, m + 1]
                state[n, f, memory - 1] = latest[n, f] + offset
                for m in range(memory):
                    total += (np.int64(state[n, f, m]) - zero) * np.int64(time[f, m])
            out[n, u] = np.int32(total)
