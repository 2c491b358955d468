"""Geometries and options of operators with windows and of products: every pair of values of two options, in few cases.

A device whose arithmetic is right can still take the wrong row: for one stride, one padding, one number of channels.
Each case differs from all others in its geometry, so that all of them belong to smoke.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, samples_of, zero_point
from tflq.devices.conformance.grids.contracting import SAME, Regime, Scales, outputs
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T

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
class Space:
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


def spaces(kind: str) -> dict[str, Space]:
    """Return the options of each operator; fewer numbers of channels for types that fewer devices have."""
    depths = _DEPTHS if kind == "int8" else _FEW_DEPTHS
    fused = {"activation": tuple(_ACTIVATIONS)}
    filters = {"depth": depths, "filters": (1, 3, 8, 16)}
    return {
        "CONV_2D": Space({**_WINDOW, **_DILATED, **filters, "groups": (1, 2), **fused}, _fits),
        "DEPTHWISE_CONV_2D": Space({**_WINDOW, **_DILATED, "depth": depths, "multiplier": (1, 2, 3), **fused}, _fits),
        "FULLY_CONNECTED": Space(
            {"depth": depths, "units": (1, 2, 5, 17), "rows": (1, 2, 3, 5), "rank": (2, 3), **fused}
        ),
        "TRANSPOSE_CONV": Space({**_WINDOW, "depth": _FEW_DEPTHS, "filters": (1, 3, 8, 16)}),
        "AVERAGE_POOL_2D": Space({**_WINDOW, "depth": (1, 8, 17), **fused}, _fits),
        "MAX_POOL_2D": Space({**_WINDOW, "depth": (1, 8, 17), **fused}, _fits),
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
    return _MAKERS[op](Scales(rng, _SPREAD, kind), op, choice)


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


def _complete(rng: np.random.Generator, space: Space, choice: Choice, partners: _Partners) -> Choice | None:
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


def _convolution(scales: Scales, op: str, choice: Choice) -> Draft:
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


def _dense(scales: Scales, op: str, choice: Choice) -> Draft:
    depth, units, rows = choice["depth"], choice["units"], choice["rows"]
    is_deep = choice["rank"] == 3
    lead = (2, rows) if is_deep else (rows,)
    x, w = scales.image((*lead, depth)), scales.weights((units, depth), 0)
    y = scales.result(x, w, (*lead, units), depth)
    fused = _ACTIVATIONS[choice["activation"]]
    options = {"fused_activation_function": fused, "weights_format": 0, "keep_num_dims": is_deep}
    return _draft(op, scales, choice, (x, w, scales.bias(x, w, units)), y, ("FullyConnectedOptions", options), 5)


def _transpose(scales: Scales, op: str, choice: Choice) -> Draft:
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


def _pool(scales: Scales, op: str, choice: Choice) -> Draft:
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


def _draft(op: str, scales: Scales, choice: Choice, inputs: tuple[T, ...], y: T, options: Any, version: int) -> Draft:
    """Return the case, with inputs at random, and with the highest code and then the lowest everywhere."""
    data = next(t for t in inputs if t.value is None)
    ends = tuple((np.full(tuple(data.shape), code, data.type),) for code in reversed(CODES[data.type]))
    samples = (samples_of(scales.rng, inputs)[0], *ends)
    return Draft(op, aim_of(choice), inputs, (y,), samples, options, version)


_MAKERS: Mapping[str, Callable[[Scales, str, Choice], Draft]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _dense,
    "TRANSPOSE_CONV": _transpose,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
}
