"""Layouts: numbers of channels, columns, rows and elements that leave tails behind vectors of 2, 4, 8 and 16 lanes.

A kernel for vectors has a loop for whole vectors and another for the rest, so that it can be wrong for one remainder
only. Each number is one vector less or more one lane, or two vectors: so it occurs with and without a whole vector.
Images come in twos, and operands start at odd addresses behind others.

A model has one operator, so that nothing is asked about operators in a row: outputs in the place of inputs, memory that
is used again, the layout between two operators. Tensors of a file start at addresses that its reader chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, Sample, samples_of
from tflq.devices.conformance.grids import geometric, rearranging
from tflq.devices.conformance.grids.elementwise import ARITHMETIC, CHOOSING, Scales
from tflq.devices.conformance.grids.kinds import KINDS, kinds, version_of
from tflq.devices.conformance.grids.rearranging import Row
from tflq.devices.conformance.grids.summing import FIXED, OPTIONS
from tflq.devices.conformance.one_operator import T
from tflq.engine.kernels.facts import OPERATORS

TAILS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33)
#: A number, another one, and the number of images.
_Pair: TypeAlias = "tuple[int, int, int]"
#: Positions in TAILS between the number of one option and that of another.
_APART = 5
_WINDOW: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "dilation_h": 1, "dilation_w": 1}
_PLAIN: dict[str, Any] = {**_WINDOW, "groups": 1, "multiplier": 1, "activation": "NONE", "rank": 2, "rows": 3}
_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
#: Operators of one operand with all their options, and whether codes keep their scale.
_UNARY: tuple[tuple[str, tuple[str, dict[str, Any]] | None, bool], ...] = (
    ("ABS", ("AbsOptions", {}), False),
    ("HARD_SWISH", ("HardSwishOptions", {}), False),
    ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": 0.3}), False),
    ("LOGISTIC", None, False),
    ("QUANTIZE", ("QuantizeOptions", {}), False),
    ("RELU", None, False),
    ("RELU6", None, True),
    ("TANH", None, False),
)
#: Zero points in the middle of the codes, if that is not 0.
_MIDDLE = {"uint8": 128}


def drafts(seed: int, turn: int = 0, only: str = "", tails: Sequence[int] = TAILS) -> Iterator[Draft]:
    """Yield every operator, or one, in every layout; another turn has other numbers of images beside the tails."""
    rng = np.random.default_rng([seed, 12])
    pairs = list(_pairs(tails, turn))
    for kind in KINDS:
        for op in geometric.spaces(kind):
            choices = _choices(op, kind, pairs) if only in ("", op) else ()
            yield from (geometric.draft_of(rng, op, kind, choice) for choice in choices)
        others = (*_elements(rng, kind, pairs), *_rows(rng, kind, pairs), *_ties(rng, kind))
        yield from (draft for draft in others if only in ("", draft.op))
    for row in _moved(pairs):
        if only in ("", row[0]):
            yield from (rearranging.draft_of(rng, kind, row) for kind in kinds(row[0]) or KINDS)


def _pairs(tails: Sequence[int], turn: int) -> Iterator[_Pair]:
    for place, number in enumerate(tails):
        yield number, tails[(place + _APART + turn) % len(tails)], 1 + (place + turn) % 2


def _choices(op: str, kind: str, pairs: Sequence[_Pair]) -> Iterator[geometric.Choice]:
    """Yield channels with windows of one and of nine pixels, then columns; without what the covering array has."""
    options = (*geometric.spaces(kind)[op].options,)
    known = {tuple(row.get(name) for name in _SIZES) for row in geometric.covering(op, kind)}
    for number, other, batch in pairs:
        small = {"batch": batch, "height": 4, "width": 6, "kernel_h": 1, "kernel_w": 1}
        large = {**small, "batch": 3 - batch, "kernel_h": 3, "kernel_w": 3}
        for choice in (
            {**small, "depth": number, "filters": other, "units": other, "rows": batch},
            {**large, "depth": other, "filters": number, "units": number, "rows": batch},
            {**large, "depth": 6, "filters": 4, "width": number, "units": 4, "rows": number},
        ):
            made = {name: value for name, value in {**_PLAIN, **choice}.items() if name in options}
            if op == "TRANSPOSE_CONV":  # whose small image has half of these columns
                made["width"] *= 2
            if tuple(made.get(name) for name in _SIZES) not in known:
                yield made


#: Options by which a case repeats another one.
_SIZES = ("depth", "filters", "units", "rows", "width", "batch", "kernel_h", "kernel_w", "multiplier")


def _elements(rng: np.random.Generator, kind: str, pairs: Sequence[_Pair]) -> Iterator[Draft]:
    """Yield operators of every element, on flat tensors, and with an operand of one code a channel."""
    scales = Scales(rng, powers=False)
    for number, other, batch in pairs:
        for op, options, is_same in _UNARY:
            if kind in kinds(op):
                x = replace(scales.tensor(kind, (number,), 4.0), zero_point=_MIDDLE.get(kind, 0))
                fixed = OPERATORS[op].output.get(kind)
                y = x if is_same else scales.tensor(kind, (number,), 4.0)
                y = y if fixed is None else T(kind, (number,), *fixed)
                aim, version = _aim(number, "elements"), version_of(op, kind)
                yield Draft(op, aim, (x,), (y,), _samples(rng, x), options, version)
        for op, table in {**ARITHMETIC, **CHOOSING}.items():
            fused: dict[str, Any] = {"fused_activation_function": 0} if op in ARITHMETIC else {}
            options = (table, fused | ({"pot_scale_int16": False} if op in ("ADD", "SUB") else {}))
            flat, image, row = (number,), (batch, 3, other, number), (number,)
            for left, right, how in ((flat, flat, "elements"), (image, row, "channels, a code each")):
                a, b = (scales.tensor(kind, shape, 4.0) for shape in (left, right))
                y = scales.tensor(kind, left, 16.0 if op == "MUL" else 8.0)
                if op in CHOOSING:
                    b, y = (replace(t, scale=a.scale, zero_point=a.zero_point) for t in (b, y))
                yield Draft(op, _aim(number, how), (a, b), (y,), _samples(rng, a, b), options, 2)


def _samples(rng: np.random.Generator, *inputs: T) -> tuple[Sample, ...]:
    """Return twice as many samples: one code alone may have the result of a mistake by chance."""
    return samples_of(rng, inputs) + samples_of(rng, inputs)


def _aim(number: int, what: str) -> str:
    return f"layout: {number} {what}"


def _rows(rng: np.random.Generator, kind: str, pairs: Sequence[_Pair]) -> Iterator[Draft]:
    """Yield operators along rows, and means over images and over channels."""
    for number, other, batch in pairs:
        x = T(kind, (3, number), 0.05, _MIDDLE.get(kind, 0))
        for op, outputs in FIXED.items():
            if kind in outputs:
                options = (OPTIONS.get(op, "SoftmaxOptions"), {"beta": 1.0} if op == "SOFTMAX" else {})
                y = T(kind, x.shape, *outputs[kind])
                yield Draft(
                    op, _aim(number, "columns"), (x,), (y,), samples_of(rng, (x,)), options, version_of(op, kind)
                )
        image = replace(x, shape=(batch, 3, other, number))
        for op in ("MEAN", "REDUCE_MAX"):
            for axes, out in (((1, 2), (batch, number)), ((3,), (batch, 3, other))):
                y = T(kind, out, 0.02 if op == "MEAN" else 0.05, x.zero_point)
                inputs = (image, T("int32", (len(axes),), value=np.array(axes)))
                aim = _aim(number, "channels" if len(axes) > 1 else "channels, reduced")
                options = ("ReducerOptions", {"keep_dims": False})
                yield Draft(op, aim, inputs, (y,), samples_of(rng, inputs), options, version_of(op, kind))


#: Number of channels with ties: more than two vectors, and some behind them.
_CHANNELS = 37
_STEPS = {"padding": 1, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
#: Shapes of activations, weights and output by operator, and options: each channel sees 256 codes.
_TIED: Mapping[str, tuple[tuple[tuple[int, ...], ...], tuple[str, dict[str, Any]]]] = {
    "CONV_2D": (((1, 16, 16, 1), (_CHANNELS, 1, 1, 1), (1, 16, 16, _CHANNELS)), ("Conv2DOptions", _STEPS)),
    "DEPTHWISE_CONV_2D": (
        ((1, 16, 16, _CHANNELS), (1, 1, 1, _CHANNELS), (1, 16, 16, _CHANNELS)),
        ("DepthwiseConv2DOptions", {**_STEPS, "depth_multiplier": 1}),
    ),
    "FULLY_CONNECTED": (((256, 1), (_CHANNELS, 1), (256, _CHANNELS)), ("FullyConnectedOptions", {})),
}


def _ties(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    """Yield contractions whose multiplier is a power of two: every channel has ties of both signs."""
    for op, ((image, filters, made), options) in _TIED.items() if kind != "int16" else ():
        for bits in (1, 3, 6):
            weight, middle = 1 << max(0, bits - 3), _MIDDLE.get(kind, 0)
            x, w = T(kind, image, 0.5, middle), T(kind, filters, 0.25, middle, value=np.full(filters, weight + middle))
            bias = T("int32", (_CHANNELS,), 0.125, 0, value=weight * rng.integers(-9, 10, _CHANNELS))
            every = (np.arange(256) + CODES[kind][0]).astype(kind)
            fed = np.repeat(every, image[-1]).reshape(image)
            aim = f"layout: ties of {bits} bits in {_CHANNELS} channels"
            yield Draft(op, aim, (x, w, bias), (T(kind, made, 0.125 * 2**bits, middle),), ((fed,),), options, 4)


def _moved(pairs: Sequence[_Pair]) -> Iterator[Row]:
    """Yield operators that move codes: rows of each number, and operands behind each other at odd addresses."""
    for n, m, batch in pairs:
        image, aim = (batch, 2, 3, n), _aim(n, "channels")
        yield (
            "CONCATENATION",
            aim,
            [image, (batch, 2, 3, m)],
            [(batch, 2, 3, n + m)],
            {"axis": 3, "fused_activation_function": 0},
        )
        yield "SPLIT_V", aim, [(batch, 2, 3, n + m), [n, m], 3], [image, (batch, 2, 3, m)], {"num_splits": 2}
        yield "PAD", aim, [image, [[0, 0], [0, 1], [1, 0], [1, 2]]], [(batch, 3, 4, n + 3)], {}
        yield "SLICE", aim, [(batch, 2, 3, n + 3), [0, 1, 0, 1], [batch, 1, 3, n]], [(batch, 1, 3, n)], {}
        yield "TRANSPOSE", aim, [image, [0, 3, 1, 2]], [(batch, n, 2, 3)], {}
        yield "TRANSPOSE", _aim(n, "rows"), [(n, m), [1, 0]], [(m, n)], {}
        yield "RESHAPE", aim, [image, [batch * 6, n]], [(batch * 6, n)], {"new_shape": [batch * 6, n]}
        yield "PACK", aim, [(3, n), (3, n)], [(3, 2, n)], {"values_count": 2, "axis": 1}
        yield "UNPACK", aim, [(3, 2, n)], [(3, n)] * 2, {"num": 2, "axis": 1}
        yield "GATHER", aim, [(4, n), [3, 0, 2]], [(3, n)], {"axis": 0, "batch_dims": 0}
        yield "SPACE_TO_DEPTH", aim, [(batch, 2, 4, n)], [(batch, 1, 2, 4 * n)], {"block_size": 2}
        yield "DEPTH_TO_SPACE", aim, [(batch, 1, 2, 4 * n)], [(batch, 2, 4, n)], {"block_size": 2}
        yield "TILE", aim, [(3, n), [1, 2]], [(3, 2 * n)], {}
        for op in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
            sizes = {"align_corners": False, "half_pixel_centers": False}
            yield op, aim, [image, [3, 5]], [(batch, 3, 5, n)], sizes
