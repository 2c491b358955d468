"""Products of float32 added in another order or width than in the profile's kernel.

CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are rows of terms in the order ky, kx, channel; taps outside the image
are 0. The bias comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.engine.api.part import Part
from tflq.engine.kernels.geometry.taps import read_tap
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.multiply_add import fuse
from tflq.engine.profiles import Profile
from tflq.typing import Array

Floats = NDArray[np.float32]
#: Terms to add: the k-th factors of all results, float32 of one shape, for k in 0 .. K - 1.
Terms = tuple[list[Floats], list[Floats]]
#: A function that adds terms.
Order = Callable[[list[Floats], list[Floats]], Array]

#: The greatest number of products that are added one by one.
_MOST = 1 << 25


def _in_order(a: list[Floats], b: list[Floats]) -> Array:
    return _add([x * y for x, y in zip(a, b, strict=True)])


def _add(terms: list[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _fuse(a: list[Floats], b: list[Floats]) -> Array:
    total = np.zeros(np.broadcast_shapes(a[0].shape, b[0].shape), np.float32)
    for x, y in zip(a, b, strict=True):
        total = fuse(x, y, total)
    return total


def _in_lanes(lanes: int, add: Order) -> Order:
    """Return the order in which each lane adds every `lanes`-th term; lanes are added pairwise, neighbours last."""

    def order(a: list[Floats], b: list[Floats]) -> Array:
        sums = [add(a[lane::lanes], b[lane::lanes]) for lane in range(min(lanes, len(a)))]
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            sums = [sums[i] + sums[i + half] if i + half < len(sums) else sums[i] for i in range(half)]
        return sums[0]

    return order


def _pairwise(a: list[Floats], b: list[Floats]) -> Array:
    sums: list[Array] = [x * y for x, y in zip(a, b, strict=True)]
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
    return sums[0]


def _in_halves(a: list[Floats], b: list[Floats]) -> Array:
    """Return the result with products and sums in float16."""
    return _add([(x.astype(np.float16) * y.astype(np.float16)) for x, y in zip(a, b, strict=True)])


def _into_halves(a: list[Floats], b: list[Floats]) -> Array:
    """Return the result of float32 products with each sum rounded to float16."""
    total = np.zeros(np.broadcast_shapes(a[0].shape, b[0].shape), np.float16)
    for x, y in zip(a, b, strict=True):
        total = (total.astype(np.float32) + x * y).astype(np.float16)
    return total


def _in_doubles(a: list[Floats], b: list[Floats]) -> Array:
    return _add([x.astype(np.float64) * y for x, y in zip(a, b, strict=True)]).astype(np.float32)


#: Orders by name.
ORDERS: dict[str, Order] = {
    "sums in order": _in_order,
    "fused multiply-add, in order": _fuse,
    **{f"sums in {lanes} lanes": _in_lanes(lanes, _in_order) for lanes in (4, 8, 16)},
    **{f"fused multiply-add in {lanes} lanes": _in_lanes(lanes, _fuse) for lanes in (4, 8, 16)},
    "sums pairwise": _pairwise,
    "products and sums in float16": _in_halves,
    "sums in float16": _into_halves,
    "sums in float64": _in_doubles,
}


def mistaken_orders(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every order of a contraction of floats with constant weights."""
    if len(alone.got) != 1 or next(iter(alone.got.values())).dtype != np.float32:
        return
    if _terms(alone, profile) is None:
        return
    for name, order in ORDERS.items():
        yield name, _device(profile, order)


def _device(profile: Profile, order: Order) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        terms = _terms(alone, profile)
        if terms is None:
            return {}
        sums = order(*terms).astype(np.float32)
        operator = alone.op
        bias = _constant(alone, operator.inputs[2]) if len(operator.inputs) > 2 else None
        results = sums if bias is None else sums + bias
        prepared = alone.plan(profile).steps[0].prepared
        for part in parts_of(None if prepared is None else prepared.data, NumberClamp):
            results = np.clip(results, *part.value)
        return {tensor: results.astype(np.float32).reshape(dumped.shape)}

    return device


def _constant(alone: Part, tensor: int) -> Array | None:
    return alone.graph.constant(tensor)


def _terms(alone: Part, profile: Profile) -> Terms | None:
    """Return the factors of every result, (rows, 1) by (units,), or of depthwise filters (rows, C) by (C,)."""
    operator = alone.op
    name = operator.builtin
    if name not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED") or operator.inputs[0] not in alone.inputs:
        return None
    x, w = alone.inputs[operator.inputs[0]], _constant(alone, operator.inputs[1])
    (dumped,) = alone.got.values()
    if w is None or x.dtype != np.float32 or w.dtype != np.float32:
        return None
    if dumped.size * (w.size // w.shape[3 if name == "DEPTHWISE_CONV_2D" else 0]) > _MOST:
        return None
    if name == "FULLY_CONNECTED":
        rows = x.reshape(-1, w.shape[1])
        return [rows[:, k : k + 1] for k in range(w.shape[1])], list(np.ascontiguousarray(w.T))
    prepared = alone.plan(profile).steps[0].prepared
    window = next((part.value for part in parts_of(None if prepared is None else prepared.data, Window)), None)
    if window is None:
        return None
    taps = [_tap(x, window, ky, kx) for ky in range(w.shape[1]) for kx in range(w.shape[2])]
    if name == "DEPTHWISE_CONV_2D":
        times = w.shape[3] // x.shape[3]
        return [np.repeat(tap, times, axis=1) for tap in taps], list(w.reshape(-1, w.shape[3]))
    if w.shape[3] != x.shape[3]:
        return None  # grouped
    columns = [tap[:, c : c + 1] for tap in taps for c in range(x.shape[3])]
    return columns, list(np.ascontiguousarray(w.reshape(w.shape[0], -1).T))


def _tap(x: Floats, window: Window, ky: int, kx: int) -> Floats:
    """Return the values that one tap reads for every place, (N * out_h * out_w, C); 0 outside the image."""
    return np.ascontiguousarray(read_tap(x, window, ky, kx)).reshape(-1, x.shape[3])
