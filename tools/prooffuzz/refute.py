"""A search for an input that distinguishes two bindings with the verdict "equal".

It does not use the proof: geometry, sums and inputs are enumerated independently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import difference
from tflq.engine.kernels.families.contraction import Output
from tflq.errors import TflqError
from tflq.proof.operator import BoundOperator

#: Operators whose sums of products are enumerated.
PRODUCTS = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"))

Array = NDArray[Any]
Feed = dict[int, Array]

#: Maximum bits of a domain whose inputs are all tried, and number of a stage's sums that are all evaluated.
_EXHAUSTED, _SUMS = 12, 1 << 20
#: Number of runs on random inputs, and of places with a directed input.
_RANDOM, _PLACES = 120, 300


def counterexample(
    first: BoundOperator, second: BoundOperator, rng: np.random.Generator, most: int | None = None
) -> Feed | None:
    """Return an input on which the two differ, or which only one refuses; None if none of `most` inputs does."""
    tried = islice(feeds(first, second, rng), most)
    return next((feed for feed in tried if _differs(first, second, feed)), None)


def _differs(first: BoundOperator, second: BoundOperator, feed: Feed) -> bool:
    results = []
    for bound in (first, second):
        try:
            results.append(bound.run(feed))
        except TflqError:
            results.append({})
    one, other = results
    return one.keys() != other.keys() or any(not difference(one[t], other[t]).same for t in one)


def feeds(first: BoundOperator, second: BoundOperator, rng: np.random.Generator) -> Iterator[Feed]:
    """Yield all inputs of a small domain; else directed ones and many random ones."""
    if not first.inputs:
        yield {}
        return
    bits = sum(np.log2(_codes(first, t)[1]) * np.prod(first.shape(t)) for t in first.inputs)
    if bits <= _EXHAUSTED and all(first.dtype(t).kind in "iub" for t in first.inputs):
        yield from _exhausted(first)
        return
    yield from _directed(first, second, rng)
    if first.step.op in ("MEAN", "SUM"):
        yield from _balanced(first, rng)
    for number in range(_RANDOM):
        yield {t: _random(first, t, number % 6, rng) for t in first.inputs}
    step = int(rng.integers(1, 1 << 16)) | 1
    for number in range(
        0 if first.step.op in PRODUCTS else 256
    ):  # each place gets all codes of 8 bits, and 256 of 16 bits
        yield {t: _rotated(first, t, number * step, step) for t in first.inputs}


def _codes(bound: BoundOperator, tensor: int) -> tuple[int, int]:
    """Return the lowest code, and the number of codes; for other types a few values."""
    dtype, label = bound.dtype(tensor), bound.plan.operands[tensor].type.label
    if dtype.kind == "b":
        return 0, 2
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        return -8, 17
    if label in ("int4", "int2", "uint4"):
        return (0, 16) if label == "uint4" else (-8, 16) if label == "int4" else (-2, 4)
    return int(np.iinfo(dtype).min), 1 << 8 * dtype.itemsize


def _exhausted(bound: BoundOperator) -> Iterator[Feed]:
    spans = [_codes(bound, t) for t in bound.inputs for _ in range(int(np.prod(bound.shape(t))))]
    for values in product(*(range(low, low + count) for low, count in spans)):
        rest, feed = list(values), {}
        for t in bound.inputs:
            size = int(np.prod(bound.shape(t)))
            feed[t] = np.array(rest[:size]).astype(bound.dtype(t)).reshape(bound.shape(t))
            rest = rest[size:]
        yield feed


def _random(bound: BoundOperator, tensor: int, form: int, rng: np.random.Generator) -> Array:
    shape, dtype = bound.shape(tensor), bound.dtype(tensor)
    if dtype.kind in "fc":
        return (rng.normal(0, (0.1, 1, 5, 50, 1, 1)[form], shape)).astype(dtype)
    if dtype.kind not in "iub":
        return np.zeros(shape, dtype)
    low, count = _codes(bound, tensor)
    zero = min(max(int(bound.plan.operands[tensor].zero_point), low), low + count - 1)
    values = rng.integers(low, low + count, shape)
    if form == 1:
        values = rng.choice([low, zero, low + count - 1], shape)
    if form == 2:
        values = np.where(rng.random(shape) < 0.7, zero, values)
    if form == 3:
        values = zero + rng.integers(-9, 10, shape)
    if form == 4:
        values = np.full(shape, rng.integers(low, low + count))
    return np.clip(values, low, low + count - 1).astype(dtype)


def _rotated(bound: BoundOperator, tensor: int, start: int, step: int) -> Array:
    shape, dtype = bound.shape(tensor), bound.dtype(tensor)
    if dtype.kind not in "iu":
        return np.zeros(shape, dtype)
    low, count = _codes(bound, tensor)
    at = start * (2 * tensor + 1) + np.arange(int(np.prod(shape)), dtype=np.int64) * (step + 2 * tensor)
    return (at % count + low).astype(dtype).reshape(shape)


def _balanced(bound: BoundOperator, rng: np.random.Generator) -> Iterator[Feed]:
    """Yield inputs with codes around one level: sums of all sizes, at every place."""
    (tensor,) = bound.inputs
    low, count = _codes(bound, tensor)
    for level in range(low, low + count):
        spread = int(rng.choice([1, 2, 40, 200]))
        values = level + rng.integers(-spread, spread + 1, bound.shape(tensor))
        yield {tensor: np.clip(values, low, low + count - 1).astype(bound.dtype(tensor))}


def _directed(first: BoundOperator, second: BoundOperator, rng: np.random.Generator) -> Iterator[Feed]:
    """Yield inputs that reach sums on which two stages differ, by enumeration, at every place and channel."""
    data = [b.step.prepared.data for b in (first, second) if b.step.prepared is not None]
    outputs = [getattr(d, "output", None) for d in data]
    if not all(isinstance(output, Output) for output in outputs) or len(first.inputs) != 1:
        return
    seen = list(_seen(first))
    rng.shuffle(seen)  # type: ignore[arg-type]
    (tensor,) = first.inputs
    x = first.plan.operands[tensor]
    low, count = _codes(first, tensor)
    span = low - int(x.zero_point), low + count - 1 - int(x.zero_point)
    apart = _apart(outputs, len(_weights(first)), int(np.abs(_weights(first)).sum(axis=1).max()) * max(map(abs, span)))
    for channel, taps in seen[:_PLACES]:
        values = _solved([w for _, w in taps], span, apart[channel]) if apart[channel] else None
        if values is not None:
            codes = np.full(int(np.prod(x.shape)), int(x.zero_point))
            for (element, _), value in zip(taps, values, strict=True):
                codes[element] = value + int(x.zero_point)
            yield {tensor: codes.astype(first.dtype(tensor)).reshape(x.shape)}


def _apart(outputs: list[Any], channels: int, reach: int) -> list[set[int]]:
    """Return the sums from -reach to reach, or the middle ones, that two stages map to different codes, by channel."""
    half = min(reach, _SUMS // channels // 2)
    sums = np.arange(-half, half + 1, dtype=np.int64)
    codes = []
    for output in outputs:
        table = np.ascontiguousarray(np.repeat(sums[:, None], channels, 1).astype(output.bias.dtype))
        codes.append(np.empty(table.shape, output.pipeline.dtype))
        output.into(table, codes[-1])
    return [set(sums[one != other].tolist()) for one, other in zip(codes[0].T, codes[1].T, strict=True)]


def _weights(bound: BoundOperator) -> Array:
    """Return weights minus their zero point, (O, ...), with the output channels moved to the front."""
    data, w = bound.step.prepared.data, bound.step.node.constant(1).astype(np.int64)  # type: ignore[union-attr]
    w = w - int(data.weight_zero_point)
    return np.moveaxis(w, 3, 0).reshape(w.shape[3], -1) if bound.step.op.startswith("DEPTH") else w.reshape(len(w), -1)


def _seen(bound: BoundOperator) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield (channel, [(flat element of the input, weight)]) for every output of the first image."""
    x, w, w_shape = bound.step.node.input(0), _weights(bound), bound.step.node.input(1).shape
    if bound.step.op == "FULLY_CONNECTED":
        for channel in range(len(w)):
            yield channel, list(enumerate(w[channel].tolist()))
        return
    at = bound.step.prepared.data.window  # type: ignore[union-attr]
    if bound.step.op == "TRANSPOSE_CONV":
        yield from _spread(at, w, bound.step.node.input(2).shape, w_shape)
        return
    _, height, width, depth = x.shape
    is_depthwise = bound.step.op.startswith("DEPTH")
    per = 1 if is_depthwise else w_shape[3]
    for channel in range(len(w)):
        first = channel * depth // len(w) if is_depthwise else channel // (len(w) * per // depth) * per
        for oy, ox in product(range(at.out_h), range(at.out_w)):
            taps = []
            for ky, kx, c in product(range(at.kernel_h), range(at.kernel_w), range(per)):
                iy = oy * at.stride_h + ky * at.dilation_h - at.pad_top
                ix = ox * at.stride_w + kx * at.dilation_w - at.pad_left
                if 0 <= iy < height and 0 <= ix < width:
                    weight = int(w[channel][(ky * at.kernel_w + kx) * per + c])
                    taps.append(((iy * width + ix) * depth + first + c, weight))
            yield channel, taps


def _spread(at: Any, w: Array, x: Sequence[int], kernel: Sequence[int]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield (channel, [(flat element of the input, weight)]) for every output, by spreading every input pixel."""
    _, kernel_h, kernel_w, depth = kernel
    taps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for py, px, ky, kx in product(range(x[1]), range(x[2]), range(kernel_h), range(kernel_w)):
        y, column = py * at.stride_h + ky - at.pad_top, px * at.stride_w + kx - at.pad_left
        if 0 <= y < at.height and 0 <= column < at.width:
            tap = ((py * x[2] + px) * depth, (ky * kernel_w + kx) * depth)
            taps.setdefault((y, column), []).append(tap)
    for places, channel in product(taps.values(), range(len(w))):
        yield channel, [(e + c, int(w[channel][t + c])) for e, t in places for c in range(depth)]


def _solved(weights: list[int], span: tuple[int, int], targets: set[int]) -> list[int] | None:
    """Return values of the span whose weighted sum is one of the targets, by sets of sums; None if there are none."""
    sets = [{0}]
    for weight in weights:
        if (len(sets[-1]) * (span[1] - span[0]) if weight else 0) > 1 << 21:
            return None
        steps = range(span[0], span[1] + 1) if weight else (0,)
        sets.append({total + weight * value for total in sets[-1] for value in steps})
    hits = sets[-1] & targets
    if not hits:
        return None
    total, values = min(hits), []
    for weight, before in zip(reversed(weights), reversed(sets[:-1]), strict=True):
        steps = range(span[0], span[1] + 1) if weight else (0,)
        value = next(v for v in steps if total - weight * v in before)
        values.append(value)
        total -= weight * value
    return values[::-1]
