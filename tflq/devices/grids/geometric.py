"""Geometries, options and layouts that leave tails behind.

Geometries and options of operators with windows and of products: every pair of values of two options, in few cases.

A device whose arithmetic is right can still take the wrong row: for one stride, one padding, one number of channels.
Each case differs from all others in its geometry, so that all of them belong to smoke.

Layouts: numbers of channels, columns, rows and elements that leave tails behind vectors of 2, 4, 8 and 16 lanes.

A kernel for vectors has a loop for whole vectors and another for the rest, so that it can be wrong for one remainder
only. Each number is one vector less or more one lane, or two vectors: so it occurs with and without a whole vector.
Images come in twos, and operands start at odd addresses behind others.

A model has one operator, so that nothing is asked about operators in a row: outputs in the place of inputs, memory that
is used again, the layout between two operators. Tensors of a file start at addresses that its reader chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.grids import rows
from tflq.devices.grids.contracting import SAME, ContractionScales, Regime, outputs
from tflq.devices.grids.elementwise import ARITHMETIC, CHOOSING, ElementScales
from tflq.devices.grids.recurrent import FIXED, OPTIONS
from tflq.devices.grids.rows import Row
from tflq.devices.suites.draft import CODES, KINDS, Draft, Sample, T, kinds, samples_of, version_of, zero_point
from tflq.engine.kernels.facts import OPERATORS

#: The value of each option of one case.
Choice: TypeAlias = "dict[str, Any]"
#: For each option with a value, the values of other options that no row has beside it yet.
_Partners: TypeAlias = "dict[tuple[str, Any], set[tuple[str, Any]]]"
#: How the aims of these cases begin.
AIM = "geometry"
#: Sums are spread over a part of the range of codes, so that a wrong tap shows.
_SPREAD = Regime(AIM, gain=60.0, channelwise=True)
_PADDINGS = {"SAME": SAME, "VALID": 1}
_ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
_DEPTHS = (1, 2, 3, 4, 5, 8, 16, 17, 32, 33)
_FEW_DEPTHS = (1, 3, 8, 17)
_WINDOW: Mapping[str, tuple[Any, ...]] = {
    "stride_h": (1, 2, 3),
    "stride_w": (1, 2, 3),
    "kernel_h": (1, 2, 3, 5),
    "kernel_w": (1, 2, 3, 5),
    "padding": tuple(_PADDINGS),
    "height": (7, 8, 9),
    "width": (6, 7, 10),
    "batch": (1, 2),
}
_DILATED = {"dilation_h": (1, 2, 3), "dilation_w": (1, 2)}
#: Attempts to complete a row; of those that are allowed, the one with most new pairs is taken.
_TRIES = 8


@dataclass(frozen=True, slots=True)
class OptionSpace:
    """Options of an operator with their values, and which combinations there are."""

    options: Mapping[str, tuple[Any, ...]]
    allows: Callable[[Choice], bool] = lambda _: True


def _fits(choice: Choice) -> bool:
    """Return whether the window fits the image, and is not both spread and moved by more than one pixel.

    Options without a value yet do not count.
    """
    dilations, strides = ([choice.get(f"{name}_{a}", 1) for a in "hw"] for name in ("dilation", "stride"))
    reach = [(choice.get(f"kernel_{a}", 1) - 1) * d + 1 for a, d in zip("hw", dilations, strict=True)]
    size = choice.get("height", max(reach)), choice.get("width", max(reach))
    is_inside = bool(reach[0] <= size[0] and reach[1] <= size[1])
    is_plain = max(dilations) == 1 or max(strides) == 1
    groups = choice.get("groups", 1)
    is_divided = all(choice.get(name, groups) % groups == 0 for name in ("depth", "filters"))
    return is_plain and is_divided and (is_inside or choice.get("padding", "SAME") == "SAME")


def spaces(kind: str) -> dict[str, OptionSpace]:
    """Return the options of each operator; fewer numbers of channels for types that fewer devices have."""
    depths = _DEPTHS if kind == "int8" else _FEW_DEPTHS
    fused = {"activation": tuple(_ACTIVATIONS)}
    filters = {"depth": depths, "filters": (1, 3, 8, 16)}
    return {
        "CONV_2D": OptionSpace({**_WINDOW, **_DILATED, **filters, "groups": (1, 2), **fused}, _fits),
        "DEPTHWISE_CONV_2D": OptionSpace(
            {**_WINDOW, **_DILATED, "depth": depths, "multiplier": (1, 2, 3), **fused}, _fits
        ),
        "FULLY_CONNECTED": OptionSpace(
            {"depth": depths, "units": (1, 2, 5, 17), "rows": (1, 2, 3, 5), "rank": (2, 3), **fused}
        ),
        "TRANSPOSE_CONV": OptionSpace({**_WINDOW, "depth": _FEW_DEPTHS, "filters": (1, 3, 8, 16)}),
        "AVERAGE_POOL_2D": OptionSpace({**_WINDOW, "depth": (1, 8, 17), **fused}, _fits),
        "MAX_POOL_2D": OptionSpace({**_WINDOW, "depth": (1, 8, 17), **fused}, _fits),
    }


def drafts(seed: int, turn: int = 0, only: str = "") -> Iterator[Draft]:
    """Yield a case for each row of each operator's covering array, or of one; every turn has another array."""
    rng = np.random.default_rng([seed, 8])
    for kind in KINDS:
        for op in spaces(kind):
            if only not in ("", op):
                continue
            for choice in covering(op, kind, turn):
                yield draft_of(rng, op, kind, dict(choice))


def draft_of(rng: np.random.Generator, op: str, kind: str, choice: Choice) -> Draft:
    """Return the case of a choice of every option."""
    return _MAKERS[op](ContractionScales(rng, _SPREAD, kind), op, choice)


@cache
def covering(op: str, kind: str, turn: int = 0) -> tuple[Mapping[str, Any], ...]:
    """Return rows in which each pair of values of two options occurs, as far as it is allowed; the same for a turn."""
    space, rng = spaces(kind)[op], np.random.default_rng([len(op), KINDS.index(kind), *([turn] if turn else [])])
    names, rows = tuple(space.options), []
    open_pairs = {
        ((a, x), (b, y)) for a, b in combinations(names, 2) for x, y in product(space.options[a], space.options[b])
    }
    partners: _Partners = {(name, value): set() for name in names for value in space.options[name]}
    for one, other in open_pairs:
        partners[one].add(other)
        partners[other].add(one)
    for start in sorted(open_pairs, key=repr):
        if start not in open_pairs:
            continue
        is_possible = space.allows(dict(start))
        made = [_complete(rng, space, dict(start), partners) for _ in range(_TRIES * is_possible)]
        allowed = [choice for choice in made if choice is not None]
        closed = {start}  # no row has it
        if allowed:
            row = max(allowed, key=lambda choice: len(_pairs(choice, names) & open_pairs))
            rows.append(row)
            closed = _pairs(row, names)
        open_pairs -= closed
        for one, other in closed:
            partners[one].discard(other)
            partners[other].discard(one)
    return tuple(rows)


def _complete(rng: np.random.Generator, space: OptionSpace, choice: Choice, partners: _Partners) -> Choice | None:
    """Return a row with the given values, and for the other options those with most new pairs, in a random order."""
    for name in rng.permutation([name for name in space.options if name not in choice]).tolist():
        values = [space.options[name][i] for i in rng.permutation(len(space.options[name]))]
        values = [value for value in values if space.allows({**choice, name: value})]
        if not values:
            return None
        kept = tuple(choice.items())
        choice[name] = max(values, key=lambda value: sum(map(partners[name, value].__contains__, kept)))
    return choice


def _pairs(choice: Choice, names: Sequence[str]) -> set[Any]:
    return {((a, choice[a]), (b, choice[b])) for a, b in combinations(names, 2)}


def aim_of(choice: Choice) -> str:
    """Return the geometry as the aim of a case: every option with its value."""
    return f"{AIM}: " + ", ".join(f"{name} {value}" for name, value in choice.items())


def choice_of(aim: str) -> dict[str, str] | None:
    """Return the values of the options in an aim; None if it is no geometry."""
    start, _, rest = aim.partition(": ")
    if start != AIM:
        return None
    parts = (part.rpartition(" ") for part in rest.split(", "))
    return {name: value for name, _, value in parts}


def _strides(choice: Choice) -> dict[str, int]:
    return {name: choice[name] for name in ("stride_h", "stride_w")} | {"padding": _PADDINGS[choice["padding"]]}


def _images(choice: Choice) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the extents of the input and of the output."""
    size = choice["height"], choice["width"]
    reach = [(choice[f"kernel_{a}"] - 1) * choice.get(f"dilation_{a}", 1) + 1 for a in "hw"]
    strides = choice["stride_h"], choice["stride_w"]
    out = [outputs(*one, _PADDINGS[choice["padding"]]) for one in zip(size, reach, strides, strict=True)]
    return size, (out[0], out[1])


def _convolution(scales: ContractionScales, op: str, choice: Choice) -> Draft:
    size, out = _images(choice)
    depth, kernel = choice["depth"], (choice["kernel_h"], choice["kernel_w"])
    options = {
        **_strides(choice),
        **{f"dilation_{a}_factor": choice[f"dilation_{a}"] for a in "hw"},
        "fused_activation_function": _ACTIVATIONS[choice["activation"]],
    }
    x = scales.image((choice["batch"], *size, depth))
    if op == "CONV_2D":
        channels, inner = choice["filters"], depth // choice["groups"]
        w, table = scales.weights((channels, *kernel, inner), 0), "Conv2DOptions"
    else:
        channels, inner = depth * choice["multiplier"], 1
        w, table = scales.weights((1, *kernel, channels), 3), "DepthwiseConv2DOptions"
        options["depth_multiplier"] = choice["multiplier"]
    y = scales.result(x, w, (choice["batch"], *out, channels), kernel[0] * kernel[1] * inner)
    return _draft(op, scales, choice, (x, w, scales.bias(x, w, channels)), y, (table, options), 5)


def _dense(scales: ContractionScales, op: str, choice: Choice) -> Draft:
    depth, units, rows = choice["depth"], choice["units"], choice["rows"]
    is_deep = choice["rank"] == 3
    lead = (2, rows) if is_deep else (rows,)
    x, w = scales.image((*lead, depth)), scales.weights((units, depth), 0)
    y = scales.result(x, w, (*lead, units), depth)
    fused = _ACTIVATIONS[choice["activation"]]
    options = {"fused_activation_function": fused, "weights_format": 0, "keep_num_dims": is_deep}
    return _draft(op, scales, choice, (x, w, scales.bias(x, w, units)), y, ("FullyConnectedOptions", options), 5)


def _transpose(scales: ContractionScales, op: str, choice: Choice) -> Draft:
    kernel, strides = (choice["kernel_h"], choice["kernel_w"]), (choice["stride_h"], choice["stride_w"])
    small = choice["height"] // 2, choice["width"] // 2
    is_same = choice["padding"] == "SAME"
    whole = [n * s if is_same else (n - 1) * s + max(k, s) for n, k, s in zip(small, kernel, strides, strict=True)]
    x = scales.image((choice["batch"], *small, choice["depth"]))
    w = scales.weights((choice["filters"], *kernel, choice["depth"]), 0)
    shape = (choice["batch"], *whole, choice["filters"])
    y = scales.result(x, w, shape, choice["depth"] * 2)
    inputs = (T("int32", (4,), value=np.array(shape)), w, x, scales.bias(x, w, choice["filters"]))
    options = {**_strides(choice), "fused_activation_function": 0}
    return _draft(op, scales, choice, inputs, y, ("TransposeConvOptions", options), 3)


def _pool(scales: ContractionScales, op: str, choice: Choice) -> Draft:
    size, out = _images(choice)
    zero = zero_point(scales.rng, scales.kind)
    x = T(scales.kind, (choice["batch"], *size, choice["depth"]), scales.scale(-6, -4), zero)
    y = T(scales.kind, (choice["batch"], *out, choice["depth"]), x.scale, zero)
    options = {
        **_strides(choice),
        "filter_height": choice["kernel_h"],
        "filter_width": choice["kernel_w"],
        "fused_activation_function": _ACTIVATIONS[choice["activation"]],
    }
    return _draft(op, scales, choice, (x,), y, ("Pool2DOptions", options), 3)


def _draft(
    op: str, scales: ContractionScales, choice: Choice, inputs: tuple[T, ...], y: T, options: Any, version: int
) -> Draft:
    """Return the case, with inputs at random, and with the highest code and then the lowest everywhere."""
    data = next(t for t in inputs if t.value is None)
    ends = tuple((np.full(tuple(data.shape), code, data.type),) for code in reversed(CODES[data.type]))
    samples = (samples_of(scales.rng, inputs)[0], *ends)
    return Draft(op, aim_of(choice), inputs, (y,), samples, options, version)


_MAKERS: Mapping[str, Callable[[ContractionScales, str, Choice], Draft]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _dense,
    "TRANSPOSE_CONV": _transpose,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
}


TAILS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33)
#: A number, another one, and the number of images.
_Pair: TypeAlias = "tuple[int, int, int]"
#: Positions in TAILS between the number of one option and that of another.
_APART = 5
_LAYOUT_WINDOW: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "dilation_h": 1, "dilation_w": 1}
_PLAIN: dict[str, Any] = {**_LAYOUT_WINDOW, "groups": 1, "multiplier": 1, "activation": "NONE", "rank": 2, "rows": 3}
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


def layout_drafts(seed: int, turn: int = 0, only: str = "", tails: Sequence[int] = TAILS) -> Iterator[Draft]:
    """Yield every operator, or one, in every layout; another turn has other numbers of images beside the tails."""
    rng = np.random.default_rng([seed, 12])
    pairs = list(_layout_pairs(tails, turn))
    for kind in KINDS:
        for op in spaces(kind):
            choices = _choices(op, kind, pairs) if only in ("", op) else ()
            yield from (draft_of(rng, op, kind, choice) for choice in choices)
        yield from _elements(rng, kind, pairs, only)
        yield from _rows(rng, kind, pairs, only)
        yield from _ties(rng, kind, only)
    for row in _moved(pairs):
        if only in ("", row[0]):
            yield from (rows.draft_of(rng, kind, row) for kind in kinds(row[0]) or KINDS)


def _layout_pairs(tails: Sequence[int], turn: int) -> Iterator[_Pair]:
    for place, number in enumerate(tails):
        yield number, tails[(place + _APART + turn) % len(tails)], 1 + (place + turn) % 2


def _choices(op: str, kind: str, pairs: Sequence[_Pair]) -> Iterator[Choice]:
    """Yield channels with windows of one and of nine pixels, then columns; without what the covering array has."""
    options = (*spaces(kind)[op].options,)
    known = {tuple(row.get(name) for name in _SIZES) for row in covering(op, kind)}
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


def _elements(rng: np.random.Generator, kind: str, pairs: Sequence[_Pair], only: str) -> Iterator[Draft]:
    """Yield operators of every element, on flat tensors, and with an operand of one code a channel."""
    scales = ElementScales(rng, powers=False)
    for number, other, batch in pairs:
        for op, options, is_same in _UNARY:
            if kind in kinds(op) and only in ("", op):
                x = replace(scales.tensor(kind, (number,), 4.0), zero_point=_MIDDLE.get(kind, 0))
                fixed = OPERATORS[op].output.get(kind)
                y = x if is_same else scales.tensor(kind, (number,), 4.0)
                y = y if fixed is None else T(kind, (number,), *fixed)
                aim, version = _aim(number, "elements"), version_of(op, kind)
                yield Draft(op, aim, (x,), (y,), _samples(rng, x), options, version)
        for op, table in (row for row in {**ARITHMETIC, **CHOOSING}.items() if only in ("", row[0])):
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


def _rows(rng: np.random.Generator, kind: str, pairs: Sequence[_Pair], only: str) -> Iterator[Draft]:
    """Yield operators along rows, and means over images and over channels."""
    for number, other, batch in pairs:
        x = T(kind, (3, number), 0.05, _MIDDLE.get(kind, 0))
        for op, taken in FIXED.items():
            if kind in taken and only in ("", op):
                options = (OPTIONS.get(op, "SoftmaxOptions"), {"beta": 1.0} if op == "SOFTMAX" else {})
                y = T(kind, x.shape, *taken[kind])
                yield Draft(
                    op, _aim(number, "columns"), (x,), (y,), samples_of(rng, (x,)), options, version_of(op, kind)
                )
        image = replace(x, shape=(batch, 3, other, number))
        for op in (op for op in ("MEAN", "REDUCE_MAX") if only in ("", op)):
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


def _ties(rng: np.random.Generator, kind: str, only: str) -> Iterator[Draft]:
    """Yield contractions whose multiplier is a power of two: every channel has ties of both signs."""
    for op, ((image, filters, made), options) in _TIED.items() if kind != "int16" else ():
        if only not in ("", op):
            continue
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
