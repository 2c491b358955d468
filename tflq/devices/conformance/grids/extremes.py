"""Sums that need every bit of their register: many taps of one sign, and biases far beyond 24 bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, Sample, samples_of, zero_point
from tflq.devices.conformance.grids.directed import of_bits, parting_sum
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T
from tflq.typing import Array

_VALID = 1
#: Number of draws of scales until a bias alone distinguishes the right multiplier from less precise ones.
_DRAWS = 40_000
#: How the aims of these cases begin.
BEYOND = "sums beyond"
_LONG, _BIASED = f"{BEYOND} 24 bits: many taps", f"{BEYOND} 24 bits: bias"
#: By operator: shapes of activations, weights and output; options; the weights' axis of channels.
_WINDOW = {"padding": _VALID, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
_FORMS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], int, tuple[str, dict[str, Any]]], ...] = (
    ("CONV_2D", (1, 4, 4, 64), (4, 3, 3, 64), (1, 2, 2, 4), 0, ("Conv2DOptions", _WINDOW)),
    (
        "DEPTHWISE_CONV_2D",
        (1, 18, 17, 4),
        (1, 17, 17, 4),
        (1, 2, 1, 4),
        3,
        ("DepthwiseConv2DOptions", {**_WINDOW, "depth_multiplier": 1}),
    ),
    ("FULLY_CONNECTED", (2, 640), (4, 640), (2, 4), 0, ("FullyConnectedOptions", {"weights_format": 0})),
)


def drafts(seed: int, _turn: int = 0, only: str = "") -> Iterator[Draft]:
    """Yield contractions, then averages over large windows; of all operators, or of one."""
    rng = np.random.default_rng([seed, 6])
    for kind in KINDS:
        for op, image, filters, made, axis, options in (form for form in _FORMS if only in ("", form[0])):
            for aim in (_LONG, _BIASED):
                yield _contraction(rng, kind, aim, op, image, filters, made, axis, options)
        yield _average(rng, kind)


def _contraction(
    rng: np.random.Generator,
    kind: str,
    aim: str,
    op: str,
    image: tuple[int, ...],
    filters: tuple[int, ...],
    made: tuple[int, ...],
    axis: int,
    options: tuple[str, dict[str, Any]],
) -> Draft:
    """Return a contraction: channel 0 has only the highest weights, channel 1 only the lowest, the others any."""
    x = T(kind, image, _scale(rng, -8, -5), zero_point(rng, kind))
    low, high = (0, 255) if kind == "uint8" else (-127, 127)
    value = rng.integers(low, high + 1, filters)
    channels = np.moveaxis(value, axis, 0)
    if aim == _LONG:
        channels[0], channels[1] = high, low
    taps, codes = value.size // filters[axis], CODES[kind]
    reach = taps * 127 * (codes[1] - codes[0]) if aim == _LONG else 2**30
    for _ in range(_DRAWS):
        weight, output = _scale(rng, -9, -6), 0.4 * 2.0 ** rng.uniform(-0.5, 0.5)
        product = float(np.float32(float(x.scale) * weight))
        made_scale = float(np.float32(product * reach / (output * (codes[1] - codes[0]))))
        real = float(x.scale) * weight / made_scale
        reals = (float(np.float32(product) / np.float32(made_scale)), of_bits(14)(real), of_bits(31)(real))
        right, *others = (_multiplier(r, kind) for r in (real, *reals[: 2 if kind == "int16" else 3]))
        if aim == _LONG or right not in others:
            parting = [parting_sum(right, other) for other in others]
            if aim == _LONG or None not in parting:
                break
    w = T("uint8" if kind == "uint8" else "int8", filters, weight, 128 * (kind == "uint8"), value=value)
    y = T(kind, made, made_scale, zero_point(rng, kind))
    largest = 2**25 if aim == _BIASED else 2**10
    offsets = rng.integers(-largest, largest, filters[axis])
    if aim == _BIASED:
        chosen = [offset if total is None else total for total, offset in zip(parting, offsets, strict=False)]
        offsets[: len(chosen)] = chosen
    bias = T("int64" if kind == "int16" else "int32", offsets.shape, product, 0, value=offsets)
    inputs = (x, w, bias)
    flat = np.full(image, x.zero_point, kind)  # the sums are the biases
    return Draft(op, aim, inputs, (y,), (*samples_of(rng, inputs), *_full(kind, image), (flat,)), options, 5)


def _multiplier(real: float, kind: str) -> float:
    """Return the multiplier of the kernels: sums of int16 use 15 of its 31 bits."""
    return of_bits(15)(of_bits(31)(real)) if kind == "int16" else real


def _average(rng: np.random.Generator, kind: str) -> Draft:
    """Return a pool whose sum of codes exceeds 16 bits: 256 times -128 does not yet."""
    x = T(kind, (1, 17, 17, 3), _scale(rng, -7, -4), zero_point(rng, kind))
    y = T(kind, (1, 1, 1, 3), x.scale, x.zero_point)
    options = {"padding": _VALID, "stride_h": 1, "stride_w": 1, "filter_height": 17, "filter_width": 17}
    samples = (*samples_of(rng, (x,)), *_full(kind, tuple(x.shape)))
    return Draft("AVERAGE_POOL_2D", f"{BEYOND} 16 bits", (x,), (y,), samples, ("Pool2DOptions", options), 3)


def _scale(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def _full(kind: str, shape: Sequence[int]) -> tuple[Sample, ...]:
    """Return the highest code everywhere, then the lowest."""
    low, high = CODES[kind]
    filled: list[Array] = [np.full(shape, code, kind) for code in (high, low)]
    return tuple((one,) for one in filled)
