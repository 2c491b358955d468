"""Products of two activations, cells with a state, pools and reductions.

Products of two activations, and cells with a state: BATCH_MATMUL, LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, SVDF.

Samples are independent, and a variable is zero at the first step of each. So sequences have their steps in one sample,
LSTM of kernel type BASIC gets its states as inputs, and LSTM of type FULL and SVDF are asked for a first step only.

Pools, reductions and operators along a row: sums, divisions and exponentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from tflq.devices.grids.contracting import ACTIVATIONS, REGIMES, SAME, VALID, ContractionScales
from tflq.devices.suites.draft import CODES, KINDS, Draft, T, kinds, samples_of, version_of, zero_point
from tflq.engine.kernels.facts import OPERATORS

#: Regimes without channels of their own: ties, odd multipliers, saturation.
_REGIMES = tuple(regime for regime in REGIMES if not regime.channelwise and not regime.ends)
_ADJOINTS = {(False, False): "", (True, False): "adjoint x", (False, True): "adjoint y", (True, True): "both adjoint"}
#: Extents of a cell: images, inputs, cells, steps; outputs of a projection; moments and rank of SVDF.
_BATCH, _DEPTH, _CELLS, _STEPS, _PROJECTED, _MOMENTS, _RANK = 8, 9, 7, 4, 5, 6, 2
_TANH = 4
#: Biases of an SVDF are halves of 2 to this power, about one code of its output: ties if scales are powers of two.
_HALF = 20


def drafts(seed: int) -> Iterator[Draft]:
    """Yield all operators in each regime of scales."""
    rng = np.random.default_rng([seed, 11])
    for regime in _REGIMES:
        for kind in kinds("BATCH_MATMUL"):
            scales = ContractionScales(rng, regime, kind)
            for adjoint, aim in _ADJOINTS.items():
                yield _matmul(scales, "; ".join(filter(None, (regime.aim, aim))), adjoint)
        scales = ContractionScales(rng, regime, "int8")
        for op, variant in product(("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"), _VARIANTS):
            yield _lstm(scales, op, variant)
        yield _basic(ContractionScales(rng, regime, "uint8"))
        yield from (_svdf(scales, is_biased=is_biased) for is_biased in (True, False))
    for kind in kinds("BATCH_MATMUL"):
        yield _long(ContractionScales(rng, _REGIMES[1], kind))


def _matmul(
    scales: ContractionScales, aim: str, adjoint: tuple[bool, bool], sizes: tuple[int, int, int] = (5, 9, 7)
) -> Draft:
    rows, depth, columns = sizes
    a = scales.image((2, 3, *((depth, rows) if adjoint[0] else (rows, depth))))
    b = scales.image((3, *((columns, depth) if adjoint[1] else (depth, columns))))
    a, b = (replace(t, zero_point=int(t.zero_point) // 4) for t in (a, b))  # sums of both signs
    if scales.kind == "int16":
        b = replace(b, scale=float(b.scale) / 256)
    weights = replace(
        b, scale=float(b.scale) * (256 if scales.kind == "int16" else 1)
    )  # as `result` takes them, 8 bits
    y = scales.result(a, weights, (2, 3, rows, columns), 4 * depth)
    options = ("BatchMatMulOptions", {"adj_x": adjoint[0], "adj_y": adjoint[1]})
    samples = samples_of(scales.rng, (a, b))
    return Draft("BATCH_MATMUL", aim, (a, b), (y,), samples, options, version_of("BATCH_MATMUL", scales.kind))


def _long(scales: ContractionScales) -> Draft:
    """Return sums beyond 24 bits: all codes at one end."""
    draft = _matmul(scales, "sums beyond 24 bits: many taps", (False, True), (2, 1200, 3))
    (a, b), (y,) = draft.inputs, draft.outputs
    assert a is not None
    assert b is not None
    low, high = CODES[scales.kind]
    wide = replace(y, scale=float(np.float32(1200 * float(a.scale) * float(b.scale) * (high - low) / 1.5)))
    ends = [tuple(np.full(t.shape, code, scales.kind) for t, code in zip((a, b), pair, strict=True)) for pair in (
        (high, high), (low, high), (low, low))]  # fmt: skip
    return replace(draft, outputs=(wide,), samples=(*draft.samples, *ends))


def _constant(scales: ContractionScales, kind: str, shape: tuple[int, ...], scale: float, reach: int = 0) -> T:
    """Return symmetric constants up to `reach`, or of the whole range."""
    high = reach or CODES[kind][1]
    return T(kind, shape, scale, 0, value=scales.rng.integers(-high, high + 1, shape))


#: Aim -> projection, peepholes, layer normalization, coupled gates, time first.
_VARIANTS: tuple[tuple[str, bool, bool, bool, bool, bool], ...] = (
    ("", False, False, False, False, False),
    ("projection, peepholes", True, True, False, False, True),
    ("layer normalization", False, False, True, False, False),
    ("coupled gates", False, False, False, True, True),
)


def _lstm(scales: ContractionScales, op: str, variant: tuple[str, bool, bool, bool, bool, bool]) -> Draft:
    """Return the form of 8-bit activations with a 16-bit cell state."""
    aim, project, peep, norm, coupled, time_first = variant
    made = _PROJECTED if project else _CELLS
    x, y = scales.image((_DEPTH,)), replace(scales.image((made,)), scale=scales.scale(-8, -6))
    gates = [not (coupled and gate == 0) for gate in range(4)]

    def four(kind: str, shape: tuple[int, ...], scale: tuple[float, float], reach: int = 0) -> list[T | None]:
        return [_constant(scales, kind, shape, scales.scale(*scale), reach) if gate else None for gate in gates]

    inputs: list[T | None] = four("int8", (_CELLS, _DEPTH), (-8, -5)) + four("int8", (_CELLS, made), (-8, -5))
    peepholes = four("int16", (_CELLS,), (-13, -11)) if peep else [None] * 4
    inputs += [peepholes[gate] for gate in (0, 1, 3)]
    inputs += four("int32", (_CELLS,), (-16, -14), 4000)
    hidden = replace(y, shape=(1,), scale=scales.scale(-8, -7)) if project else replace(y, shape=(1,))
    inputs.append(_constant(scales, "int8", (made, _CELLS), scales.scale(-9, -7)) if project else None)
    inputs.append(_constant(scales, "int32", (made,), scales.scale(-16, -14), 4000) if project else None)
    inputs += [
        replace(y, shape=(_BATCH, made), variable=True),
        T("int16", (_BATCH, _CELLS), 2.0**-11, 0, variable=True),
    ]
    inputs += four("int16", (_CELLS,), (-14, -12)) if norm else []
    between = (*(T("int16", (1,), scales.scale(-12, -10), 0) for _ in range(4)), hidden)
    options = {"fused_activation_function": _TANH, "cell_clip": 0.0, "proj_clip": 0.0}
    lead: tuple[int, ...] = (_BATCH,)
    table = "LSTMOptions"
    if op != "LSTM":
        lead = (_STEPS, _BATCH) if time_first else (_BATCH, _STEPS)
        options["time_major"], table = time_first, "UnidirectionalSequenceLSTMOptions"
    whole = (replace(x, shape=(*lead, _DEPTH)), *inputs)
    samples = samples_of(scales.rng, [t for t in whole if t is None or not t.variable])
    said = "; ".join(filter(None, (scales.regime.aim, aim)))
    return Draft(op, said, whole, (replace(y, shape=(*lead, made)),), samples, (table, options), 3, between)


def _basic(scales: ContractionScales) -> Draft:
    """Return LSTM of kernel type BASIC: uint8 activations, whose states are inputs and outputs."""
    codes, wide = T("uint8", (_BATCH, _CELLS), 1 / 128, 128), T("int16", (_BATCH, _CELLS), 2.0**-11, 0)
    x, joined = replace(codes, shape=(_BATCH, _DEPTH)), _DEPTH + _CELLS
    scale = scales.scale(-9, -6)
    weights = T("uint8", (4 * _CELLS, joined), scale, int(scales.rng.integers(100, 156)))
    weights = replace(weights, value=scales.rng.integers(0, 256, weights.shape))
    bias = _constant(scales, "int32", (4 * _CELLS,), scale / 128, 8000)
    inputs = (x, codes, weights, bias, wide)
    gates = T("int16", (_BATCH, 4 * _CELLS), 2.0**-12, 0)
    outputs = (codes, wide, replace(codes, shape=(_BATCH, joined)), gates)
    options = ("LSTMOptions", {"kernel_type": 1, "fused_activation_function": _TANH})
    return Draft(
        "LSTM", f"{scales.regime.aim}; states as inputs", inputs, outputs, samples_of(scales.rng, inputs), options, 2
    )


def _svdf(scales: ContractionScales, *, is_biased: bool) -> Draft:
    """Return the form of 8-bit activations with a 16-bit state."""
    units, filters = _CELLS, _CELLS * _RANK
    x = scales.image((_BATCH, _DEPTH))
    features = _constant(scales, "int8", (filters, _DEPTH), scales.scale(-9, -6))
    state = T("int16", (_BATCH, filters * _MOMENTS), scales.scale(-12, -10), 0, variable=True)
    moments = _constant(scales, "int16", (filters, _MOMENTS), scales.scale(-16, -14))
    product = float(state.scale) * float(moments.scale)
    bias = T("int32", (units,), product, 0, value=(np.arange(units) - units // 2 + 0.5) * 2**_HALF)
    y = replace(x, shape=(_BATCH, units), scale=product * 2.0**_HALF * 60 / scales.regime.gain)
    inputs = (x, features, moments, bias if is_biased else None, state)
    aim = scales.regime.aim + ("" if is_biased else "; no bias")
    options = ("SVDFOptions", {"rank": _RANK, "fused_activation_function": 1})
    version = version_of("SVDF", "int8")
    still = (np.full(x.shape, x.zero_point, x.type),)  # the sums are the biases
    return Draft("SVDF", aim, inputs, (y,), (*samples_of(scales.rng, (x,)), still), options, version)


AXES = ((1, 2), (1,), (3,), (0, 3))
FIXED = {op: OPERATORS[op].output for op in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")}
OPTIONS = {"LOG_SOFTMAX": "LogSoftmaxOptions", "L2_NORMALIZATION": "L2NormOptions"}


def summing_drafts(seed: int) -> Iterator[Draft]:
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
